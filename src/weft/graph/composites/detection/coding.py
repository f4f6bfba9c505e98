"""Boxes by their corners, by their middles and sizes, and as deltas of anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.sequences import stack


@dataclass(frozen=True)
class Side:
    """Boxes along one dimension: where their middles are, and how long they are."""

    middle: Operand
    size: Operand

    def ends(self, b: Builder) -> tuple[Operand, Operand]:
        """Returns where they begin and end."""
        half = b.add("mul", self.size, b.scalar(0.5, self.size.dtype))
        return b.add("sub", self.middle, half), b.add("add", self.middle, half)


def side_between(b: Builder, begin: Operand, end: Operand) -> Side:
    """Returns boxes that go from *begin* to *end*."""
    middle = b.add("mul", b.add("add", begin, end), b.scalar(0.5, begin.dtype))
    return Side(middle, b.add("sub", end, begin))


def decoded(b: Builder, anchors: Side, moved: Operand, scaled: Operand) -> Side:
    """Returns anchors *moved* by parts of their sizes, these multiplied by the exponentials of *scaled* (Girshick, 2015)."""
    middle = b.add("add", b.add("mul", moved, anchors.size), anchors.middle)
    return Side(middle, b.add("mul", b.add("exp", scaled), anchors.size))


def boxes_of_sides(b: Builder, sides: Sequence[Side]) -> Operand:
    """Returns boxes [..., 4] by two corners, each as the dimensions of *sides* are in order."""
    ends = [s.ends(b) for s in sides]
    return stack(b, [e[k] for k in range(2) for e in ends], sides[0].middle.rank)
