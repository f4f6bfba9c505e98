"""`pad_einsum`: a contraction runs over axes that are rounded up, on copies of its inputs with zeros behind.

                                            for ax0, ax1 in (16, 8):
                                                A_pad[ax0, ax1] = select(ax0 < 13 and ax1 < 7, A[ax0, ax1], 0.0)
                                            ...
for i, j, k in (13, 16, 7):                 for i, j, k in (16, 16, 8):
    C[i, j] += A[i, k] * B[k, j]     ->         C_pad[i, j] += A_pad[i, k] * B_pad[k, j]
                                            for ax0, ax1 in (13, 16):
                                                C[ax0, ax1] = C_pad[ax0, ax1]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ir import TRUE, ZERO, Expr, Var, all_of, ceil_div, const, index, select, simplify
from weft.loop import (
    Axis,
    AxisKind,
    Block,
    Buffer,
    For,
    Function,
    Load,
    Stmt,
    Store,
    for_,
    make_block,
    replace_buffer,
    seq,
    store,
)
from weft.schedule.cursors.loop_nest import fresh_block_name
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, called, refuse
from weft.schedule.cursors.tree import Path, add_alloc, block_path, loops_on, plain_store, replace, the_block
from weft.schedule.legality.flow_dependence import check_structured
from weft.schedule.legality.placement import check_movable
from weft.schedule.legality.sum_of_products import Sizes, accesses, check_einsum, is_padded


@primitive
def pad_einsum(fn: Function, block: BlockRef, padding: Sequence[int]) -> tuple[Change, tuple[BlockRef, ...]]:
    """Rounds the extent of each axis of *block* up to a multiple of the number for it in *padding*, 1 to leave it as it is.

    Inputs indexed by such an axis are copied with zeros behind; a result indexed by one goes to a larger buffer, whose valid
    part is copied back. Legal for a block with loops of its own, one for each axis, whose formula consists of sums and products
    of elements at plain axes; along a padded reduction, zeros must add nothing. Returns the blocks that copy.
    """
    path = block_path(fn, block)
    old = the_block(path)
    check_structured(fn.body)
    sizes = _sizes(old, padding)
    nest = check_movable(fn, path, old)
    _check_loops(path, nest, old)
    check_einsum(old, sizes)
    touched = dict.fromkeys(n.buffer for n in accesses(old) if any(is_padded(i, sizes) for i in n.indices))
    larger = {b: _padded(old, b, sizes) for b in touched}
    body, refs = _rewritten(fn, path, nest, old, sizes, larger)
    for b in larger.values():
        body = add_alloc(body, b)
    return Change(fn.with_body(body)), refs


def _sizes(block: Block, padding: Sequence[int]) -> dict[Var, Expr]:
    if len(padding) != len(block.axes) or any(p < 1 for p in padding):
        listed = ", ".join([called(a.var) for a in block.axes])
        refuse(
            f"{list(padding)} is not one multiple, 1 or more, for each axis of {block.name}: {listed}",
            block,
            "give 1 for an axis that stays as it is",
        )
    multiples = zip(block.axes, padding, strict=True)
    return {a.var: simplify(ceil_div(a.extent, index(p)) * p) for a, p in multiples if p > 1}


def _check_loops(path: Path, nest: Path, block: Block) -> None:
    """Refuses a block whose loops are not one for each axis, over all of it."""
    own = set(loops_on(path)) - set(loops_on(nest))
    loops = {f.var: f for f in own if f.begin is ZERO}
    for a, b in zip(block.axes, block.bindings, strict=True):
        f = loops.pop(b, None) if isinstance(b, Var) else None
        if f is None or f.extent is not a.extent or block.predicate is not TRUE:
            refuse(
                f"the axis {called(a.var)} of {block.name} has no loop of its own",
                block,
                "pad before splitting or placing",
            )


def _padded(block: Block, old: Buffer, sizes: Sizes) -> Buffer:
    """Returns the larger buffer for *old*; refuses one that is not indexed by whole axes where it is to be padded."""
    extents = {a.var: a.extent for a in block.axes}
    shapes: set[tuple[Expr, ...]] = set()
    for indices in [n.indices for n in accesses(block) if n.buffer is old]:
        shape: list[Expr] = []
        for i, size in zip(indices, old.shape, strict=True):
            whole = isinstance(i, Var) and simplify(extents.get(i, ZERO) - size) is ZERO
            if is_padded(i, sizes) and not whole:
                shown = called(i) if isinstance(i, Var) else i
                refuse(
                    f"{block.name} does not read {old.name} at the whole of an axis that is padded: `{shown}`",
                    block,
                    "give 1 for that axis",
                )
            shape.append(sizes.get(i, size) if isinstance(i, Var) else size)
        shapes.add(tuple(shape))
    if len(shapes) > 1:
        refuse(
            f"{block.name} would need {old.name} padded in two ways", block, "read a copy of it in one of the places"
        )
    return Buffer(f"{old.name}_pad", shapes.pop(), old.dtype)


def _rewritten(
    fn: Function, path: Path, nest: Path, old: Block, sizes: Sizes, larger: Mapping[Buffer, Buffer]
) -> tuple[Stmt, tuple[BlockRef, ...]]:
    """Returns the function's body with the copies around the nest of *old*, and their blocks."""
    result = plain_store(old).buffer
    inputs = [(b, p) for b, p in larger.items() if b is not result]
    results = [(b, p) for b, p in larger.items() if b is result]
    names = _names(fn, [p for _, p in (*inputs, *results)])
    before = [_fill(b, p, name) for (b, p), name in zip(inputs, names, strict=False)]
    after = [_crop(p, b, name) for (b, p), name in zip(results, names[len(inputs) :], strict=True)]
    axes = [Axis(a.var, sizes.get(a.var, a.extent), a.kind) for a in old.axes]
    body = replace_buffer(old.body, larger)
    init = None if old.init is None else replace_buffer(old.init, larger)
    made: Stmt = make_block(old.name, axes, old.bindings, body, init, old.predicate, old.notes)
    extents = {b: a.extent for a, b in zip(axes, old.bindings, strict=True)}
    for f in reversed(path[len(nest) - 1 : -1]):
        if isinstance(f, For):
            made = For(f.var, f.begin, extents.get(f.var, f.extent), f.kind, made, f.notes)
    return replace(nest, seq(*before, made, *after)), tuple([BlockRef(n) for n in names])


def _names(fn: Function, buffers: Sequence[Buffer]) -> list[str]:
    """Returns a unique name for the block that copies from or to each buffer."""
    made: list[str] = []
    for b in buffers:
        name = fresh_block_name(fn, b.name)
        made.append(name if name not in made else f"{name}_{len(made)}")
    return made


def _fill(old: Buffer, new: Buffer, name: str) -> Stmt:
    """Returns the nest that copies *old* to *new*, with zeros behind."""

    def element(at: Sequence[Expr]) -> Store:
        inside = [v < s for v, s, n in zip(at, old.shape, new.shape, strict=True) if n is not s]
        return store(new, at, select(all_of(inside), Load(old, tuple(at)), const(0, new.dtype)))

    return _nest(name, new.shape, element)


def _crop(new: Buffer, old: Buffer, name: str) -> Stmt:
    """Returns the nest that copies the valid part of *new* back to *old*."""
    return _nest(name, old.shape, lambda at: store(old, at, Load(new, tuple(at))))


def _nest(name: str, shape: Sequence[Expr], element: Callable[[Sequence[Expr]], Store]) -> Stmt:
    """Returns loops over *shape* around a block for each element."""
    axes = [Axis(Var(f"v{d}"), s, AxisKind.SPATIAL) for d, s in enumerate(shape)]
    loops = [Var(f"ax{d}") for d in range(len(shape))]
    made: Stmt = make_block(name, axes, loops, element([a.var for a in axes]))
    for v, a in zip(reversed(loops), reversed(axes), strict=True):
        made = for_(v, a.extent, made)
    return made
