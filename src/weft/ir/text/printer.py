"""Text of expressions: Python syntax, with only the parentheses that are needed; `ir.text.parser` reads it back.

A plain integer is an `i64`, a plain float an `f32`; other constants name their type, as in `i32(3)`. Floats are written with
the fewest digits that read back as the same value. An operation that Python has no operator for is written as a call:
`min(a, b)`, `select(c, a, b)`, `f32(x)` (a cast), `ramp(b, s, 16)`, `exp(x)`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf, isnan
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from weft.ir.expr.base import INDEX, Expr, Var
from weft.ir.expr.binary import Binary, Comparison
from weft.ir.expr.dot import Dot
from weft.ir.expr.node import Node
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Ramp, Reinterpret, Select, Shuffle
from weft.ir.expr.rewrite import is_small
from weft.ir.text.names import Names
from weft.support.dtypes import DType, f32, f64

Text: TypeAlias = tuple[str, int]
"""An expression's text and how tightly its outermost operator binds."""

ATOM: Final = 9
_UNARY: Final = 8
_NOT: Final = 3
_REPR_LIMIT: Final = 500  # nodes; the text of a heavily shared expression can be exponentially long


class TooLong(Exception):
    """A part of an expression takes more characters than were allowed."""


class ExprPrinter:
    """Writes expressions with the names of one `Names`; the text of each node is made once."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._memo: dict[Node, Text] = {}

    def __call__(self, e: Expr) -> str:
        """Returns the text of *e*."""
        return self.text(e)[0]

    def text(self, e: Node, longest: float = inf) -> Text:
        """Returns the text of *e* with its precedence; raises `TooLong` where it has parts of more characters than *longest*."""
        memo = self._memo
        stack = [e]
        while stack:
            n = stack[-1]
            if n in memo:
                stack.pop()
            elif todo := [k for k in n.children() if k not in memo]:
                stack += reversed(todo)
            else:
                made = _writer(type(n))(n, self)
                memo[n] = made if len(made[0]) <= longest else self.shortened(made)
        return memo[e]

    def shortened(self, made: Text) -> Text:
        """Returns the text to be written in place of *made*, which is too long."""
        raise TooLong

    def operand(self, e: Node, least: int) -> str:
        """Returns the text of *e*, in parentheses if it binds less tightly than *least*."""
        text, precedence = self.text(e)
        return text if precedence >= least else f"({text})"

    def call(self, fn: str, *args: Node | str | int) -> Text:
        """Returns the text of a call."""
        return f"{fn}({', '.join([self.text(a)[0] if isinstance(a, Node) else str(a) for a in args])})", ATOM


class AliasPrinter(ExprPrinter):
    """Writes an expression in text linear in its distinct nodes: parts of more than *longest* characters get a name.

    `aliases` are these names with their texts, each of which uses only names before it.
    """

    def __init__(self, names: Names, longest: int) -> None:
        super().__init__(names)
        self.longest = longest
        self.aliases: list[tuple[str, str]] = []

    def __call__(self, e: Expr) -> str:
        """Returns the text of *e*, over the names of `aliases`."""
        return self.text(e, self.longest)[0]

    def shortened(self, made: Text) -> Text:
        """Gives *made* a name."""
        name = self.names.new("part")
        self.aliases.append((name, made[0]))
        return name, ATOM


Writer = Callable[[Any, ExprPrinter], Text]
W = TypeVar("W", bound=Writer)
_WRITERS: Final[dict[type[Node], Writer]] = {}


def writes(*types: type[Node]) -> Callable[[W], W]:
    """Registers the decorated function as the printer of nodes of *types* and their subclasses."""

    def add(writer: W) -> W:
        _WRITERS.update(dict.fromkeys(types, writer))
        return writer

    return add


def _writer(cls: type[Node]) -> Writer:
    found = _WRITERS.get(cls)
    if found is None:
        found = _WRITERS[cls] = next((w for c in cls.__mro__ if (w := _WRITERS.get(c)) is not None), _generic)
    return found


def _generic(n: Node, p: ExprPrinter) -> Text:
    """Writes a node that has no syntax: its class with its fields."""
    fields = [getattr(n, name) for name in type(n).__match_args__]
    return f"{type(n).__name__}({', '.join([_field(f, p) for f in fields])})", ATOM


def _field(value: Any, p: ExprPrinter) -> str:
    if isinstance(value, tuple):
        return f"({''.join([_field(v, p) + ', ' for v in value]).rstrip()})"
    return p.text(value)[0] if isinstance(value, Node) else str(value)


@writes(Var)
def _var(e: Var, p: ExprPrinter) -> Text:
    return p.names.of(e), ATOM


@writes(Const)
def _const(e: Const, p: ExprPrinter) -> Text:
    text, plain = _number(e)
    if not plain:
        return f"{e.dtype}({text})", ATOM
    return text, _UNARY if text.startswith("-") else ATOM


def _number(e: Const) -> tuple[str, bool]:
    """Returns the digits of a constant, and whether they stand for its type without naming it."""
    value = e.value
    if not isinstance(value, float):
        return str(value), e.dtype is INDEX or e.dtype.is_bool
    if isnan(value) or isinf(value):
        return f'"{value}"', False
    return shortest(value, e.dtype), e.dtype is f32


def shortest(value: float, dtype: DType) -> str:
    """Returns the shortest decimal that reads back (by way of a double) as *value*, a finite float of *dtype*."""
    if dtype is f64:
        return repr(value)
    with np.errstate(over="ignore"):
        for digits in range(1, 10):
            candidate = float(f"{value:.{digits}g}")
            if dtype.numpy.type(candidate) == value:
                return repr(candidate)
    return repr(value)


@writes(Binary)
def _binary(e: Binary, p: ExprPrinter) -> Text:
    level = e.precedence
    if level == 0:
        return p.call(e.symbol, e.a, e.b)
    left = p.operand(e.a, _left_level(e))
    return f"{left} {e.symbol} {p.operand(e.b, level + 1)}", level


_ALIKE: Final = (6, 7)  # + - and * / // % associate to the left among themselves, in Python as here


def _left_level(e: Binary) -> int:
    """The level from which a left operand needs no parentheses.

    Python's `& ^ | << >>` differ in precedence, and its comparisons chain, so only the same operator needs no parentheses.
    """
    if e.precedence in _ALIKE or (type(e.a) is type(e) and not isinstance(e, Comparison)):
        return e.precedence
    return e.precedence + 1


@writes(Dot)
def _dot(e: Dot, p: ExprPrinter) -> Text:
    return p.call("dot", e.acc, e.a, e.b)


@writes(Neg)
def _neg(e: Neg, p: ExprPrinter) -> Text:
    if isinstance(e.a, Const):  # `-3` is a constant
        return p.call("neg", e.a)
    return f"-{p.operand(e.a, _UNARY)}", _UNARY


@writes(Not)
def _not(e: Not, p: ExprPrinter) -> Text:
    if e.dtype.is_bool:
        return f"not {p.operand(e.a, _NOT)}", _NOT
    return f"~{p.operand(e.a, _UNARY)}", _UNARY


@writes(Select)
def _select(e: Select, p: ExprPrinter) -> Text:
    return p.call("select", e.cond, e.then, e.other)


@writes(Cast)
def _cast(e: Cast, p: ExprPrinter) -> Text:
    if isinstance(e.a, Const):  # `i32(3)` is a constant
        return p.call("cast", e.dtype.name, e.a)
    return p.call(e.dtype.name, e.a)


@writes(Reinterpret)
def _reinterpret(e: Reinterpret, p: ExprPrinter) -> Text:
    return p.call("reinterpret", e.dtype.name, e.a)


@writes(Ramp)
def _ramp(e: Ramp, p: ExprPrinter) -> Text:
    return p.call("ramp", e.base, e.stride, e.lanes)


@writes(Broadcast)
def _broadcast(e: Broadcast, p: ExprPrinter) -> Text:
    return p.call("broadcast", e.value, e.lanes)


@writes(Shuffle)
def _shuffle(e: Shuffle, p: ExprPrinter) -> Text:
    return p.call("shuffle", e.a, e.b, *e.picks)


@writes(Apply)
def _apply(e: Apply, p: ExprPrinter) -> Text:
    return p.call(e.fn, *e.args)


def print_expr(e: Expr, names: Names | None = None) -> str:
    """Returns the text of *e*; variables of one name get suffixes, unless *names* has named them already."""
    return ExprPrinter(Names() if names is None else names)(e)


def _repr(e: Expr) -> str:
    return print_expr(e) if is_small(e, _REPR_LIMIT) else f"<{type(e).__name__} of type {e.dtype}, too large to show>"


Expr.__repr__ = _repr  # type: ignore[method-assign, assignment]
