"""Scalar (and short-vector) expressions: typed, immutable, interned.

Meaning. Integers wrap in their width, except that overflow of `i32` and `i64` is taken not to happen, as in C.
`FloorDiv` and `FloorMod` round towards minus infinity (Python's `//` and `%`), `TruncDiv` and `TruncMod` towards zero.
`Min` and `Max` of floats propagate NaN. `Select` evaluates only the operand that it chooses (per lane), so a guarded
`Load` never touches memory outside its buffer. `And` and `Or` likewise stop early.

`a + b`, `a // b`, `a < b` and so on build nodes; `==` is Python's own, since a node is compared by identity: use `eq(a, b)` and
`ne(a, b)` for the expressions. An expression has no truth value: `if`, `and`, `min` and the like raise `TypeMismatch`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, Union

from weft.ir.expr.node import Node
from weft.support.dtypes import DType, i64
from weft.support.errors import TypeMismatch

ExprLike: TypeAlias = Union["Expr", int, float, bool]
Value: TypeAlias = bool | int | float

INDEX: Final = i64
"""The type of loop variables, extents and buffer indices."""

CHOICES: Final = (
    "Python decides if, and, or, not, min, max and a < b < c while the formula is built; write select(c, a, b), minimum(a, b), "
    "maximum(a, b), a & b, a | b, ~a or all_of([...]), and test for an absent expression by `is None`"
)
"""The functions to use in place of Python's `and`, `min` and the like, which would be evaluated when the expression is built."""

BUILDERS: Final[dict[str, Callable[[Expr, ExprLike], Expr]]] = {}
"""Builds the node of each of Python's operators, by symbol; filled in by `ir.expr.constructors`, which knows the node classes."""


class Expr(Node):
    """An expression of type `dtype`."""

    __slots__ = ()
    dtype: DType

    def __bool__(self) -> bool:
        raise TypeMismatch("an expression has no truth value before the program runs", hint=CHOICES)

    def __add__(self, other: ExprLike) -> Expr:
        return BUILDERS["+"](self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected +"](self, other)

    def __sub__(self, other: ExprLike) -> Expr:
        return BUILDERS["-"](self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected -"](self, other)

    def __mul__(self, other: ExprLike) -> Expr:
        return BUILDERS["*"](self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected *"](self, other)

    def __truediv__(self, other: ExprLike) -> Expr:
        return BUILDERS["/"](self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected /"](self, other)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return BUILDERS["//"](self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected //"](self, other)

    def __mod__(self, other: ExprLike) -> Expr:
        return BUILDERS["%"](self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected %"](self, other)

    def __and__(self, other: ExprLike) -> Expr:
        return BUILDERS["&"](self, other)

    def __or__(self, other: ExprLike) -> Expr:
        return BUILDERS["|"](self, other)

    def __xor__(self, other: ExprLike) -> Expr:
        return BUILDERS["^"](self, other)

    def __lshift__(self, other: ExprLike) -> Expr:
        return BUILDERS["<<"](self, other)

    def __rshift__(self, other: ExprLike) -> Expr:
        return BUILDERS[">>"](self, other)

    def __neg__(self) -> Expr:
        return BUILDERS["negate"](self, self)

    def __invert__(self) -> Expr:
        return BUILDERS["~"](self, self)

    def __lt__(self, other: ExprLike) -> Expr:
        return BUILDERS["<"](self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return BUILDERS["<="](self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected <"](self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return BUILDERS["reflected <="](self, other)


_SERIAL = itertools.count()


class Var(Expr):
    """A variable, known by identity: two variables of one name are different variables.

    One that is a symbolic size may have `limits`, the range that it was declared to have, with None for no greatest.
    """

    __leaf__ = "identity"
    __slots__ = ("dtype", "limits", "name", "serial")
    __match_args__ = ("name", "dtype")
    name: str
    limits: tuple[int, int | None] | None
    serial: int  # order of creation, which makes sorted forms deterministic

    def __init__(self, name: str, dtype: DType = INDEX, limits: tuple[int, int | None] | None = None) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "serial", next(_SERIAL))
        object.__setattr__(self, "traits", self.trait)

    @property
    def size_range(self) -> tuple[int, int | None]:
        """The least and the greatest value of a symbolic size where a kernel computes with it: at least one."""
        low, high = self.limits or (1, None)
        return max(low, 1), None if high is None else max(high, 1)

    def children(self) -> tuple[Node, ...]:
        """Returns nothing: a variable is a leaf."""
        return ()

    def rebuild(self, kids: Iterable[Node]) -> Node:
        """Returns the variable itself."""
        return self

    def __repr__(self) -> str:
        return f"Var({self.name}: {self.dtype})"
