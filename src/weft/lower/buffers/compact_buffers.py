"""Shrinks each local buffer to the box that is accessed while it is allocated, and dissolves the blocks.

    for i in range(8):                                    for i in range(8):
        alloc B[8, 4]                                         alloc B[4]
        for j in range(4):                                    for j in range(4):
            with block("B", vi=spatial(8, i), ...):    ->         B[j] = A[i, j] + 1
                B[vi, vj] = A[vi, vj] + 1
        ...

The box of a dimension begins at the smallest index as the loops inside the allocation run, in terms of the loops around it; its
width is a constant or, for memory of any size, an expression of symbolic sizes. A dimension that can't be bounded so stays whole,
and dimensions of one element are dropped. Boxes are computed from blocks, whose regions and predicates are the most exact, which
are then dissolved by `lower_blocks`, since the new indices use the loops around a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.ir import ADDRESSES, ONE, ZERO, Bounds, Const, Ends, Expr, Var, free_vars, hull, index, nodes_with, simplify
from weft.loop import Address, Alloc, Block, Buffer, Call, Function, Program, Stmt, View
from weft.lower.access_rewriter import Access, AccessRewriter
from weft.lower.analysis.buffer_accesses import Place, Use, Uses, find_uses, vars_between
from weft.lower.buffers.lower_blocks import dissolve
from weft.lower.buffers.place_allocations import relaxed
from weft.lower.stmt_rewriter import Steps, map_functions, size_bounds
from weft.targets import Sight, sight_of


def compact_buffers(program: Program) -> Program:
    """Returns *program* with local buffers shrunk and without blocks."""
    return map_functions(program, _compacted)


def _compacted(function: Function) -> Stmt:
    uses = find_uses(function)
    plans = {b: plan for b in uses.allocs if (plan := _plan(b, uses)) is not None}
    plain = function.with_body(dissolve(function))
    return _Compact(plans, size_bounds(function)).rewrite(plain.body) if plans else plain.body


@dataclass(frozen=True, eq=False)
class Plan:
    """The smaller buffer, and for each dimension that it keeps, its number and the index that becomes 0."""

    buffer: Buffer
    kept: tuple[tuple[int, Expr], ...]

    def moved(self, indices: tuple[Expr, ...], bounds: Bounds) -> tuple[Expr, ...]:
        """Returns where in the smaller buffer the element at *indices* is."""
        if not self.kept:
            return (ZERO,)
        return tuple([indices[d] if base is ZERO else simplify(indices[d] - base, bounds) for d, base in self.kept])


def _plan(buffer: Buffer, uses: Uses) -> Plan | None:
    """Returns how *buffer* shrinks; None if it does not, or is seen through a view. Strides of its own are kept."""
    alloc, mine = uses.allocs[buffer], uses.of[buffer]
    if not mine or any(isinstance(u.place.stmt, View) for u in mine):
        return None
    outer = set(vars_between(None, alloc))
    ranges = _ranges(mine, alloc, buffer, outer)
    if all(base is ZERO and width is size for (base, width), size in zip(ranges, buffer.shape, strict=True)):
        return None
    kept = tuple([(d, base) for d, (base, width) in enumerate(ranges) if width is not ONE])
    shape = [ranges[d][1] for d, _ in kept] or [ONE]
    strides = None if buffer.strides is None or not kept else [buffer.strides[d] for d, _ in kept]
    made = Buffer(buffer.name, shape, buffer.dtype, buffer.scope, strides)
    passed = _passed_along(buffer, mine)
    return None if _moves(buffer, made, [(k, d) for k, (d, _) in enumerate(kept) if d in passed]) else Plan(made, kept)


def _passed_along(buffer: Buffer, uses: list[Use]) -> set[int]:
    """Returns the dimensions along which a callee may rely on the strides of *buffer*, of which it is passed an address.

    An instruction relies on those of the region that its block declares; a dimension of one element has none.
    """
    found: set[int] = set()
    for u in uses:
        s = u.place.stmt
        if isinstance(s, Block | Call) and any(
            isinstance(n, Address) and n.buffer is buffer for n in nodes_with(ADDRESSES, s)
        ):
            found |= {d for d, (a, b) in enumerate(u.box) if a is not b}
    return found


def _moves(old: Buffer, new: Buffer, kept: Sequence[tuple[int, int]]) -> bool:
    """Tells whether strides of the smaller buffer differ from those of the old one, in its dimensions *kept*, by number."""
    before, after = old.row_major_strides(), new.row_major_strides()
    return any(simplify(after[k] - before[d]) is not ZERO for k, d in kept)


def _ranges(uses: list[Use], alloc: Place, buffer: Buffer, outer: set[Var]) -> list[tuple[Expr, Expr]]:
    """Returns the base and the width of each dimension of the box that all *uses* access."""
    ends = [relaxed(u, alloc) for u in uses]
    result: list[tuple[Expr, Expr]] = []
    for d, size in enumerate(buffer.shape):
        found: Ends | None = None
        for k, e in enumerate(ends):
            one = None if e[d] is None else (e[d][0], e[d][1])  # type: ignore[index]
            found = one if k == 0 else hull(found, one, alloc.bounds)
            if found is None:
                break
        result.append(_range(found, size, alloc.bounds, outer, is_fixed=sight_of(buffer.scope) is not Sight.GRID))
    return result


def _range(ends: Ends | None, size: Expr, bounds: Bounds, outer: set[Var], *, is_fixed: bool) -> tuple[Expr, Expr]:
    """Returns the base and the width between *ends*; the whole dimension where that is no less, or varies with a loop.

    So it is where the width depends on symbolic sizes and the dimension does not, of memory whose size *is_fixed*.
    """
    whole = (ZERO, size)
    if ends is None:
        return whole
    base = simplify(ends[0], bounds)
    width = simplify(ends[1] - ends[0] + ONE, bounds)
    if any(v in outer for v in free_vars(width)):
        most = bounds.of(width).hi
        if most is None:
            return whole
        width = index(most)
    if not isinstance(width, Const):
        is_whole = width is size or (is_fixed and isinstance(size, Const))
    else:
        is_whole = isinstance(size, Const) and int(width.value) >= int(size.value)
    if is_whole:
        return whole
    return base, width


class _Compact(AccessRewriter):
    """Replaces the planned buffers, once blocks are gone."""

    def __init__(self, plans: dict[Buffer, Plan], bounds: Bounds) -> None:
        super().__init__(bounds)
        self.plans = plans
        self.made = {b: plan.buffer for b, plan in plans.items()}

    def moved(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Access | None:
        plan = self.plans.get(buffer)
        return None if plan is None else (plan.buffer, plan.moved(indices, self.bounds))

    def renamed(self) -> Mapping[Buffer, Buffer]:
        return self.made

    def visit_alloc(self, s: Alloc) -> Steps:
        body = yield s.body
        return Alloc(self.made.get(s.buffer, s.buffer), body)
