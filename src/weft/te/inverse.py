"""Inverts accesses: solves for the indices of the instances of a formula that read a given element.

    x[2 * i + k]   at element e          i = (e - k) // 2, for each k, where (e - k) % 2 == 0 and 0 <= i < n
    x[i // 6, i % 6]   at (e, f)         i = 6 * e + f
    x[i // 2]   at e                     i = 2 * e + r, for each r in 0 .. 1
    x[t[i]]   at e                       each i where t[i] == e

It turns "each instance adds to the element it reads" into "each element sums over the instances that read it", which needs
no atomic operations. The idea is that of Li et al., "Differentiable programming for image processing and deep learning in
Halide" (SIGGRAPH 2018), section 4.

How it is solved. Variables under `//` and `%` are split into digits, which makes the equations linear. An equation whose
scales are those of a mixed radix gives all of its digits at once; of any other, one variable is computed from the others, which
stay free. An equation that is not linear becomes a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from weft.ir import (
    ONE,
    ZERO,
    Bounds,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Node,
    Var,
    ceil_div,
    eq,
    extremes,
    free_vars,
    index,
    linear_terms,
    map_nodes,
    post_order,
    prove,
    simplify,
    substitute,
)
from weft.te.tensor import Read


@dataclass(frozen=True)
class Preimage:
    """The instances that touch an element: their indices as *values*, for all values of the *free* variables, where all of
    *where* holds.

    *free* has the extents; *bounds* the ranges of the free variables, too.
    """

    values: Mapping[Var, Expr]
    free: Mapping[Var, Expr]
    where: Sequence[Expr]
    bounds: Bounds


def preimage(
    indices: Sequence[Expr], element: Sequence[Var], variables: Mapping[Var, Expr], bounds: Bounds
) -> Preimage:
    """Solves `indices == element` for *variables*, each of which runs from 0 below its extent.

    *bounds* has the ranges of the variables of *element*, and of sizes.
    """
    system = _System(variables, bounds)
    system.add(element, indices)
    system.solve()
    return system.result()


@dataclass(frozen=True)
class _Term:
    """A variable with its positive coefficient in an equation; one that is *reversed* counts down from its last value."""

    var: Var
    scale: Expr
    extent: Expr
    _: KW_ONLY
    reversed: bool

    def count(self, value: Expr) -> Expr:
        """Converts between the variable and its count in the equation: the same, or counted down from the last value."""
        return self.extent - ONE - value if self.reversed else value


Equation: TypeAlias = tuple[Expr, Expr]
Method: TypeAlias = Callable[[Expr, list[_Term]], dict[_Term, Expr] | None]


class _System:
    """A system of equations in known and unknown variables; *steps* are the solutions, in the order in which they were found."""

    def __init__(self, variables: Mapping[Var, Expr], bounds: Bounds) -> None:
        self.bounds = bounds
        self.given = tuple(variables)
        self.unknown: dict[Var, Expr] = {}  # extents
        self.steps: list[tuple[Var, Expr]] = []
        self.equations: list[Equation] = []
        self.definitions: list[Equation] = []  # of the names given to sums
        self.guards: list[Expr] = []
        for v, extent in variables.items():
            self.steps.append((v, ZERO if extent is ONE else self._new(v.name, extent)))

    def _new(self, name: str, extent: Expr) -> Var:
        """Returns a new variable to solve for."""
        v = Var(name)
        self.unknown[v] = simplify(extent, self.bounds)
        self.bounds = self.bounds.bind(v, ZERO, self.unknown[v] - ONE)
        return v

    def _require(self, cond: Expr) -> None:
        """Takes a condition on the solution, unless it holds anyway."""
        if not prove(cond, self.bounds):
            self.guards.append(cond)

    def add(self, element: Sequence[Var], indices: Sequence[Expr]) -> None:
        """Takes the equations, as linear ones where that is possible."""
        start = dict(self.steps)
        made = [self._without_sums(simplify(substitute(i, start), self.bounds)) for i in indices]
        self.equations = list(zip(element, made, strict=True))
        for v in list(self.unknown):
            self._split(v)

    # Division and remainder

    def _without_sums(self, e: Expr) -> Expr:
        """Gives a name to each sum of variables that is divided, which is then a variable of its own."""

        def change(n: Node) -> Node | None:
            if not isinstance(n, FloorDiv | FloorMod) or _divided(n.a) is not None:
                return None
            return type(n)(self._named(n.a), n.b)

        return map_nodes(e, change)

    def _named(self, e: Expr) -> Expr:
        """Returns the name of a sum that is never negative, and of which the largest value is known; else the sum itself."""
        known = next((f for f, definition in self.definitions if definition is e), None)
        if known is not None:
            return known
        ends = extremes(e, list(self.unknown), self.bounds) if linear_terms(e, self.unknown) else None
        if ends is None or not prove(ends[0] >= ZERO, self.bounds):
            return e
        made = self._new("f", ends[1] + ONE)
        self.definitions.append((made, e))
        return made

    def _split(self, v: Var) -> None:
        """Replaces *v* by the sum of its digits, if it is divided anywhere."""
        nodes = [n for _, e in (*self.equations, *self.definitions) for n in post_order(e)]
        cuts = self._radix(list(dict.fromkeys(d[1] for n in nodes if (d := _cut(n)) is not None and d[0] is v)))
        if not cuts:
            return
        extent = self.unknown.pop(v)
        whole: Expr = ZERO
        for n, cut in enumerate(cuts):
            size = cuts[n + 1] // cut if n + 1 < len(cuts) else ceil_div(extent, cut)
            whole = whole + self._new(f"{v.name}{n}", simplify(size, self.bounds)) * cut
        self._learn(v, whole)
        self._require(whole < extent)

    def _radix(self, cuts: list[Expr]) -> list[Expr]:
        """Orders the places where digits begin, the first of them 1; none if they are not multiples of one another."""
        cuts = [c for c in cuts if c is not ONE]
        if any(not isinstance(c, Const) for c in cuts):
            return [ONE, *cuts] if len(cuts) == 1 and prove(cuts[0] >= ONE, self.bounds) else []
        sizes = sorted({1, *[int(c.value) for c in cuts if isinstance(c, Const)]})
        exact = sizes[0] == 1 and all(b % a == 0 for a, b in pairwise(sizes))
        return [index(n) for n in sizes] if exact and len(sizes) > 1 else []

    def _learn(self, v: Var, value: Expr) -> None:
        """Records the solution of *v*, and substitutes it in the equations."""
        self.unknown.pop(v, None)
        self.steps.append((v, value))
        for equations in (self.equations, self.definitions):
            for n, (known, e) in enumerate(equations):
                equations[n] = (substitute(known, {v: value}), simplify(substitute(e, {v: value}), self.bounds))

    # Solving

    def solve(self) -> None:
        """Solves the equations, then the definitions of sums: outer ones, which were named last, first."""
        self._settle(self.equations)
        while self.definitions:
            self._settle([self.definitions.pop()])

    def _settle(self, equations: list[Equation]) -> None:
        """Solves *equations*: first those that give all of their variables, then those that leave some free."""
        self.equations = equations
        while self.equations:
            if not self._progress(self._exactly) and not self._progress(self._freely):
                for known, e in self.equations:
                    self._require(eq(known, e))
                self.equations = []

    def _progress(self, method: Method) -> bool:
        """Solves the first equation that *method* can solve; tells whether there was one."""
        for n, (known, e) in enumerate(self.equations):
            solved = self._solved(known, e, method)
            if solved is not None:
                del self.equations[n]
                for t, count in solved.items():
                    value = simplify(t.count(count), self.bounds)
                    self._require(value >= ZERO)
                    self._require(value < t.extent)
                    self._learn(t.var, value)
                return True
        return False

    def _solved(self, known: Expr, e: Expr, method: Method) -> dict[_Term, Expr] | None:
        found = linear_terms(e, self.unknown)
        if found is None or any(v in found[0] for v in free_vars(known)):
            return None
        left, terms = known - found[1], []
        for v, scale in found[0].items():
            extent = self.unknown[v]
            if prove(scale >= ONE, self.bounds):
                terms.append(_Term(v, scale, extent, reversed=False))
            elif prove(scale < ZERO, self.bounds):
                left = left - scale * (extent - ONE)
                terms.append(_Term(v, simplify(ZERO - scale), extent, reversed=True))
            else:
                return None
        return method(simplify(left, self.bounds), terms)

    def _exactly(self, left: Expr, terms: list[_Term]) -> dict[_Term, Expr] | None:
        """Reads all digits of `left == sum(scale * digit)`; None if the scales are not those of a mixed radix."""
        result: dict[_Term, Expr] = {}
        pending = list(terms)
        while pending:
            top = next((t for t in pending if self._exceeds(t, pending)), None)
            if top is None:
                return None
            pending.remove(top)
            result[top] = left // top.scale
            left = simplify(left % top.scale, self.bounds)
        self._require(eq(left, ZERO))
        return result

    def _exceeds(self, top: _Term, terms: list[_Term]) -> bool:
        """Tells whether the other terms together never reach the scale of *top*."""
        rest: Expr = ZERO
        for t in terms:
            if t is not top:
                rest = rest + t.scale * (t.extent - ONE)
        return prove(rest < top.scale, self.bounds)

    def _freely(self, left: Expr, terms: list[_Term]) -> dict[_Term, Expr] | None:
        """Computes the variable of the largest range from the others, which keep the sum over them short."""
        pivot = max(terms, key=lambda t: int(t.extent.value) if isinstance(t.extent, Const) else _SYMBOLIC)
        for t in terms:
            if t is not pivot:
                left = left - t.scale * t.count(t.var)
        left = simplify(left, self.bounds)
        self._require(eq(left % pivot.scale, ZERO))
        return {pivot: left // pivot.scale}

    def result(self) -> Preimage:
        """Returns the solution; variables that are still unknown are free."""
        known: dict[Var, Expr] = {}
        for v, value in reversed(self.steps):
            known[v] = simplify(substitute(value, known), self.bounds)
        guards = [simplify(substitute(g, known), self.bounds) for g in self.guards]
        kept = [g for g in dict.fromkeys(guards) if not prove(g, self.bounds)]
        return Preimage({v: known[v] for v in self.given}, self.unknown, sorted(kept, key=_reads_memory), self.bounds)


_SYMBOLIC: Final = 1 << 40
"""The assumed value of a symbolic extent in comparisons for the largest."""


def _divided(e: Node) -> tuple[Var, Expr] | None:
    """Returns the variable and the place where its digits begin, if *e* is a variable that is divided, or a remainder of one."""
    if isinstance(e, Var):
        return e, ONE
    if not isinstance(e, FloorDiv | FloorMod) or not _is_size(e.b):
        return None
    inner = _divided(e.a)
    if inner is None or isinstance(e, FloorMod):
        return inner
    return inner[0], inner[1] * e.b


def _cut(n: Node) -> tuple[Var, Expr] | None:
    """Returns the variable that *n* divides, and the place where it cuts its digits."""
    inner = _divided(n.a) if isinstance(n, FloorDiv | FloorMod) and _is_size(n.b) else None
    return None if inner is None else (inner[0], inner[1] * n.b)  # type: ignore[attr-defined]


def _is_size(e: Expr) -> bool:
    return isinstance(e, Const | Var)


def _reads_memory(e: Expr) -> bool:
    return any(isinstance(n, Read) for n in post_order(e))
