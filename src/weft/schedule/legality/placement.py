"""Checks that the placement primitives share: the readers and writers of a buffer, and the statements that a block moves past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from weft.ir import ONE, Bounds, Const, Mul, Var, simplify
from weft.loop import AxisKind, Block, Buffer, For, Function, Range, Region, Stmt, full_region
from weft.schedule.cursors.loop_nest import own_nest
from weft.schedule.cursors.rebind import uses
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import Path, alloc_of, blocks_in, loops_on, outer_blocks, regions_of, the_block
from weft.schedule.legality.flow_dependence import common_length, is_finished, uses_under


def written_buffers(block: Block) -> list[Buffer]:
    """Returns the buffers that *block* writes."""
    return list(dict.fromkeys(r.buffer for r in block.writes))


def read_buffers(block: Block) -> list[Buffer]:
    """Returns the buffers that *block* reads and does not write."""
    written = written_buffers(block)
    return [b for b in dict.fromkeys(r.buffer for r in block.reads) if b not in written]


def check_movable(fn: Function, path: Path, block: Block) -> Path:
    """Returns the result of `check_whole`; also refuses a block whose buffers have other writers."""
    nest = check_whole(path, block)
    for other in outer_blocks(fn.body):
        if other is not block and set(written_buffers(other)) & set(written_buffers(block)):
            refuse_other_writer(block, other)
    return nest


def refuse_other_writer(block: Block, other: Block) -> NoReturn:
    """Refuses to move *block*, as *other* writes the same buffer."""
    refuse(
        f"the block {other.name} writes the same buffer as {block.name}",
        other,
        "place a block before decomposing its reduction",
    )


def check_whole(path: Path, block: Block) -> Path:
    """Returns the path to the nest that contains only *block*; refuses a block that can't be moved as a whole."""
    if any(a.kind not in (AxisKind.SPATIAL, AxisKind.REDUCE) for a in block.axes):
        refuse(
            f"the block {block.name} has ordered or opaque axes",
            block,
            "only blocks with spatial and reduce axes can move",
        )
    check_outermost(path)
    return own_nest(path)


def check_outermost(path: Path) -> None:
    """Refuses a loop or a block inside another block, whose declared regions would have to change with the accesses inside."""
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


def writers(fn: Function, buffer: Buffer) -> list[Block]:
    """Returns the blocks that write *buffer*, in program order."""
    return [b for b in outer_blocks(fn.body) if any(r.buffer is buffer for r in b.writes)]


def readers(fn: Function, block: Block) -> list[Block]:
    """Returns the other blocks that read buffers that *block* writes."""
    made = set(written_buffers(block))
    return [b for b in outer_blocks(fn.body) if b is not block and any(r.buffer in made for r in b.reads)]


def sole_reader(fn: Function, block: Block) -> Block | None:
    """Returns the one block that reads the intermediate results of *block*; None where several do, or they are outputs."""
    users = readers(fn, block)
    is_intermediate = all(alloc_of(fn.body, b) is not None for b in written_buffers(block))
    return users[0] if is_intermediate and len(users) == 1 else None


def check_untouched(fn: Function, block: Block, since: Stmt) -> None:
    """Refuses to move *block* to *since*, earlier in the program, when a statement in between uses the buffers that it writes."""
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
    """Returns, for each dimension of *region*, the axis that alone is its index, or None for an index of another form."""
    return [None if p is None or p[1] != 1 else p[0] for p in steps_of_index(block, region)]


def steps_of_index(block: Block, region: Region) -> list[tuple[Var, int] | None]:
    """Returns, for each dimension of *region*, the axis that counts its steps and their size, or None for another form.

    Each instance accesses one whole step. Refuses an axis that counts in two dimensions.
    """
    found = [_step(block, r) for r in region.ranges]
    named = [p[0] for p in found if p is not None]
    if len(set(named)) != len(named):
        refuse(
            f"{block.name} uses one axis for two dimensions of {region.buffer.name}",
            block,
            "only a block with an axis for each dimension can move",
        )
    return found


def _step(block: Block, r: Range) -> tuple[Var, int] | None:
    """Returns the axis and the step of a range `axis * step .. axis * step + step - 1`."""
    axes = {a.var for a in block.axes}
    if isinstance(r.begin, Var):
        return (r.begin, 1) if r.begin in axes and r.extent is ONE else None
    if isinstance(r.begin, Mul) and r.begin.b is r.extent and isinstance(r.extent, Const):
        return (r.begin.a, int(r.extent.value)) if isinstance(r.begin.a, Var) and r.begin.a in axes else None
    return None


def is_placeable(block: Block, region: Region) -> bool:
    """Tells whether each dimension of *region* is counted by one axis of *block* alone, or whole in each of its instances."""
    whole = full_region(region.buffer).ranges
    steps = steps_of_index(block, region)
    return all(p is not None or r is w for p, r, w in zip(steps, region.ranges, whole, strict=True))


def check_complete(fn: Function, path: Path) -> None:
    """Refuses the block at the end of *path* if another one reads its results before they are complete."""
    block = the_block(path)
    found = uses_under((fn.body,))
    for read in [r for b in written_buffers(block) for r in found[b].reads if r.block is not block]:
        if not is_finished(path, path[: common_length(path, read.path)]):
            refuse(
                f"{read.block.name} reads what {block.name} has combined so far",
                read.block,
                "a reduction moves as a whole: no other block may be in its loops",
            )


def check_placeable(producer: Block) -> None:
    """Refuses a block that does not write at its plain axes: the instances needed for a part of its result would be unknown."""
    for region in producer.writes:
        if not is_placeable(producer, region):
            refuse(
                f"{producer.name} does not write {region.buffer.name} at its plain axes",
                producer,
                "a block can move if its axes are the indices of what it writes",
            )


def source_named(consumer: Block, name: str, nest: Stmt) -> Buffer:
    """Returns the one buffer called *name* that *consumer*, in *nest*, reads; refuses one that the nest writes."""
    known = read_buffers(consumer)
    named = [b for b in known if b.name == name]
    if len(named) != 1:
        names = ", ".join(b.name for b in known) or "nothing"
        refuse(f"{consumer.name} does not read one buffer called {name}", consumer, f"it reads {names}")
    for b in blocks_in(nest):
        if named[0] in written_buffers(b):
            refuse(f"{name} is written in the nest that reads it", b, "make the copy before placing its producer")
    return named[0]


def ranges_for(
    block: Block,
    regions: Sequence[Region],
    buffer: Buffer,
    box: Sequence[Range],
    known: dict[Var, Range],
    bounds: Bounds,
) -> dict[Var, Range]:
    """Returns *known* with the ranges that the block's axes take when it accesses just *box* of *buffer*.

    *bounds* has the ranges of the variables in *box*. Refuses two regions that ask for different ranges of one axis.
    """
    result = dict(known)
    for region in regions_of(regions, buffer):
        for step, wanted in zip(steps_of_index(block, region), box, strict=True):
            if step is None:
                continue
            counted = _counted(wanted, step[1], bounds)
            if result.get(step[0], counted) is not counted:
                refuse(
                    f"the parts of {block.name} that are needed do not form one box",
                    block,
                    "choose a loop further out",
                )
            result[step[0]] = counted
    return result


def _counted(r: Range, step: int, bounds: Bounds) -> Range:
    """Returns the numbers of the steps that the range *r* overlaps."""
    if step == 1:
        return r
    first = simplify(r.begin // step, bounds)
    partial = 0 if simplify(first * step, bounds) is r.begin else step - 1
    return Range(first, simplify((r.extent + (partial + step - 1)) // step, bounds))


def reduce_loops(path: Path) -> list[For]:
    """Returns the loops on *path* that the reduce axes of the block at its end depend on."""
    block = path[-1]
    if not isinstance(block, Block):
        return []
    used = [b for a, b in zip(block.axes, block.bindings, strict=True) if a.kind is AxisKind.REDUCE]
    return [f for f in loops_on(path) if any(uses(b, f.var) for b in used)]
