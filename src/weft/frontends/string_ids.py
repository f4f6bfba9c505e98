"""Tensors of strings, which are integers while a model is imported and runs: the ids of the strings.

A model's own strings have their ids before anything of it is imported; "" is 0 (`docs/design/0053`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from weft.graph import Array, Graph, Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.ir import ExprLike
from weft.support.dtypes import handle

ENCODING: Final = ("utf-8", "surrogateescape")
"""The codec that keeps bytes that are no UTF-8."""


@dataclass(frozen=True)
class Strings:
    """A tensor of strings, as the ids of these."""

    ids: Operand

    def __repr__(self) -> str:
        return f"a tensor of strings of shape [{', '.join(map(str, self.ids.shape))}]"


class StringIds:
    """The strings that a model knows, by id."""

    def texts(self) -> Iterable[str]:
        """Returns the strings, in any order and as often as they come."""
        raise NotImplementedError

    @cached_property
    def ids(self) -> dict[str, int]:
        """The ids of all strings of the model."""
        found = sorted({text for text in self.texts() if text})
        return {text: k for k, text in enumerate(["", *found])}

    @cached_property
    def constant(self) -> CompileTimeConstant:
        """The pool as operators take it: see `native/hostops/string_table.h`."""
        data = [text.encode(*ENCODING) for text in self.ids]
        begins = np.cumsum([0, *map(len, data)], dtype=np.int32)
        head = np.asarray([len(data), *begins], "<i4").tobytes()
        return CompileTimeConstant(np.frombuffer(head + b"".join(data), np.uint8), "strings")

    def of(self, texts: Iterable[str]) -> list[int]:
        """Returns the ids of strings of the model."""
        return [self.ids[text] for text in texts]

    def tensor(self, texts: Array) -> CompileTimeConstant:
        """Returns the ids of a tensor of strings."""
        ids = np.asarray(self.of(texts.reshape(-1).tolist()), np.int64)
        return CompileTimeConstant(ids.reshape(texts.shape))

    def input(self, graph: Graph, b: Builder, name: str, shape: Iterable[ExprLike]) -> Strings:
        """Declares an input of strings, from which *b* takes the ids."""
        given = graph.input(name, tuple(shape), handle)
        return Strings(b.add("strings_take", given, self.constant))

    def given(self, b: Builder, x: Strings) -> Value:
        """Returns strings as a caller is given them."""
        made = b.add("strings_give", x.ids, self.constant)
        assert isinstance(made, Value), "a call computes them"
        return made


class KnownStrings(StringIds):
    """The strings that *texts* names."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts

    def texts(self) -> Iterable[str]:
        """Returns the strings."""
        return self._texts


def in_case(text: str, upper: bool) -> str:
    """Returns *text* in capitals or without them, letter by letter, as the operator `string_case` does."""
    letters = [(c, c.upper() if upper else c.lower()) for c in text]
    return "".join([other if len(other) == 1 else c for c, other in letters])
