"""Buffers: typed regions of memory, known by identity.

A host program has two scopes of memory whose size is known only when it runs: outputs that are asked of the caller, and memory
that is kept.

    n = let(count[0])
    out0 = alloc("output@0", f32[n, 3])      asks the caller for the memory of output 0, and tells its shape
    rows = alloc("kept@2", f32[m * 64])      has at least so many elements, with the contents of earlier `kept@2`

Neither is given back where its body ends: an output is the caller's, and kept memory is the context's. A buffer of the first kind
has as many dimensions as the output; kernels are given a flat view of it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weft.ir import INDEX, ONE, Expr, ExprLike, as_expr
from weft.support.dtypes import DType

REGISTER: Final = "register"
"""The scope of values that must live in registers."""

ALIGNMENT: Final = 64
"""The alignment of a buffer's memory in bytes: a cache line, and the width of the widest vectors."""

_LATE: Final = re.compile(r"(output|kept)@(\d{1,4})", re.ASCII)
_SERIAL = itertools.count()


class Buffer:
    """A typed region of memory, known by identity; row-major unless *strides* (in elements) are given.

    `scope` is a memory scope of the target: "global" for memory that any function may see, "local" for a workspace,
    "register" for values that must live in registers, or a scope that a target declares.
    """

    __leaf__ = "identity"
    __slots__ = ("__weakref__", "dtype", "name", "scope", "serial", "shape", "strides")

    def __init__(
        self,
        name: str,
        shape: Iterable[ExprLike],
        dtype: DType,
        scope: str = "global",
        strides: Iterable[ExprLike] | None = None,
    ) -> None:
        self.name = name
        self.shape: tuple[Expr, ...] = tuple([as_expr(s, INDEX) for s in shape])
        self.dtype = dtype
        self.scope = scope
        self.strides = None if strides is None else tuple([as_expr(s, INDEX) for s in strides])
        self.serial = next(_SERIAL)

    @property
    def in_registers(self) -> bool:
        """Whether its values must live in registers."""
        return self.scope == REGISTER

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def row_major_strides(self) -> tuple[Expr, ...]:
        """Returns the stride of each dimension in elements: those given, else row-major ones."""
        if self.strides is not None:
            return self.strides
        strides: list[Expr] = []
        step: Expr = ONE
        for size in reversed(self.shape):
            strides.append(step)
            step = size * step
        return tuple(reversed(strides))

    def __repr__(self) -> str:
        return f"Buffer({self.name}: {self.dtype}, rank {self.rank}, {self.scope})"


@dataclass(frozen=True)
class LateMemory:
    """The memory of output *number*, or, if it `is_kept`, the context's memory of that number."""

    is_kept: bool
    number: int

    @property
    def scope(self) -> str:
        """The scope of buffers in this memory."""
        return f"{'kept' if self.is_kept else 'output'}@{self.number}"


def late_memory(buffer: Buffer) -> LateMemory | None:
    """Returns the late memory that *buffer* is in; None for buffers in any other."""
    found = _LATE.fullmatch(buffer.scope) if "@" in buffer.scope else None
    return None if found is None else LateMemory(found[1] == "kept", int(found[2]))


def is_late_output(buffer: Buffer) -> bool:
    """Tells whether *buffer* is an output that is asked of the caller, which has the output's shape."""
    found = late_memory(buffer)
    return found is not None and not found.is_kept
