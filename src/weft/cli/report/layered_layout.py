"""Places for the boxes of a directed graph, in layers from the top to the bottom, and routes for its edges.

The four steps of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures" (1981): layers
by the longest path; a point in every layer that an edge passes; an order in each layer, by medians of neighbours, that crosses
few edges; and coordinates. Those are chosen as Gansner et al., "A technique for drawing directed graphs" (1993) want them, near
to their neighbours and not too near to one another, but found by sweeps of isotonic regression, which solves one layer exactly.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
Edge: TypeAlias = tuple[int, int]

BOX_GAP = 22.0
"""Units between two boxes of a layer."""

EDGE_GAP = BOX_GAP / 2
"""Units between an edge that passes a layer and its neighbours there."""

LAYER_GAP = 30.0
"""Units between two layers."""

ORDER_ROUNDS = 12
PLACE_ROUNDS = 9
"""Odd, so that the last sweep goes down: a box below one box alone is placed right below it."""

WEIGHTS = (1.0, 0.01, 0.001)
"""How hard it is to move, in a layer that is too narrow: boxes, edges that go on as they came, and edges that come from a box."""


@dataclass(frozen=True)
class Layout:
    """Where the middle of each box is, the points that each edge passes from its first box to its second, and the size of all."""

    places: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    """Returns places for boxes of *sizes* (width, height), such that all *edges* lead downwards.

    Boxes are numbered in topological order: every edge (a, b) has a < b.
    """
    if not sizes:
        return Layout((), (), 0.0, 0.0)
    net = _Net([w for w, _ in sizes], _layers(len(sizes), edges))
    paths = [_path(net, edge) for edge in edges]
    layers = _ordered(net)
    x = _placed(net, layers)
    left = min(p - w / 2 for p, w in zip(x, net.widths, strict=True))
    right = max(p + w / 2 for p, w in zip(x, net.widths, strict=True))
    heights = [max((sizes[n][1] for n in layer if n < len(sizes)), default=0.0) for layer in layers]
    tops = [sum(heights[:k]) + LAYER_GAP * k for k in range(len(heights))]
    places = [(x[n] - left, tops[net.layer[n]] + heights[net.layer[n]] / 2) for n in range(len(net.widths))]
    routes = [_route(path, places, sizes, tops, heights, net) for path in paths]
    return Layout(tuple(places[: len(sizes)]), tuple(routes), right - left, tops[-1] + heights[-1])


@dataclass
class _Net:
    """The boxes and, after them, the points where edges pass a layer: the width, the layer and the neighbours of each."""

    widths: list[float]
    layer: list[int]
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.boxes = len(self.widths)
        self.above = [[] for _ in self.widths]
        self.below = [[] for _ in self.widths]

    def pass_through(self, layer: int) -> int:
        """Adds a point in *layer*."""
        self.widths.append(0.0)
        self.layer.append(layer)
        self.above.append([])
        self.below.append([])
        return len(self.widths) - 1

    def near(self, n: int, down: bool) -> tuple[Sequence[int], float]:
        """Returns the nodes that *n* is placed below (or above), and their weight: largest between boxes, for straight chains."""
        joined = self.above[n] if down else self.below[n]
        alike = [m for m in joined if (m < self.boxes) == (n < self.boxes)]
        return alike or joined, WEIGHTS[0] if n < self.boxes else WEIGHTS[1] if alike else WEIGHTS[2]

    def gap(self, a: int, b: int) -> float:
        """Returns how far the middles of two neighbours in a layer are apart at least."""
        between = BOX_GAP if a < self.boxes and b < self.boxes else EDGE_GAP
        return (self.widths[a] + self.widths[b]) / 2 + between


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """Returns the layer of each box: below all that lead to it, and those that nothing leads to right above what they lead to."""
    layer = [0] * count
    entered, first = set[int](), dict[int, int]()
    for a, b in sorted(edges, key=lambda e: e[1]):
        layer[b] = max(layer[b], layer[a] + 1)
        entered.add(b)
    for a, b in edges:
        first[a] = min(first.get(a, layer[b]), layer[b])
    return [n if b in entered or b not in first else first[b] - 1 for b, n in enumerate(layer)]


def _path(net: _Net, edge: Edge) -> list[int]:
    """Joins the two ends of an edge by points in the layers between, and returns all of them in order."""
    a, b = edge
    path = [a, *[net.pass_through(n) for n in range(net.layer[a] + 1, net.layer[b])], b]
    for upper, lower in pairwise(path):
        net.below[upper].append(lower)
        net.above[lower].append(upper)
    return path


def _ordered(net: _Net) -> list[list[int]]:
    """Returns the nodes of each layer, from left to right: of some sweeps down and up, the order that crosses fewest edges."""
    layers: list[list[int]] = [[] for _ in range(max(net.layer) + 1)]
    for n in _in_depth(net):
        layers[net.layer[n]].append(n)
    best, fewest = [list(x) for x in layers], _crossings(net, layers)
    for r in range(ORDER_ROUNDS):
        if fewest == 0:
            break
        down = r % 2 == 0
        sides = net.above if down else net.below
        for layer in layers if down else reversed(layers):
            _sort_by_neighbours(layer, sides, _positions(layers))
        found = _crossings(net, layers)
        if found < fewest:
            best, fewest = [list(x) for x in layers], found
    return best


def _in_depth(net: _Net) -> list[int]:
    """Returns all nodes in an order in which neighbours come together, so that few edges cross from the start."""
    seen: dict[int, None] = {}
    for start in sorted(range(len(net.widths)), key=lambda n: net.layer[n]):
        stack = [start]
        while stack:
            n = stack.pop()
            if n not in seen:
                seen[n] = None
                stack += reversed(net.below[n])
    return list(seen)


def _positions(layers: Sequence[Sequence[int]]) -> dict[int, int]:
    return {n: k for layer in layers for k, n in enumerate(layer)}


def _sort_by_neighbours(layer: list[int], sides: Sequence[Sequence[int]], position: dict[int, int]) -> None:
    """Sorts a layer by the medians of its neighbours on one side; a node without any keeps its place."""
    wanted = {n: median([position[m] for m in sides[n]]) for n in layer if sides[n]}
    moving = iter(sorted(wanted, key=lambda n: wanted[n]))
    layer[:] = [next(moving) if n in wanted else n for n in layer]


def _crossings(net: _Net, layers: Sequence[Sequence[int]]) -> int:
    """Returns how many pairs of edges cross."""
    position = _positions(layers)
    total = 0
    for layer in layers:
        ends: list[int] = []
        for n in layer:
            lower = sorted(position[m] for m in net.below[n])
            total += sum(len(ends) - bisect_left(ends, p + 1) for p in lower)
            for p in lower:
                insort(ends, p)
    return total


def _placed(net: _Net, layers: Sequence[Sequence[int]]) -> list[float]:
    """Returns the middle of everything from left to right, each near to its neighbours and apart from the next in its layer."""
    x = [0.0] * len(net.widths)
    for layer in layers:
        _keep_apart(net, layer, x, dict.fromkeys(layer, (0.0, 1.0)))
    for r in range(PLACE_ROUNDS):
        down = r % 2 == 0
        for layer in layers if down else reversed(layers):
            _keep_apart(net, layer, x, {n: _wanted(net, n, x, down=down) for n in layer})
    return x


def _wanted(net: _Net, n: int, x: Sequence[float], *, down: bool) -> tuple[float, float]:
    """Returns the preferred coordinate of *n*, and its weight."""
    near, weight = net.near(n, down)
    return (sum(x[m] for m in near) / len(near) if near else x[n]), weight


def _keep_apart(net: _Net, layer: Sequence[int], x: list[float], wanted: dict[int, tuple[float, float]]) -> None:
    """Moves a layer to the weighted least squares of distances from *wanted* under which all keep their order and their gaps.

    With the gaps taken off, that is isotonic regression, solved by pooling neighbours that would change places.
    """
    offset, offsets = 0.0, []
    for k, n in enumerate(layer):
        offset += net.gap(layer[k - 1], n) if k else 0.0
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []  # the mean, the weight and the number of members
    for n, o in zip(layer, offsets, strict=True):
        pool = (wanted[n][0] - o, wanted[n][1], 1)
        while pools and pools[-1][0] > pool[0]:
            mean, weight, count = pools.pop()
            total = weight + pool[1]
            pool = ((mean * weight + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    means = [mean for mean, _, count in pools for _ in range(count)]
    for n, o, mean in zip(layer, offsets, means, strict=True):
        x[n] = mean + o


def _route(
    path: Sequence[int],
    places: Sequence[Point],
    sizes: Sequence[tuple[float, float]],
    tops: Sequence[float],
    heights: Sequence[float],
    net: _Net,
) -> tuple[Point, ...]:
    """Returns the points of an edge: out of its first box's bottom, straight through the layers, into its last box's top."""
    (ax, ay), (bx, by) = places[path[0]], places[path[-1]]
    points = [(ax, ay + sizes[path[0]][1] / 2)]
    for n in path[1:-1]:
        top = tops[net.layer[n]]
        points += [(places[n][0], top), (places[n][0], top + heights[net.layer[n]])]
    return (*points, (bx, by - sizes[path[-1]][1] / 2))
