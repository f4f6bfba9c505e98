"""Loop partitioning (index-set splitting): cuts loops at the points where a guard changes, so that the long part runs without it.

    for i in range(7):                              for i in range(6):
        for j in range(4):                              for j in range(4):
            if i * 4 + j < 26:          ->                  B[i * 4 + j] = 0.0
                B[i * 4 + j] = 0.0                  for j in range(4):
                                                        if j < 2:
                                                            B[24 + j] = 0.0

The guards are the conditions of `if`s and of selects: remainders of splits that do not divide, borders of padded windows, pieces
of a concatenation. A parallel loop is not cut but tests once for each iteration which of two bodies to run. The code grows, so
only bodies within a size limit are copied, and the borders are cut again only where vectors in registers are guarded one by one:
those branches take longer than all else in a tile, and a few such tiles would dominate the run time. A concatenation is cut at
either end of each piece, so that only a vector with elements of two compares: 61 rows of twice 1337 bytes took 145 us, half of
them byte by byte under masks, and take 4 (Zen 4 held to AVX2, 2026-11-28).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.cost import LONG_BORDER, SHORTEST_CUT_VECTOR, SMALL_PART, CodeBudget, code_budget
from weft.ir import ONE, ZERO, Bounds, Const, Expr, Le, Lt, Var, all_of, free_vars, map_nodes, ne, simplify
from weft.loop import Alloc, For, If, LoopKind, Program, Seq, Stmt, Store, rename_fresh, seq, statements
from weft.lower.analysis.cut_points import Cut, Digit, best_cut, digits_of, length_of, range_of
from weft.lower.analysis.guard_conditions import (
    Guards,
    assume,
    between_pieces,
    opposite,
    stores_in,
    uses_registers,
)
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, extent_bounds, map_functions, size_bounds
from weft.targets import Target


def partition_loops(program: Program, target: Target) -> Program:
    """Returns *program* with loops cut so that most iterations run without guards."""
    return map_functions(program, lambda f: _Partition(size_bounds(f), code_budget(target)).rewrite(f.body))


class _Partition(BoundedRewriter):
    """Cuts loops from the outermost inwards; only the long part of a loop that was cut is looked at again."""

    def __init__(self, bounds: Bounds, budget: CodeBudget) -> None:
        super().__init__(bounds)
        self.budget = budget
        self.guards = Guards()
        self.rigid = 0  # depth inside unrolled or vectorized loops, or borders
        self.growth = 0

    def visit_for(self, s: For) -> Steps:
        guarded = self._may_cut(s) and bool(self.guards.of(s.body))
        cut = self._cut(s) if guarded else None
        stays = s.kind in (LoopKind.PARALLEL, LoopKind.BOUND)
        tests = [] if cut is None or not stays else [(Digit(s.var, s.extent), cut)]
        if guarded and (stays or cut is None):
            tests += self._digit_cuts(s)
        if tests:
            return (yield from self._tested(s, tests))
        if cut is None:
            return (yield from self._visited(s, rigid=s.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED)))
        return (yield from self._cut_apart(s, cut))

    def _cut_apart(self, s: For, cut: Cut) -> Steps:
        """Makes the long part and the borders on either side loops of their own."""
        self.growth += max(1, stores_in(s.body))
        end = s.begin + s.extent
        parts = [(s.begin, cut.begin), (cut.begin, cut.end), (cut.end, end)]
        made: list[Stmt] = []
        for k, (first, after) in enumerate(parts):
            extent = simplify(after - first, self.bounds)
            if extent is ZERO or (isinstance(extent, Const) and int(extent.value) <= 0):
                continue
            part = For(s.var, simplify(first, self.bounds), extent, s.kind, s.body, s.notes)
            if k == 1:
                part = _with_body(part, assume(s.body, cut.true))
            long = (
                k == 1
                or self._is_in_registers(s.body)
                or _is_worth_cutting(s.body, extent, s.extent, self.budget.border_body)
            )
            part = _fresh(part) if made else part
            if long and _pieces(s):
                made.append((yield part))
            else:
                made.append((yield from self._visited(part, rigid=not long)))
        return seq(*made)

    def _visited(self, s: For, *, rigid: bool) -> Steps:
        self.rigid += rigid
        body = yield from self.loop_body(s)
        self.rigid -= rigid
        return _with_body(s, body)

    def _tested(self, s: For, tests: list[tuple[Digit, Cut]]) -> Steps:
        """Keeps a loop whole; each iteration tests whether it is one of the long part."""
        few = next(((d, cut, ends) for d, cut in tests if (ends := _others(d, cut))), None)
        if few is not None and self._may_tell_apart(s, few[2]):
            return (yield from self._told_apart(s, *few, [t for t in tests if t[0] is not few[0]]))
        if not tests:
            return (yield from self._visited(s, rigid=False))
        self.growth += max(1, stores_in(s.body))
        bounds = extent_bounds(self.bounds, s)
        inside = simplify(all_of([c for d, cut in tests for c in (cut.begin <= d.index, d.index < cut.end)]), bounds)
        true = [g for _, cut in tests for g in cut.true]
        main = yield from self._visited(_with_body(s, assume(s.body, true)), rigid=False)
        rests = [(simplify(d.extent - (cut.end - cut.begin), self.bounds), d.extent) for d, cut in tests]
        long = any(_is_worth_cutting(s.body, rest, whole, self.budget.border_body) for rest, whole in rests)
        border = yield from self._visited(_with_body(s, rename_fresh(s.body)), rigid=not long)
        return _with_body(s, If(inside, _body_of(main), _body_of(border)))

    def _told_apart(
        self, s: For, digit: Digit, cut: Cut, values: Sequence[Expr], others: list[tuple[Digit, Cut]]
    ) -> Steps:
        """Gives a border of one value at either end a body of its own, in which the digit is constant, which decides guards."""
        self.growth += len(values) * max(1, stores_in(s.body))
        made = yield from self._tested(_with_body(s, assume(s.body, cut.true)), others)
        for value in values:
            border = _with_body(s, map_nodes(s.body, None, memo={digit.index: value}))
            other = yield from self._tested(border, others)
            made = _with_body(s, If(ne(digit.index, value), _body_of(made), rename_fresh(_body_of(other))))
        return made

    def _may_tell_apart(self, s: For, values: Sequence[Expr]) -> bool:
        """Answers whether each of *values* of a digit may have a body of its own: two of them, if registers gain by it."""
        return (len(values) == 1 or self._is_in_registers(s.body, s.var)) and self._may_copy(s, len(values))

    def _may_cut(self, s: For) -> bool:
        """Answers whether a loop is one to cut, and its body small enough to be copied."""
        if self.rigid or s.kind is LoopKind.UNROLLED or s.extent is ONE:
            return False
        if s.kind is LoopKind.VECTORIZED and (length_of(s.extent) <= SHORTEST_CUT_VECTOR or uses_registers(s.body)):
            return False
        return self._may_copy(s) and self._decided_in(s) * SMALL_PART >= stores_in(s.body)

    def _may_copy(self, s: For, times: int = 1) -> bool:
        """Answers whether the body of a loop is small enough for this number of copies."""
        size = stores_in(s.body)
        return size <= self.budget.partitioned_body and self.growth + times * size <= self.budget.partition_growth

    def _decided_in(self, s: For) -> int:
        """Returns the stores in those parts of a loop whose guards its cut decides: if these are few, loops inside it are cut."""
        return sum(stores_in(p) for p in _parts_of(s) if any(s.var in free_vars(g) for g in self.guards.of(p)))

    def _decides_much(self, s: For, cut: Cut) -> bool:
        """Answers whether *cut* decides guards in more of a nest than a small part, such as the padding of a tile's input."""
        true, parts = set(cut.true), _parts_of(s, of_nest=True)
        decided = [p for p in parts if not true.isdisjoint(self.guards.of(p))] if true else parts
        return sum(map(stores_in, decided)) * SMALL_PART >= stores_in(s.body)

    def _is_in_registers(self, body: Stmt, var: Var | None = None) -> bool:
        """Answers whether vectors in registers are guarded one by one: the branches take longer than the arithmetic.

        With *var*, only the guards that use it count.
        """
        guarded = [t for t in statements(body) if isinstance(t, Store | If) and self.guards.of(t) and uses_registers(t)]
        return any(var is None or var in free_vars(g) for t in guarded for g in self.guards.of(t))

    def _cut(self, s: For) -> Cut | None:
        """Returns where to cut *s*, if anywhere."""
        found = [c for g in self.guards.of(s.body) if s.var in free_vars(g) and (c := range_of(g, s, self.bounds))]
        without = [c for g in _pieces(s) if (c := range_of(opposite(g), s, self.bounds))]
        found += [replace(c, true=()) for c in without]  # the loop's range then decides the select
        return best_cut(found, s, self.bounds) if found else None

    def _digit_cuts(self, s: For) -> list[tuple[Digit, Cut]]:
        """Returns where to cut the digits that a loop fused from several consists of: `v % c`, `v // c % d`."""
        guards = self.guards.of(s.body)
        made: list[tuple[Digit, Cut]] = []
        for digit in digits_of(guards, s, self.bounds):
            cut = digit.cut(guards, s, self.bounds)
            if cut is not None and self._decides_much(s, cut):
                made.append((digit, cut))
        return made


def _pieces(s: For) -> list[Lt | Le]:
    """Returns the comparisons that choose pieces of a concatenation by a loop's iteration; none where tiles are in registers.

    Either piece may be most of the loop, so that all parts of it are cut again, which ends as they get shorter: of an extent that
    is not known, they may not.
    """
    if uses_registers(s.body) or not isinstance(s.extent, Const):
        return []
    return [g for g in between_pieces(s.body) if s.var in free_vars(g)]


def _others(digit: Digit, cut: Cut) -> tuple[Expr, ...]:
    """Returns the values of *digit* outside *cut* if there is no more than one at either end."""
    first, after = simplify(cut.begin), simplify(cut.end)
    last, end = simplify(digit.extent - ONE), simplify(digit.extent)
    if first not in (ZERO, ONE) or after not in (last, end):
        return ()
    return ((ZERO,) if first is ONE else ()) + ((last,) if after is last else ())


def _parts_of(s: For, *, of_nest: bool = False) -> tuple[Stmt, ...]:
    """Returns the statements of a loop's body, inside its allocations, and, *of_nest*, inside the loops that are all its body."""
    body = s.body
    while isinstance(body, Alloc) or (of_nest and isinstance(body, For) and body.kind is not LoopKind.UNROLLED):
        body = body.body
    return body.body if isinstance(body, Seq) else (body,)


def _with_body(s: For, body: Stmt) -> For:
    return For(s.var, s.begin, s.extent, s.kind, body, s.notes)


def _body_of(s: Stmt) -> Stmt:
    return s.body if isinstance(s, For) else s


def _fresh(s: For) -> For:
    made = rename_fresh(s)
    if not isinstance(made, For):
        raise TypeError("a loop was renamed to something else")
    return made


def _is_worth_cutting(body: Stmt, border: Expr, whole: Expr, small: int) -> bool:
    """Answers whether the *border* of a *whole* is worth cutting, too.

    It is if it is a large part of the whole. A border of unknown size may be the whole loop: it is cut again if the body has no
    more than *small* stores.
    """
    if not isinstance(whole, Const):
        return stores_in(body) <= small
    return isinstance(border, Const) and int(border.value) * LONG_BORDER >= int(whole.value)
