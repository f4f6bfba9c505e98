"""Names for the text form: unique, deterministic, and always Python identifiers."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from typing import Final, Protocol

from weft.support.dtypes import SCALARS, DType
from weft.support.unique_names import UniqueNames

_TYPE: Final = re.compile(rf"(?:{'|'.join(SCALARS)})(?:x[1-9][0-9]*)?", re.ASCII)
_WORDS: Final = [
    "range", "parallel", "vectorized", "unrolled", "block", "spatial", "reduce", "ordered", "unordered", "opaque", "where",
    "reads", "writes", "init", "annotate", "alloc", "view", "buffer", "let", "check", "call", "eval_", "strides", "scope",
    "function", "min", "max", "select", "truncdiv", "truncmod", "cast", "reinterpret", "ramp", "broadcast", "neg", "alias",
]  # fmt: skip
_RESERVED: Final = frozenset([*keyword.kwlist, *_WORDS])


class Named(Protocol):
    """Anything with a name of its own: a variable, a buffer, a tensor."""

    @property
    def name(self) -> str:
        """The preferred name."""


class Names:
    """Assigns each thing a unique name at its first use: its own name, or that with `_1`, `_2` ..."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._of: dict[Named, str] = {}
        self._unique = UniqueNames(taken)

    def of(self, thing: Named) -> str:
        """Returns the name of *thing*."""
        name = self._of.get(thing)
        if name is None:
            name = self._of[thing] = self.new(thing.name)
        return name

    def new(self, base: str) -> str:
        """Returns a name that nothing has: *base*, or that with a number."""
        wanted = identifier(base)
        name = self._unique.of(wanted)
        while is_reserved(name):
            name = self._unique.of(wanted)
        return name


def identifier(name: str) -> str:
    """Returns *name* with all that an identifier cannot have made into underscores."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{plain}" if not plain or plain[0].isdigit() else plain


def is_reserved(name: str) -> bool:
    """Answers whether *name* is a Python keyword, a type, or a word of the text form."""
    return name in _RESERVED or is_type_name(name)


def is_type_name(name: str) -> bool:
    """Answers whether *name* is the text form of a data type, such as `f32` or `i8x16`."""
    return _TYPE.fullmatch(name) is not None


def type_named(name: str) -> DType | None:
    """Returns the data type whose text form is *name*, or None."""
    if not is_type_name(name):
        return None
    base, _, lanes = name.partition("x")
    return SCALARS[base].with_lanes(int(lanes)) if lanes else SCALARS[base]
