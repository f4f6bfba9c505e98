"""Compiles rule tables to Python: one function per operator and kind of type, made of `type(v) is T` tests.

A row that does not apply is refused by one or two such tests, about twenty times cheaper than a `match` statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from weft.ir import expr as ir
from weft.ir.bounds.fold import constant_value, fold_constants
from weft.ir.expr.base import Expr, Value
from weft.ir.expr.constructors import TRUE, as_expr, broadcast, const
from weft.ir.expr.node import Node
from weft.ir.expr.nodes import Broadcast, Const, Ramp, Select
from weft.ir.simplifier.rule_patterns import Pat, Rule

Simplify: TypeAlias = Callable[[Expr], Expr]
Compiled: TypeAlias = Callable[[Any, Simplify], "Expr | None"]


def compile_rules(rows: Iterable[Rule]) -> dict[type[Node], Compiled]:
    """Compiles *rows* to one function per operator, (node, simplify) -> replacement or None; earlier rows go first."""
    groups: dict[type[Node], list[Rule]] = {}
    for r in rows:
        if not isinstance(r.lhs.kind, str):
            groups.setdefault(r.lhs.kind, []).append(r)
    return {cls: _compile(cls, group) for cls, group in groups.items()}


def _compile(cls: type[Node], rows: list[Rule]) -> Compiled:
    lines = ["def simplify_node(n, simplify):"]
    for f in _fields(cls):
        lines.append(f" n_{f} = n.{f}; t_{f} = type(n_{f})")
    for r in rows:
        writer = _Writer()
        for f, kid in zip(_fields(cls), r.lhs.kids, strict=True):
            writer.match(kid, f"n_{f}", f"t_{f}")
        if r.when is not None:
            writer.tests.append(f"simplify({writer.build(r.when, 'n_a.dtype.element')}) is TRUE")
        lines.append(f" if {' and '.join(writer.tests) or 'True'}: return {writer.build(r.rhs, 'n.dtype')}")
    scope: dict[str, Any] = dict(_SCOPE)
    exec("\n".join([*lines, " return None"]), scope)
    made: Compiled = scope["simplify_node"]
    return made


def _fields(cls: type[Node]) -> tuple[str, ...]:
    return tuple([f for f in cls.__match_args__ if f not in ("lanes", "dtype")])


class _Writer:
    """Writes, as Python source, the tests that match a pattern and the expression that builds one."""

    def __init__(self) -> None:
        self.tests: list[str] = []
        self.bound: dict[str, str] = {}

    def match(self, p: Pat, at: str, kind: str) -> None:
        """Adds the tests for *p* against the expression *at*, whose type is *kind*."""
        if p.kind == "x":
            if p.name in self.bound:
                self.tests.append(f"{at} is {self.bound[p.name]}")
            self.bound.setdefault(p.name, at)
        elif p.kind == "c":
            self.tests.append(f"{kind} in CONSTANTS and constant_value({at}) is not None")
            self.bound[p.name] = at
        elif p.kind == "=":
            self.tests.append(f"{kind} in CONSTANTS and is_literal({at}, {p.value!r})")
        elif not isinstance(p.kind, str):
            self.tests.append(f"{kind} is {p.kind.__name__}")
            for f, kid in zip(_fields(p.kind), p.kids, strict=True):
                self.match(kid, f"{at}.{f}", f"type({at}.{f})")

    def build(self, p: Pat, dtype: str) -> str:
        """Returns source for *p*; *dtype* is source for the type of a literal that stands alone."""
        if p.kind in ("x", "c"):
            return self.bound[p.name]
        if p.kind == "=":
            return f"const({p.value!r}, {dtype})"
        if p.kind == "lanes":
            return "const(n.dtype.lanes, n_a.dtype.element)"
        if p.kind == "fold":
            return f"fold({self.build(p.kids[0], dtype)})"
        if p.kind is Ramp:
            return f"Ramp({', '.join([self.build(k, 'n.dtype.element') for k in p.kids])}, n.dtype.lanes)"
        if p.kind is Broadcast:
            return f"broadcast({self.build(p.kids[0], 'n.dtype.element')}, n.dtype.lanes)"
        assert not isinstance(p.kind, str)
        kids = [repr(k.value) if k.kind == "=" else self.build(k, dtype) for k in p.kids]
        return f"{'select(' if p.kind is Select else f'make({p.kind.__name__}, '}{', '.join(kids)})"


def _is_literal(e: Expr, value: Value) -> bool:
    found = constant_value(e)
    if type(found) is float:
        return found.hex() == float(value).hex()
    return found == value and (type(found) is bool) == (type(value) is bool)


def _make(cls: Any, *kids: Expr | Value) -> Expr:
    """Builds an operator; plain numbers take the type of the other operands, scalars beside a vector are broadcast."""
    nodes = [k for k in kids if isinstance(k, Expr)]
    lanes = max([k.dtype.lanes for k in nodes])
    element = nodes[0].dtype.element
    made: Expr = cls(*[broadcast(as_expr(k, element), lanes) for k in kids])
    return made


def _select(cond: Expr, then: Expr | Value, other: Expr | Value) -> Expr:
    like = next(k.dtype for k in (then, other) if isinstance(k, Expr))
    return Select(cond, as_expr(then, like), as_expr(other, like))


_SCOPE: Final[dict[str, Any]] = {
    **{c.__name__: c for c in vars(ir).values() if isinstance(c, type) and issubclass(c, Expr)},
    "CONSTANTS": frozenset({Const, Broadcast}),
    "TRUE": TRUE,
    "constant_value": constant_value,
    "fold": fold_constants,
    "is_literal": _is_literal,
    "make": _make,
    "select": _select,
    "broadcast": broadcast,
    "const": const,
}
