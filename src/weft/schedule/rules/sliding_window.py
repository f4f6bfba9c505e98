"""Sliding windows, which move with the results reduced from them: along which axes, by which strides, over which padding."""

from __future__ import annotations

from dataclasses import dataclass

from weft.cost import LONGEST_WINDOW_STRIDE, MOST_WINDOW_TAPS, Slide, elements, size_of
from weft.ir import ONE, Const, Expr, Select, free_vars, linear_terms
from weft.loop import Axis, Block, Load, Store
from weft.schedule.cursors.state import BlockRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.legality.placement import readers
from weft.schedule.rules.block_facts import block_of, inputs_of, is_reduction, reduce_axes, spatial_axes, uses_axis
from weft.schedule.schedule import Schedule


@dataclass(frozen=True)
class SlidingAxis:
    """A spatial axis along which a window slides: its position, the window's axis, and the strides of both in the input.

    A window of one element along it has no axis of its own.
    """

    position: int
    axis: Axis
    tap: Axis | None
    stride: int
    dilation: int

    @property
    def taps(self) -> int:
        """How many elements a window has along the axis."""
        return 1 if self.tap is None else size_of(self.tap.extent)

    def slide(self, innermost: Axis) -> Slide:
        """Returns the sizes of the axis; *innermost* is the window's last axis."""
        is_innermost = self.tap is innermost
        return Slide(
            self.position, size_of(self.axis.extent), self.taps, self.stride, self.dilation, is_innermost=is_innermost
        )


def sliding_axes(block: Block) -> list[SlidingAxis]:
    """Returns the axes along which a reduction's windows slide; none unless all of its inputs are such windows.

    Those along which windows are of one element count for the last axis alone, where strides matter to vectors.
    """
    reduced = reduce_axes(block)
    if not all(isinstance(a.extent, Const) for a in reduced) or not 1 < elements(reduced) <= MOST_WINDOW_TAPS:
        return []
    spatial = spatial_axes(block)
    for load in inputs_of(block):
        found = [m for i in load.indices if (m := _moving(i, spatial, reduced)) is not None]
        every = all(uses_axis(load, a.var) for a in spatial if size_of(a.extent) > 1)
        if every and {m.tap.var for m in found if m.tap is not None} == {a.var for a in reduced}:
            return [m for m in found if m.taps > 1 or (m.axis is spatial[-1] and m.stride > 1)]
    return []


def _moving(index: Expr, spatial: list[Axis], reduced: list[Axis]) -> SlidingAxis | None:
    """Recognises `spatial * stride + reduced * dilation + constant`, or the same without a reduced axis."""
    used = free_vars(index)
    moved = [n for n, a in enumerate(spatial) if a.var in used]
    taps = [a for a in reduced if a.var in used]
    if len(moved) != 1 or len(taps) > 1:
        return None
    axis, tap = spatial[moved[0]], taps[0] if taps else None
    inside = [axis.var, *([] if tap is None else [tap.var])]
    found = linear_terms(index, inside)
    factors = [] if found is None else [found[0].get(v) for v in inside]
    if found is None or free_vars(found[1]) or not all(isinstance(f, Const) for f in factors):
        return None
    stride, dilation = (int(f.value) for f in (*factors, ONE)[:2] if isinstance(f, Const))
    return SlidingAxis(moved[0], axis, tap, stride, dilation)


def is_strided_along(block: Block) -> bool:
    """Tells whether the windows of a single result slide along the last axis, with a small stride above 1, and along no other.

    Its vectors are shuffled out of contiguous loads. Reductions of several results, such as argmax, are not handled.
    """
    last = spatial_axes(block)[-1:]
    found = [m for m in sliding_axes(block) if last and m.axis is last[0] and 1 < m.stride <= LONGEST_WINDOW_STRIDE]
    return (
        bool(found)
        and len({r.buffer for r in block.writes}) == 1
        and size_of(found[0].axis.extent) > 1
        and sum(uses_axis(x, last[0].var) for x in inputs_of(block)) == 1
    )


def borders_of(s: Schedule, ref: BlockRef) -> list[BlockRef]:
    """Returns the blocks that make padded copies of the inputs of a reduction, and of no other's."""
    read = {x.buffer for x in inputs_of(block_of(s, ref))}
    makers = [(x, block_of(s, x)) for x in s.blocks()]
    return [
        x
        for x, made in makers
        if made.writes[0].buffer in read and _is_border(s, made) and readers(s.function, made) == [block_of(s, ref)]
    ]


def _is_border(s: Schedule, block: Block) -> bool:
    """Tells whether *block* is a padded copy: it selects between an element of its input and a constant."""
    value = block.body.value if isinstance(block.body, Store) and not is_reduction(block) else None
    intermediate = all(alloc_of(s.function.body, r.buffer) is not None for r in block.writes)
    return (
        intermediate and isinstance(value, Select) and isinstance(value.then, Load) and isinstance(value.other, Const)
    )
