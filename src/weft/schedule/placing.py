"""Checks that the placement primitives share: who reads and writes a buffer, and what moves past what."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import ONE, Var
from weft.loop.nodes import AxisKind, Block, Buffer, For, Function, Range, Region, Stmt, full_region
from weft.schedule.nest import own_nest
from weft.schedule.rebind import uses
from weft.schedule.state import refuse
from weft.schedule.tree import Path, alloc_of, loops_on, outer_blocks, regions_of


def written_buffers(block: Block) -> list[Buffer]:
    """Returns the buffers that *block* writes."""
    return list(dict.fromkeys(r.buffer for r in block.writes))


def read_buffers(block: Block) -> list[Buffer]:
    """Returns the buffers that *block* reads and does not write."""
    written = written_buffers(block)
    return [b for b in dict.fromkeys(r.buffer for r in block.reads) if b not in written]


def check_movable(fn: Function, path: Path, block: Block) -> Path:
    """Returns the path to the nest that holds *block* and nothing else; refuses a block that can't be moved as a whole."""
    if any(a.kind not in (AxisKind.SPATIAL, AxisKind.REDUCE) for a in block.axes):
        refuse(
            f"the block {block.name} has ordered or opaque axes",
            block,
            "only blocks with spatial and reduce axes can move",
        )
    check_outermost(path)
    for other in outer_blocks(fn.body):
        if other is not block and set(written_buffers(other)) & set(written_buffers(block)):
            refuse(
                f"the block {other.name} writes the same buffer as {block.name}", other,
                "place a block before decomposing its reduction",
            )  # fmt: skip
    return own_nest(path)


def check_outermost(path: Path) -> None:
    """Refuses a loop or a block inside another block: what it gets to read or write there, that block would have to declare."""
    for s in path[:-1]:
        if isinstance(s, Block):
            refuse(
                f"it is inside the block {s.name}",
                path[-1],
                f"place {s.name} as a whole, or take this step before blockize",
            )


def check_intermediate(fn: Function, block: Block) -> None:
    """Refuses a block that writes an output of the function."""
    for b in written_buffers(block):
        if alloc_of(fn.body, b) is None:
            refuse(f"{b.name} is an output of the function", block, "only an intermediate result can move to its use")


def readers(fn: Function, block: Block) -> list[Block]:
    """Returns the other blocks that read what *block* writes."""
    made = set(written_buffers(block))
    return [b for b in outer_blocks(fn.body) if b is not block and any(r.buffer in made for r in b.reads)]


def check_untouched(fn: Function, block: Block, since: Stmt) -> None:
    """Refuses to move *block* to *since*, earlier in the program, when anything in between uses what it writes."""
    order = outer_blocks(fn.body)
    written = set(written_buffers(block))
    for between in order[order.index(outer_blocks(since)[0]) : order.index(block)]:
        for r in (*between.reads, *between.writes):
            if r.buffer in written:
                refuse(
                    f"{between.name}, which comes before {block.name}, uses {r.buffer.name} too",
                    between,
                    "move that block first",
                )


def axis_of_index(block: Block, region: Region) -> list[Var | None]:
    """Returns, for each dimension of *region*, the axis that alone is its index, or None for an index of another form.

    Refuses an axis that is the index of two dimensions.
    """
    axes = {a.var for a in block.axes}
    found: list[Var | None] = []
    for r in region.ranges:
        is_axis = r.extent is ONE and isinstance(r.begin, Var) and r.begin in axes
        found.append(r.begin if is_axis and isinstance(r.begin, Var) else None)
    named = [v for v in found if v is not None]
    if len(set(named)) != len(named):
        refuse(
            f"{block.name} uses one axis for two dimensions of {region.buffer.name}",
            block,
            "only a block with an axis for each dimension can move",
        )
    return found


def is_placeable(block: Block, region: Region) -> bool:
    """Tells whether each dimension of *region* is given by one axis of *block* alone, or whole in each of its instances."""
    whole = full_region(region.buffer).ranges
    axes = axis_of_index(block, region)
    return all(v is not None or r is w for v, r, w in zip(axes, region.ranges, whole, strict=True))


def ranges_for(
    block: Block, regions: Sequence[Region], buffer: Buffer, box: Sequence[Range], known: dict[Var, Range]
) -> dict[Var, Range]:
    """Returns *known* with the ranges that the block's axes take when it touches just *box* of *buffer*.

    Refuses two regions that ask for different ranges of one axis.
    """
    result = dict(known)
    for region in regions_of(regions, buffer):
        for axis, wanted in zip(axis_of_index(block, region), box, strict=True):
            if axis is None:
                continue
            if result.get(axis, wanted) is not wanted:
                refuse(
                    f"the parts of {block.name} that are needed do not form one box", block, "choose a loop further out"
                )
            result[axis] = wanted
    return result


def reduce_loops(path: Path) -> list[For]:
    """Returns the loops on *path* that the reduce axes of the block at its end depend on."""
    block = path[-1]
    if not isinstance(block, Block):
        return []
    used = [b for a, b in zip(block.axes, block.bindings, strict=True) if a.kind is AxisKind.REDUCE]
    return [f for f in loops_on(path) if any(uses(b, f.var) for b in used)]
