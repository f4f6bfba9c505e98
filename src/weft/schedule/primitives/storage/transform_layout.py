"""`transform_layout`: an intermediate buffer is laid out anew.

with alloc("global", f32[8, 32]) as A:          with alloc("global", f32[2, 8, 16]) as A:
    A[i, j] = f(i, j)                     ->        A[j // 16, i, j % 16] = f(i, j)
    B[i, j] = A[i, j] + 1                           B[i, j] = A[j // 16, i, j % 16] + 1
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, substitute
from weft.loop import Alloc, Block, Buffer, Function, replace_in_loop_notes
from weft.schedule.cursors.loop_nest import own_nest
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import map_blocks
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import alloc_of, block_path, blocks_in, bounds_on, loops_on, replace, the_block
from weft.schedule.legality.bijection import instance_map
from weft.schedule.legality.flow_dependence import check_flat, check_structured
from weft.schedule.legality.placement import check_movable, written_buffers
from weft.schedule.rewriting.index_map import IndexMap, parse_index_map
from weft.schedule.rewriting.inlining import axes_written, check_plain
from weft.schedule.rewriting.layout_change import layout_nest, with_layout


@primitive
def transform_layout(
    fn: Function, block: BlockRef, buffer: str, index_map: str, pad: int | float | None = None
) -> tuple[Change, None]:
    """Lays out *buffer*, which *block* reads or writes, by *index_map*, wherever it is used.

    The map is a text such as `i, j -> j // 16, i, j % 16`, one-to-one. Legal for a buffer that is allocated in the function and
    used element by element. Where the map pads, the padding is undefined; with *pad*, the one block that writes the buffer, an
    assignment to each element, runs over the new layout instead, and fills the padding with *pad*.
    """
    check_structured(fn.body)
    check_flat(fn.body)
    user = the_block(block_path(fn, block))
    old = _named(user, buffer)
    path = alloc_of(fn.body, old)
    if path is None:
        refuse(
            f"{buffer} is a parameter of the function, whose layout the caller knows",
            user,
            "pack makes a copy in another layout",
        )
    bounds = bounds_on((), fn)
    layout = parse_index_map(index_map, old.shape, bounds)
    new = Buffer(old.name, layout.to, old.dtype, old.scope)
    writer = None if pad is None else _writer(fn, old)
    inner = map_blocks(path[-1].children()[0], lambda b: with_layout(b, old, new, layout, bounds))  # type: ignore[arg-type]
    result = fn.with_body(replace_in_loop_notes(replace(path, Alloc(new, inner)), {old: new}))
    if writer is not None and pad is not None:
        result = _padded(result, fn, writer, new, layout, pad)
    return Change(result), None


def _named(user: Block, buffer: str) -> Buffer:
    """Returns the one buffer of a name that a block uses."""
    used = dict.fromkeys(r.buffer for r in (*user.reads, *user.writes))
    named = [b for b in used if b.name == buffer]
    if len(named) != 1:
        names = ", ".join(b.name for b in used) or "nothing"
        refuse(f"{user.name} does not use one buffer called {buffer}", user, f"it uses {names}")
    return named[0]


def _writer(fn: Function, buffer: Buffer) -> Block:
    """Returns the one block that writes *buffer*; refuses one that can't run over another layout."""
    writers = [b for b in blocks_in(fn.body) if buffer in written_buffers(b)]
    if len(writers) != 1:
        refuse(
            f"{len(writers)} blocks write {buffer.name}, not one",
            writers[-1] if writers else None,
            "leave the padding alone: without pad",
        )
    path = block_path(fn, BlockRef(writers[0].name))
    axes_written(writers[0], check_plain(fn, path))
    found = instance_map(fn, path)
    if found is None or not found.surjective:
        refuse(
            f"{writers[0].name} may not write all of {buffer.name}", writers[0], "leave the padding alone: without pad"
        )
    if loops_on(own_nest(path)):
        refuse(f"{writers[0].name} shares loops with other blocks", writers[0], "choose the layout before placing it")
    return writers[0]


def _padded(fn: Function, before: Function, writer: Block, new: Buffer, layout: IndexMap, pad: int | float) -> Function:
    """Returns the function with the block *writer* running over all of *new*."""
    store = check_plain(before, block_path(before, BlockRef(writer.name)))
    axes = axes_written(writer, store)
    path = block_path(fn, BlockRef(writer.name))

    def value(indices: Sequence[Expr]) -> Expr:
        return substitute(store.value, dict(zip(axes, indices, strict=True)))

    nest = check_movable(fn, path, the_block(path))
    return fn.with_body(replace(nest, layout_nest(fn, new, layout, writer.name, value, pad)))
