"""`rfactor`: a reduction is factored into partial results along one of its loops, combined by a second reduction.

    for i in range(0, 8):                   for i in range(0, 8):
        for k0 in range(0, 4):                  for k0 in range(0, 4):
            for k1 in range(0, 16):    ->           for k1 in range(0, 16):
                C[i] += A[i, k0, k1]                    C_rf[i, k1] += A[i, k0, k1]
                                                for k1 in range(0, 16):
                                                    C[i] += C_rf[i, k1]

After Suriana, Adams and Kamil, "Parallel associative reductions in Halide" (CGO 2017).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.ir import Expr, Node, Var, all_of, conjuncts, map_nodes, select, substitute
from weft.loop import Axis, AxisKind, Block, Buffer, For, Function, Load, Stmt, Store, for_, make_block, seq
from weft.schedule.cursors.loop_nest import fresh_block_name
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import uses
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import Path, add_alloc, block_path, blocks_in, loops_on, replace, the_block, the_loop
from weft.schedule.legality.associativity import Combination, assign, assignments, combination_of
from weft.schedule.legality.bijection import is_injective, mixed_loops, reduces_all, starts_first
from weft.schedule.legality.flow_dependence import check_structured
from weft.schedule.legality.placement import check_movable, reduce_loops, written_buffers
from weft.schedule.rewriting.reduction_results import over_results


@primitive
def rfactor(fn: Function, block: BlockRef, loop: LoopRef, axis: int | None = None) -> tuple[Change, BlockRef]:
    """Computes *block* as partial results, one for each value of its reduction loop *loop*; returns their block.

    The partial results are one more dimension, number *axis* (by default the last), of a new buffer for each result. Sums are
    reassociated. Legal for a reduction by operators known to be associative, not yet decomposed.
    """
    path = block_path(fn, block)
    old = the_block(path)
    check_movable(fn, path, old)
    reduced = reduce_loops(path)
    factor = next((f for f in reduced if f.var is loop.var), None)
    if factor is None:
        loops = ", ".join(f.var.name for f in reduced) or "none"
        refuse(f"{old.name} does not reduce over {called(loop.var)}", old, f"the loops that it reduces over: {loops}")
    if old.init is None:
        refuse(f"{old.name} has no initialisation", old, "rfactor before decompose_reduction")
    start = min(path.index(f) for f in reduced)
    _check_loops(fn, path, old, the_loop(path[: start + 1]))
    partial = _partial(old, factor, axis)
    name = fresh_block_name(fn, f"{old.name}_rf")
    inner = [f for f in loops_on(path) if path.index(f) >= start]
    first = replace(path[start:], _partial_block(path, partial, name, reduced))
    body = replace(path[: start + 1], seq(first, _final_nest(path, partial, inner)))
    for b in reversed(list(partial.buffers.values())):
        body = add_alloc(body, b)
    return Change(fn.with_body(body)), BlockRef(name)


def _check_loops(fn: Function, path: Path, old: Block, outermost: For) -> None:
    """Refuses loops on which both spatial and reduce axes depend, or that compute some results twice."""
    check_structured(outermost)
    if mixed := mixed_loops(path):
        refuse(
            f"{called(mixed[0].var)} runs over the reduction and its results together",
            mixed[0],
            "fuse loops of the reduction only",
        )
    if not starts_first(path) or not reduces_all(fn, path):
        refuse(
            f"{old.name} does not reduce over whole loops",
            old,
            "each reduced axis must begin at 0 with its loops, and take all of its values in them",
        )
    if not is_injective(fn, path, outermost):
        refuse(
            f"{called(outermost.var)} computes some results of {old.name} more than once",
            outermost,
            "move the loop that repeats them outside",
        )
    written = set(written_buffers(old))
    for b in blocks_in(outermost):
        if b is not old and any(r.buffer in written for r in (*b.reads, *b.writes)):
            refuse(
                f"{b.name} uses the results of {old.name} in the loop, too",
                b,
                f"move {b.name} out of the loop {outermost.var.name}",
            )


@dataclass(frozen=True)
class _Partial:
    """The partial results along the loop *factor*: a buffer for each result, of which they are one more dimension."""

    found: Combination
    factor: For
    position: int
    buffers: Mapping[Buffer, Buffer]

    def at(self, indices: Sequence[Expr], lane: Expr) -> tuple[Expr, ...]:
        """Returns the indices of a partial result."""
        return (*indices[: self.position], lane, *indices[self.position :])

    def redirect(self, root: Stmt, lane: Var) -> Stmt:
        """Returns *root* reading and writing the partial results at *lane* instead of the results."""

        def change(n: Node) -> Node | None:
            if isinstance(n, Load) and n.buffer in self.buffers:
                return Load(self.buffers[n.buffer], self.at(n.indices, lane))
            if isinstance(n, Store) and n.buffer in self.buffers:
                return Store(self.buffers[n.buffer], self.at(n.indices, lane), n.value, n.mask)
            return None

        return map_nodes(root, change)


def _partial(block: Block, factor: For, axis: int | None) -> _Partial:
    """Returns the partial results of *block*; refuses a dimension that they can't be."""
    found = combination_of(block)
    buffers: dict[Buffer, Buffer] = {}
    rank = min(s.buffer.rank for s in found.stores)
    position = rank if axis is None else axis
    if not 0 <= position <= rank:
        refuse(f"the partial results can't be dimension {axis}", block, f"choose an axis from 0 to {rank}")
    for s in found.stores:
        b = s.buffer
        shape = (*b.shape[:position], factor.extent, *b.shape[position:])
        buffers[b] = Buffer(f"{b.name}_rf", shape, b.dtype)
    return _Partial(found, factor, position, buffers)


def _partial_block(path: Path, partial: _Partial, name: str, reduced: Sequence[For]) -> Block:
    """Returns the block of the partial results: spatial along the factor, a reduction along the other loops."""
    old, factor = the_block(path), partial.factor
    spatial = {a.var: Var(a.var.name) for a in old.axes if a.kind is AxisKind.SPATIAL}
    over = {f.var: Var(f"v{f.var.name}") for f in reduced}
    values: dict[Var, Expr] = dict(spatial)
    for a, b in zip(old.axes, old.bindings, strict=True):
        if a.kind is AxisKind.REDUCE:
            values[a.var] = substitute(b, over)
    lane = over[factor.var]
    kept = [
        (Axis(spatial[a.var], a.extent, AxisKind.SPATIAL), b)
        for a, b in zip(old.axes, old.bindings, strict=True)
        if a.var in spatial
    ]
    kept.insert(partial.position, (Axis(lane, factor.extent, AxisKind.SPATIAL), factor.var))
    kept += [(Axis(over[f.var], f.extent, AxisKind.REDUCE), f.var) for f in reduced if f is not factor]
    axes, bindings = [a for a, _ in kept], [b for _, b in kept]
    own, shared = _guards(path, factor, reduced)
    guarded = [
        Store(s.buffer, s.indices, select(substitute(own, over), s.value, Load(s.buffer, s.indices)), None)
        for s in partial.found.stores
    ]
    body = partial.redirect(substitute(assign(guarded), values), lane)
    init = partial.redirect(substitute(assign(_starts(old, partial.found)), values), lane)
    return make_block(name, axes, bindings, body, init, shared)


def _guards(path: Path, factor: For, reduced: Sequence[For]) -> tuple[Expr, Expr]:
    """Returns the part of the guard that depends on the loop *factor*, and the rest.

    Where the first part fails, a partial result is not updated, but must still be initialised. Refuses a part that also depends
    on loops over the results.
    """
    block = the_block(path)
    parts = conjuncts(block.predicate)
    own = [c for c in parts if uses(c, factor.var)]
    for f in loops_on(path):
        if f not in reduced and any(uses(c, f.var) for c in own):
            refuse(
                f"the guard of {block.name} depends on {called(factor.var)} and {called(f.var)} together",
                block,
                "split by a factor that divides the extent",
            )
    return all_of(own), all_of([c for c in parts if c not in own])


def _starts(block: Block, found: Combination) -> list[Store]:
    """Returns the stores that initialise partial results, by the results' initial values only if these may be combined again."""
    init = {} if block.init is None else {s.buffer: s for s in assignments(block, block.init)}
    return [
        init[s.buffer] if neutral is None else Store(s.buffer, s.indices, neutral, None)
        for s, neutral in zip(found.stores, found.neutral, strict=True)
    ]


def _final_nest(path: Path, partial: _Partial, loops: Sequence[For]) -> Stmt:
    """Returns the loops and the block that combine the partial results."""
    old, factor = the_block(path), partial.factor
    lane, over = Var(f"v{factor.var.name}"), Var(factor.var.name)

    def build(variables: dict[Var, Var], axes: list[Axis], bindings: list[Expr], guard: Expr) -> Stmt:
        places = [(s.buffer, tuple([substitute(i, variables) for i in s.indices])) for s in partial.found.stores]
        so_far = [Load(b, i) for b, i in places]
        new = [Load(partial.buffers[b], partial.at(i, lane)) for b, i in places]
        combined = partial.found.combine(so_far, new)
        update = assign([Store(b, i, v, None) for (b, i), v in zip(places, combined, strict=True)])
        init = None if old.init is None else substitute(old.init, variables)
        every = Axis(lane, factor.extent, AxisKind.REDUCE)
        block = make_block(old.name, [*axes, every], [*bindings, over], update, init, guard, old.notes)
        return for_(over, factor.extent, block)

    return over_results(path, loops, "", build)
