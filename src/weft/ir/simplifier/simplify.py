"""The simplifier: `simplify(e, bounds)` returns the canonical form of an expression under known bounds.

Sums and products of exact integers become ordered polynomials, `//` and `%` digits of them, comparisons are decided where
the bounds decide them, and everything else is rewritten by the rows of `ir.simplifier.algebra`. An expression that is canonical
already is returned as the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.ir import expr as ir
from weft.ir.bounds.bounds import EMPTY, Bounds
from weft.ir.bounds.fold import fold_constants
from weft.ir.bounds.interval import Interval
from weft.ir.bounds.polynomial import Poly, add_to, constant, is_exact, plus, poly_of, poly_to_expr, scaled, times
from weft.ir.expr.base import INDEX, Expr, Var
from weft.ir.expr.binary import Add, And, Comparison, Eq, FloorDiv, FloorMod, Le, Lt, Max, Min, Mul, Ne, Or, Sub
from weft.ir.expr.constructors import const
from weft.ir.expr.node import Node
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Ramp, Reinterpret, Select
from weft.ir.expr.order import order_key
from weft.ir.simplifier import divmod as division
from weft.ir.simplifier.algebra import KINDS, rules_for
from weft.ir.simplifier.casts import fewer_casts
from weft.ir.simplifier.comparisons import decide, equality, ordering
from weft.ir.simplifier.digits import recombine
from weft.ir.simplifier.elimination import is_worth_it, lowest, plain_low, range_of_sum
from weft.ir.simplifier.logic import tidied
from weft.ir.simplifier.rule_compiler import Compiled, compile_rules
from weft.support.dtypes import DType

_RING: Final = frozenset({Add, Sub, Mul, Neg})
_DIGITS: Final = frozenset({FloorDiv, FloorMod})
_OPEN: Final = (None, None)
_RULES: Final[dict[str, dict[type[Node], Compiled]]] = {kind: compile_rules(rules_for(kind)) for kind in KINDS}
_OF_TYPE: Final[dict[DType, dict[type[Node], Compiled]]] = {}


def simplify(e: Expr, bounds: Bounds = EMPTY) -> Expr:
    """Returns the canonical form of *e*, equal to it for all values of the variables within *bounds*."""
    if type(e) is Const:
        return e
    memo = bounds.memo_for("simplify")
    found: Expr | None = memo.get(e)
    return Simplifier(bounds, memo).simplify(e) if found is None else found


class Simplifier:
    """The simplifier under given bounds: a `Context` for its own parts."""

    __slots__ = ("_decided", "_memo", "_open", "bounds")

    def __init__(self, bounds: Bounds, memo: dict[Any, Any] | None = None) -> None:
        self.bounds = bounds
        self._memo: dict[Node, Node] = bounds.memo_for("simplify") if memo is None else memo
        self._decided: dict[Any, bool] = bounds.memo_for("at least")
        self._open: set[Any] = set()

    def simplify(self, e: Expr) -> Expr:
        """Returns the canonical form of *e*."""
        memo = self._memo
        stack: list[tuple[Node, Poly | None, bool]] = [(e, None, False)]  # (node, its polynomial, children done?)
        while stack:
            n, p, ready = stack.pop()
            if n in memo:
                continue
            if not ready:
                p = _sum_of(n)
                stack.append((n, p, True))
                last = stack[-1]
                for k in n.children() if p is None else [a for m in p for a in m]:
                    if k in memo:
                        continue
                    if type(k) is Const:
                        memo[k] = k
                    else:
                        stack.append((k, None, False))
                if stack[-1] is not last:
                    continue
                stack.pop()
            memo[n] = new = self._node(n) if p is None else self._sum(n, p)  # type: ignore[arg-type]
            memo.setdefault(new, new)
        found = memo[e]
        assert isinstance(found, Expr)
        return found

    def poly(self, e: Expr) -> Poly:
        """Returns the polynomial of the canonical form of *e*."""
        return poly_of(self.simplify(e))

    def range(self, p: Poly) -> Interval:
        """Returns an interval of *p*."""
        if not is_worth_it(p, self):
            return range_of_sum(p, self)
        top = lowest(scaled(p, -1), None, self)
        return Interval(lowest(p, None, self), None if top is None else -top)

    def is_at_least(self, p: Poly, least: int) -> bool:
        """Answers whether `p >= least` is certain."""
        plain = plain_low(p, self)
        if plain is not None and plain >= least:
            return True
        if not is_worth_it(p, self):
            return False
        key = (frozenset(p.items()), least)
        known = self._decided.get(key)
        if known is None:
            if key in self._open:
                return False
            self._open.add(key)
            found = lowest(p, least, self)
            self._open.discard(key)
            known = self._decided[key] = found is not None and found >= least
        return known

    def quotient(self, p: Poly, d: Poly, dtype: DType) -> Poly:
        """Returns the canonical form of `p // d`."""
        return division.floordiv(p, d, dtype, self)

    def remainder(self, p: Poly, d: Poly, dtype: DType) -> Poly:
        """Returns the canonical form of `p % d`."""
        return division.floormod(p, d, dtype, self)

    def _sum(self, n: Expr, p: Poly) -> Expr:
        """Rebuilds a sum in canonical order, its atoms having been simplified."""
        memo = self._memo
        has_digits = False
        for m in p:
            for a in m:
                if memo[a] is not a:
                    return self._built(recombine(self._with_atoms(p), self), n)
                has_digits = has_digits or type(a) in _DIGITS
        if has_digits:
            return self._built(recombine(p, self), n)
        if not hasattr(n, "canonical"):
            made = self._built(p, n)
            _remember(n, None if made is n else made)  # a node that remembers itself would not be freed
        known: Expr | None = n.canonical  # type: ignore[attr-defined]
        return n if known is None else known

    def _with_atoms(self, p: Poly) -> Poly:
        result: Poly = {}
        for m, k in p.items():
            term: Poly = {(): k}
            for a in m:
                new = self._memo[a]
                assert isinstance(new, Expr)
                term = times(term, poly_of(new))
            add_to(result, term)
        return result

    def _built(self, p: Poly, n: Expr) -> Expr:
        """Builds *p*; coefficients that do not fit the type leave *n* as it is."""
        limit = 1 << (n.dtype.bits - 1)
        for k in p.values():
            if not -limit < k < limit:
                return n
        return poly_to_expr(p, n.dtype)

    def _node(self, n: Node) -> Node:
        """Simplifies a node whose children are simplified."""
        if type(n) is Const:
            return n
        if type(n) is Var:
            return self._variable(n)
        memo, kids = self._memo, n.children()
        for k in kids:
            if memo[k] is not k:
                n = n.rebuild([memo[k] for k in kids])
                break
        if not isinstance(n, Expr) or type(n) is Const:
            return n
        better = self._better(n)
        return n if better is None or better is n else self.simplify(better)

    def _variable(self, v: Var) -> Expr:
        lo, hi = self.bounds.ranges.get(v, _OPEN)
        if (lo is None and hi is None) or (type(lo) is type(hi) is Const and lo.value < hi.value):
            return v
        value = self.bounds.of(v)
        if value.is_point and not v.dtype.is_float:
            assert value.lo is not None
            return const(value.lo, v.dtype)
        return v if lo is not hi or lo is None else self.simplify(lo)

    def _better(self, n: Expr) -> Expr | None:
        """Returns a simpler expression than *n*, or None."""
        if n.dtype.lanes == 1 and (engine := _ENGINES.get(type(n))) is not None:
            if is_exact(n.a.dtype):  # type: ignore[attr-defined]
                return engine(self, n)
        else:
            other = _scalarised(n)
            if other is not None:
                return other
        if isinstance(n, Apply) and self._needs_no_watch(n):
            return n.args[0]
        folded = fold_constants(n)
        if folded is not n:
            return folded
        if isinstance(n, And | Or) and n.dtype.lanes == 1 and (fewer := tidied(n, self)) is not None:
            return fewer
        if isinstance(n, Cast) and (shorter := fewer_casts(n, self.bounds)) is not None:
            return shorter
        if type(n) in _DECIDABLE and (value := self._only_value(n)) is not None:
            return value
        return self._by_rule(n)

    def _only_value(self, n: Expr) -> Expr | None:
        """Returns the one value that the bounds leave for *n*, no float; None where they leave several."""
        value = None if n.dtype.is_float else self.bounds.of(n)
        return None if value is None or value.lo is None or not value.is_point else const(value.lo, n.dtype)

    def _by_rule(self, n: Expr) -> Expr | None:
        rule = _rules_of(n).get(type(n))
        return rule(n, self.simplify) if rule else None

    def _division(self, n: FloorDiv | FloorMod) -> Expr | None:
        p, d = poly_of(n.a), poly_of(n.b)
        q = (self.quotient if type(n) is FloorDiv else self.remainder)(p, d, n.dtype)
        if n.dtype is not INDEX:  # arithmetic on data keeps its form
            return n.a if q == p else const(known, n.dtype) if (known := constant(q)) is not None else self._by_rule(n)
        return None if q == {(n,): 1} else self._built(q, n)

    def _comparison(self, n: Comparison) -> Expr | None:
        d = plus(poly_of(n.b), poly_of(n.a), -1)
        known = decide(type(n), d, self)
        if known is not None:
            return const(known, n.dtype)
        if n.a.dtype is not INDEX or _is_foreign(d):
            return self._by_rule(n)
        found = (ordering if type(n) in (Lt, Le) else equality)(type(n), d, n.a.dtype)
        self._memo.setdefault(found, found)
        return found

    def _needs_no_watch(self, n: Apply) -> bool:
        """Answers whether *n* is a `watched` scalar that certainly lies between its limits."""
        return n.fn == "watched" and n.dtype.lanes == 1 and self._is_between(*n.args)

    def _is_between(self, x: Expr, low: Expr, high: Expr) -> bool:
        above, below = plus(poly_of(x), poly_of(low), -1), plus(poly_of(high), poly_of(x), -1)
        return is_exact(x.dtype) and self.is_at_least(above, 0) and self.is_at_least(below, 0)

    def _choice(self, n: Min | Max) -> Expr | None:
        d = plus(poly_of(n.b), poly_of(n.a), -1)
        if self.is_at_least(d, 0):
            return n.a if type(n) is Min else n.b
        if self.is_at_least(scaled(d, -1), 0):
            return n.b if type(n) is Min else n.a
        if type(n.b) is not Const and (type(n.a) is Const or order_key(n.b) < order_key(n.a)):
            return type(n)(n.b, n.a)
        return self._by_rule(n)


_remember = Node.canonical.__set__  # type: ignore[attr-defined]  # nodes are immutable but for cached answers

_ENGINES: Final[dict[type[Node], Callable[[Simplifier, Any], Expr | None]]] = {
    FloorDiv: Simplifier._division,
    FloorMod: Simplifier._division,
    Min: Simplifier._choice,
    Max: Simplifier._choice,
    Lt: Simplifier._comparison,
    Le: Simplifier._comparison,
    Eq: Simplifier._comparison,
    Ne: Simplifier._comparison,
}
"""The laws of exact integers that are algorithms rather than rows."""

_DECIDABLE: Final = frozenset({Lt, Le, Eq, Ne, Select, Cast, Min, Max, FloorDiv, FloorMod, Not})
_HOME: Final = frozenset(c for c in vars(ir).values() if isinstance(c, type) and issubclass(c, Expr))


def _sum_of(n: Node) -> Poly | None:
    """Returns the polynomial of a sum or product that does index arithmetic; arithmetic on data keeps its order."""
    if type(n) not in _RING or not isinstance(n, Expr) or n.dtype is not INDEX:
        return None
    p = poly_of(n)
    return None if (n,) in p or _is_foreign(p) else p


def _is_foreign(p: Poly) -> bool:
    for m in p:
        for a in m:
            if type(a) not in _HOME:
                return True
    return False


def _rules_of(n: Expr) -> dict[type[Node], Compiled]:
    dtype = n.dtype
    if isinstance(n, Comparison):
        dtype = n.a.dtype
    elif type(n) is Not and isinstance(n.a, Comparison):
        dtype = n.a.a.dtype
    found = _OF_TYPE.get(dtype)
    if found is None:
        found = _OF_TYPE[dtype] = _RULES[_kind(dtype)] if dtype.is_int or dtype.is_float or dtype.is_bool else {}
    return found


def _kind(dtype: DType) -> str:
    if dtype.is_bool:
        return "bool"
    if dtype.is_float:
        return "float"
    return "exact" if is_exact(dtype.element) else "narrow" if dtype.kind == "int" else "unsigned"


def _scalarised(n: Expr) -> Expr | None:
    """An operator on broadcasts only is a broadcast of the operator on scalars."""
    kids = n.children()
    if n.dtype.lanes == 1 or isinstance(n, Ramp | Broadcast | Reinterpret) or type(n) not in _HOME:
        return None
    if not kids or not all(type(k) is Broadcast or (isinstance(k, Expr) and k.dtype.lanes == 1) for k in kids):
        return None
    inner = [k.value if isinstance(k, Broadcast) else k for k in kids]
    one = Cast(inner[0], n.dtype.element) if isinstance(n, Cast) else n.rebuild(inner)  # type: ignore[arg-type]
    assert isinstance(one, Expr)
    return Broadcast(one, n.dtype.lanes)
