"""Where the labels of a scatter plot go: near their points, over nothing else, and with leaders that do not cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

import numpy as np

Points: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
"""Pairs of coordinates, one in a row; or one number for each."""

Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

GAP: Final = 6.0
"""The least space between a label and the points, lines and labels that it must not cover."""

BETWEEN: Final = 20.0
"""The least space between labels that are side by side."""

GRID: Final = (18.0, 10.0)
"""The steps, across and up, in which places for a label are tried."""

DENSE: Final = 8.0
"""How far apart, at most, the points of a line are that a label is not to cover."""

STEPS: Final = np.linspace(0, 1, 48)[:, None]
"""The positions along a leader at which the labels below it are looked for."""

PASSES: Final = 2
"""How often a place is looked for for each label, given those of all others."""

# The penalties of a place for a label, in dots of a leader's length, where no place is free of them.
OVER_LINE: Final = 60.0
OVER_DISC: Final = 150.0
OVER_LEADER: Final = 1000.0
OVER_LABEL: Final = 10000.0


@dataclass(frozen=True)
class Disc:
    """A point of the plot, drawn with a radius."""

    x: float
    y: float
    radius: float

    @property
    def center(self) -> Points:
        """The same as a point."""
        return np.array([self.x, self.y])


@dataclass(frozen=True)
class Box:
    """A rectangle, by its lower left corner."""

    left: float
    bottom: float
    width: float
    height: float

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Returns the point of the rectangle that is nearest to (x, y)."""
        return (
            min(max(x, self.left), self.left + self.width),
            min(max(y, self.bottom), self.bottom + self.height),
        )


def place_labels(
    anchors: Sequence[Disc],
    sizes: Sequence[tuple[float, float]],
    area: Box,
    discs: Sequence[Disc] = (),
    lines: Sequence[Points] = (),
) -> list[Box]:
    """Returns a box of its size, inside of *area*, for the label of each anchor, which a line may lead to.

    Boxes keep clear of one another, of all *discs*, and of *lines*, each given by its corners; where that can't be, of as much as
    possible.
    """
    dense = [_dense(line) for line in lines]
    tried = [_Places(anchor, *size, area, discs, lines, dense) for anchor, size in zip(anchors, sizes, strict=True)]
    count = range(len(anchors))
    orders = [count, count[::-1], sorted(count, key=lambda n: anchors[n].x), sorted(count, key=lambda n: -anchors[n].x)]
    found = [_settle(tried, order) for order in orders]
    _, best = min(found, key=lambda f: f[0])
    return best


def _settle(tried: Sequence[_Places], order: Sequence[int]) -> tuple[float, list[Box]]:
    """Returns places for all labels, chosen one after another in an order, again and again; and their cost."""
    chosen: dict[int, tuple[float, Box, Points]] = {}
    for _ in range(PASSES):
        for n in order:
            chosen[n] = tried[n].best([(box, leader) for k, (_, box, leader) in chosen.items() if k != n])
    return sum(cost for cost, _, _ in chosen.values()), [chosen[n][1] for n in sorted(chosen)]


class _Places:
    """All places for a label that are tried, and the cost of each by itself."""

    def __init__(
        self,
        anchor: Disc,
        width: float,
        height: float,
        area: Box,
        discs: Sequence[Disc],
        lines: Sequence[Points],
        dense: Sequence[Points],
    ) -> None:
        self.anchor, self.width, self.height = anchor.center, width, height
        across = np.arange(area.left, area.left + max(0.0, area.width - width) + 1e-9, GRID[0])
        up = np.arange(area.bottom, area.bottom + max(0.0, area.height - height) + 1e-9, GRID[1])
        self.corners: Points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        self.ends: Points = np.clip(self.anchor, self.corners, self.corners + np.array([width, height]))
        self.leaders: Points = self.anchor + STEPS * (self.ends[:, None] - self.anchor)
        self.cost: Points = np.hypot(*(self.ends - self.anchor).T)
        for d in discs:
            self.cost += OVER_LABEL * self._covers_disc(d)
            if d != anchor:
                self.cost += OVER_DISC * (np.hypot(*(self.leaders - d.center).transpose(2, 0, 1)) < d.radius).any(
                    axis=1
                )
        for points in dense:
            self.cost += OVER_LABEL * self._covers_points(points)
        for first, last in chain.from_iterable(map(pairwise, lines)):
            self.cost += OVER_LINE * self._crosses(first, last)

    def best(self, others: Sequence[tuple[Box, Points]]) -> tuple[float, Box, Points]:
        """Returns the least cost, and the place and the leader that have it, given those of other labels."""
        cost = self.cost.copy()
        for box, leader in others:
            cost += OVER_LABEL * self._overlaps(box)
            cost += OVER_LEADER * (
                self._covers_points(leader) | self._leads_over(box) | self._crosses(leader[0], leader[-1])
            )
        n = int(np.argmin(cost))
        left, bottom = map(float, self.corners[n])
        return float(cost[n]), Box(left, bottom, self.width, self.height), self.leaders[n]

    def _overlaps(self, other: Box) -> Flags:
        x, y = self.corners.T
        across = (x + self.width + BETWEEN > other.left) & (x < other.left + other.width + BETWEEN)
        up = (y + self.height + GAP / 2 > other.bottom) & (y < other.bottom + other.height + GAP / 2)
        return np.asarray(across & up)

    def _covers_disc(self, disc: Disc) -> Flags:
        nearest = np.clip(disc.center, self.corners, self.corners + np.array([self.width, self.height]))
        return np.asarray(np.hypot(*(nearest - disc.center).T) < disc.radius + GAP)

    def _covers_points(self, points: Points) -> Flags:
        """Tells for each place whether some of *points* lie in it."""
        low, high = self.corners - GAP / 2, self.corners + np.array([self.width, self.height]) + GAP / 2
        inside = (points > low[:, None]) & (points < high[:, None])
        return np.asarray((inside[..., 0] & inside[..., 1]).any(axis=1))

    def _leads_over(self, box: Box) -> Flags:
        """Tells for each place whether its leader lies over a label."""
        x, y = self.leaders[..., 0], self.leaders[..., 1]
        inside = (x > box.left) & (x < box.left + box.width) & (y > box.bottom) & (y < box.bottom + box.height)
        return np.asarray(inside.any(axis=1))

    def _crosses(self, first: Points, last: Points) -> Flags:
        """Tells for each place whether its leader crosses the segment from *first* to *last*."""
        along, other = self.ends - self.anchor, last - first
        turn = _cross(along, other)
        safe = np.where(turn == 0, 1.0, turn)
        s, t = _cross(first - self.anchor, other) / safe, _cross(first - self.anchor, along) / safe
        return np.asarray((turn != 0) & (s > 0) & (s < 1) & (t > 0) & (t < 1))


def _cross(a: Points, b: Points) -> Points:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _dense(line: Points) -> Points:
    """Returns points along a line, near to one another."""
    pieces = [a + np.linspace(0, 1, 2 + int(np.hypot(*(b - a)) / DENSE))[:, None] * (b - a) for a, b in pairwise(line)]
    return np.concatenate(pieces)
