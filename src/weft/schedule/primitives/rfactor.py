"""`rfactor`: a reduction is cut into partial results along one of its loops, combined by a second reduction.

    for i in range(0, 8):                   for i in range(0, 8):
        for k0 in range(0, 4):                  for k0 in range(0, 4):
            for k1 in range(0, 16):    ->           for k1 in range(0, 16):
                C[i] += A[i, k0, k1]                    C_rf[i, k1] += A[i, k0, k1]
                                                for k1 in range(0, 16):
                                                    C[i] += C_rf[i, k1]

After Suriana, Adams and Kamil, "Parallel associative reductions in Halide" (CGO 2017).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Add, And, Binary, BitAnd, BitOr, BitXor, Expr, Max, Min, Mul, Or, Select, Var
from weft.ir.node import Node
from weft.ir.rewrite import map_nodes, substitute
from weft.loop.nodes import Axis, AxisKind, Block, Buffer, For, Function, Load, Stmt, Store, for_, seq
from weft.loop.regions import make_block
from weft.loop.visit import loads
from weft.schedule.bijection import is_injective, mixed_loops, reduces_all, starts_first
from weft.schedule.dependence import check_structured
from weft.schedule.nest import fresh_block_name
from weft.schedule.placing import check_movable, reduce_loops, written_buffers
from weft.schedule.primitive import primitive
from weft.schedule.rebind import uses
from weft.schedule.results import over_results
from weft.schedule.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.tree import (
    Path,
    add_alloc,
    block_path,
    blocks_in,
    loops_on,
    plain_store,
    replace,
    the_block,
    the_loop,
)

_ASSOCIATIVE = (Add, Mul, Max, Min, And, Or, BitAnd, BitOr, BitXor)


@primitive
def rfactor(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, BlockRef]:
    """Computes *block* as partial results, one for each value of its reduction loop *loop*; returns their block.

    The partial results are the last dimension of a new buffer. Sums are reassociated. Legal for a single assignment by a binary
    reducer, not yet decomposed, whose guard does not depend on *loop*.
    """
    path = block_path(fn, block)
    old = the_block(path)
    check_movable(fn, path, old)
    reduced = reduce_loops(path)
    factor = next((f for f in reduced if f.var is loop.var), None)
    if factor is None:
        refuse(f"{old.name} does not reduce over {called(loop.var)}", old)
    if uses(old.predicate, factor.var):
        refuse(f"the guard of {old.name} depends on {called(factor.var)}", old, "split by a factor that divides")
    store = _update(old)
    start = min(path.index(f) for f in reduced)
    _check_loops(fn, path, old, the_loop(path[: start + 1]))
    result = store.buffer
    name = fresh_block_name(fn, f"{old.name}_rf")
    partial = Buffer(name, (*result.shape, factor.extent), result.dtype)
    inner = [f for f in loops_on(path) if path.index(f) >= start]
    first = replace(path[start:], _partial_block(old, store, partial, name, reduced, factor))
    second = _final_nest(path, store, partial, inner, factor)
    body = replace(path[: start + 1], seq(first, second))
    return Change(fn.with_body(add_alloc(body, partial))), BlockRef(name)


def _check_loops(fn: Function, path: Path, old: Block, outermost: For) -> None:
    """Refuses loops that do not keep the reduction apart from its results, or compute some of them twice."""
    check_structured(outermost)
    if mixed := mixed_loops(path):
        refuse(f"{called(mixed[0].var)} runs over the reduction and its results together", mixed[0])
    if not starts_first(path) or not reduces_all(fn, path):
        refuse(f"{old.name} does not reduce over whole loops", old)
    if not is_injective(fn, path, outermost):
        refuse(f"{called(outermost.var)} computes some results of {old.name} more than once", outermost)
    written = set(written_buffers(old))
    for b in blocks_in(outermost):
        if b is not old and any(r.buffer in written for r in (*b.reads, *b.writes)):
            refuse(f"{b.name} uses the results of {old.name} in the loop, too", b)


def _update(block: Block) -> Store:
    """Returns the assignment `C = C op x` of a reduction that can be cut."""
    store = plain_store(block)
    if block.init is None:
        refuse(f"{block.name} has no initialisation", block, "rfactor before decompose_reduction")
    _combined(block, store)
    return store


def _combined(block: Block, store: Store) -> Binary:
    """Returns the `C op x` in the update of *block*; refuses one of another form."""
    value = store.value.then if isinstance(store.value, Select) else store.value
    so_far = Load(store.buffer, store.indices)
    if not isinstance(value, _ASSOCIATIVE) or value.a is not so_far:
        refuse(f"{block.name} is not of the form C = C op x", block)
    if any(x.buffer is store.buffer for x in loads(value.b)):
        refuse(f"{block.name} reads what it writes in more than one place", block)
    return value


def _partial_block(old: Block, store: Store, partial: Buffer, name: str, reduced: list[For], factor: For) -> Block:
    """Returns the block of the partial results: spatial along *factor*, a reduction along the other loops."""
    spatial = {a.var: Var(a.var.name) for a in old.axes if a.kind is AxisKind.SPATIAL}
    over = {f.var: Var(f"v{f.var.name}") for f in reduced}
    values: dict[Var, Expr] = dict(spatial)
    for a, b in zip(old.axes, old.bindings, strict=True):
        if a.kind is AxisKind.REDUCE:
            values[a.var] = substitute(b, over)
    lane = over[factor.var]
    axes = [Axis(spatial[a.var], a.extent, a.kind) for a in old.axes if a.var in spatial]
    axes.append(Axis(lane, factor.extent, AxisKind.SPATIAL))
    axes += [Axis(over[f.var], f.extent, AxisKind.REDUCE) for f in reduced if f is not factor]
    bindings = [b for a, b in zip(old.axes, old.bindings, strict=True) if a.var in spatial]
    bindings += [factor.var, *[f.var for f in reduced if f is not factor]]
    body = _redirect(substitute(old.body, values), store.buffer, partial, lane)
    init = _redirect(substitute(old.init, values), store.buffer, partial, lane) if old.init is not None else None
    return make_block(name, tuple(axes), tuple(bindings), body, init, old.predicate)


def _redirect(root: Stmt, old: Buffer, new: Buffer, lane: Var) -> Stmt:
    """Returns *root* reading and writing *new*, at *lane* of its last dimension, instead of *old*."""

    def change(n: Node) -> Node | None:
        if isinstance(n, Load) and n.buffer is old:
            return Load(new, (*n.indices, lane))
        if isinstance(n, Store) and n.buffer is old:
            return Store(new, (*n.indices, lane), n.value, n.mask)
        return None

    return map_nodes(root, change)


def _final_nest(path: Path, store: Store, partial: Buffer, loops: Sequence[For], factor: For) -> Stmt:
    """Returns the loops and the block that combine the partial results."""
    old = the_block(path)
    lane, over = Var(f"v{factor.var.name}"), Var(factor.var.name)
    op = type(_combined(old, store))

    def build(variables: dict[Var, Var], axes: list[Axis], bindings: list[Expr], guard: Expr) -> Stmt:
        where = tuple([substitute(i, variables) for i in store.indices])
        update = Store(store.buffer, where, op(Load(store.buffer, where), Load(partial, (*where, lane))), None)
        init = None if old.init is None else substitute(old.init, variables)
        every = Axis(lane, factor.extent, AxisKind.REDUCE)
        block = make_block(old.name, [*axes, every], [*bindings, over], update, init, guard, old.annotations)
        return for_(over, factor.extent, block)

    return over_results(path, loops, "", build)
