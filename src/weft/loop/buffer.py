"""Buffers: typed regions of memory, known by identity."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from weft.ir import INDEX, ONE, Expr, ExprLike, as_expr
from weft.support.dtypes import DType

REGISTER: Final = "register"
"""The scope of values that must live in registers."""

ALIGNMENT: Final = 64
"""The alignment of a buffer's memory in bytes: a cache line, and the width of the widest vectors."""

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
