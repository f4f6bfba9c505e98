"""Choosing how a loop runs, and what makes that legal."""

from __future__ import annotations

from weft.ir.expr import Const
from weft.loop.nodes import NOTHING, AxisKind, Block, Buffer, For, Function, LoopKind
from weft.loop.visit import loads, stores
from weft.schedule.bijection import is_injective
from weft.schedule.rebind import uses
from weft.schedule.state import Change, LoopRef, refuse
from weft.schedule.tree import Path, alloc_of, loop_path, paths, replace, the_loop


def set_kind(fn: Function, loop: LoopRef, kind: LoopKind) -> Change:
    """Makes *loop* run as *kind* says."""
    path = loop_path(fn, loop)
    old = the_loop(path)
    if old.kind is not LoopKind.SERIAL:
        refuse(f"the loop is {old.kind} already", old)
    new = For(old.var, old.begin, old.extent, kind, old.body, old.annotations)
    return Change(fn.with_body(replace(path, new)))


def check_constant_extent(fn: Function, loop: LoopRef) -> None:
    """Refuses a loop of symbolic extent."""
    found = the_loop(loop_path(fn, loop))
    if not isinstance(found.extent, Const):
        refuse("its extent is not a constant", found, "split it by a constant factor first")


def check_independent(fn: Function, loop: LoopRef, *, private: bool) -> None:
    """Refuses a loop whose iterations could touch each other's results.

    Each block under it must use the loop in its spatial axes only, and each buffer written there must either be written at other
    places by each iteration, or (if *private* memory is possible) be used nowhere outside the loop.
    """
    path = loop_path(fn, loop)
    found = the_loop(path)
    for inner in paths(found):
        block = inner[-1]
        if not isinstance(block, Block):
            continue
        for axis, binding in zip(block.axes, block.bindings, strict=True):
            if axis.kind is not AxisKind.SPATIAL and uses(binding, found.var):
                refuse(
                    f"the block {block.name} combines values along it: its axis {axis.var.name} is of kind {axis.kind}",
                    block, "run a spatial loop this way",
                )  # fmt: skip
        if not is_injective(fn, (*path[:-1], *inner)):
            for region in block.writes:
                if not (private and _is_private(fn, path, region.buffer)):
                    refuse(f"its iterations write the same elements of {region.buffer.name}", block)


def _is_private(fn: Function, path: Path, buffer: Buffer) -> bool:
    """Tells whether *buffer* is allocated here and used by nothing outside the loop at the end of *path*."""
    rest = replace(path, NOTHING)
    outside = {s.buffer for s in stores(rest)} | {x.buffer for x in loads(rest)}
    return alloc_of(fn.body, buffer) is not None and buffer not in outside
