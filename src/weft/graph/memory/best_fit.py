"""Assigns buffers offsets in one arena, so that buffers live at the same time do not overlap and little memory is wasted.

The placement is greedy best fit, as in Pisarchyk and Lee, "Efficient memory management for deep neural net inference" (2020),
under several orders; each order is improved by placing the buffers first that ended on top, and the best order by exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from weft.cost import PLACEMENT_EXCHANGES, PLACEMENT_IMPROVEMENTS, PLACEMENT_PAIRS
from weft.graph.core.graph_values import Value
from weft.ir import Expr


@dataclass(frozen=True)
class Lifetime:
    """A buffer in the arena: `size` bytes times the symbolic `factor`, written in step `start`, last read in step `end`."""

    value: Value
    size: int
    factor: Expr
    start: int
    end: int

    def overlaps(self, other: Lifetime) -> bool:
        """Tells whether both hold contents in some step."""
        return self.start <= other.end and other.start <= self.end


def most_live(buffers: Sequence[Lifetime]) -> int:
    """Returns the largest number of bytes that hold contents in one step."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.start] = change.get(b.start, 0) + b.size
        change[b.end + 1] = change.get(b.end + 1, 0) - b.size
    live = most = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live)
    return most


_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.start),
    lambda b: (-b.size * (b.end - b.start + 1), b.start),
    lambda b: (b.start, -b.size),
    lambda b: (b.start - b.end, -b.size),
)


def place(buffers: Sequence[Lifetime]) -> tuple[dict[Value, int], int]:
    """Returns the offset of each buffer and the arena's size in bytes; deterministic."""
    bound = most_live(buffers)
    tries = min(PLACEMENT_IMPROVEMENTS, PLACEMENT_PAIRS // max(1, len(buffers) ** 2))
    best = _Placement(sorted(buffers, key=_ORDERS[0]))
    for key in _ORDERS:
        found = _improved(sorted(buffers, key=key), tries, bound)
        best = min(best, found, key=lambda p: p.total)
        if best.total == bound:
            return best.offsets, best.total
    best = _exchanged(best, min(PLACEMENT_EXCHANGES, PLACEMENT_PAIRS // max(1, len(buffers) ** 2)), bound)
    return best.offsets, best.total


class _Placement:
    """An order of buffers, and their offsets when placed in that order."""

    def __init__(self, order: list[Lifetime]) -> None:
        self.order = order
        self.offsets = _place_in_order(order)
        self.total = max((self.offsets[b.value] + b.size for b in order), default=0)


def _improved(order: list[Lifetime], tries: int, bound: int) -> _Placement:
    """Returns the best placement found from *order* by repeatedly placing the buffers first that reach the top of the arena."""
    best = now = _Placement(order)
    for _ in range(tries):
        if best.total == bound:
            break
        top = now
        now = _Placement(sorted(now.order, key=lambda b: top.offsets[b.value] + b.size < top.total))
        best = min(best, now, key=lambda p: p.total)
    return best


def _exchanged(best: _Placement, tries: int, bound: int) -> _Placement:
    """Returns *best*, improved by exchanges in its order: a buffer that reaches the top is placed before an earlier one."""
    random = Random(0)
    for _ in range(tries):
        top = [k for k, b in enumerate(best.order) if best.offsets[b.value] + b.size == best.total and k > 0]
        if best.total == bound or not top:
            break
        k = random.choice(top)
        at = random.randrange(k)
        order = list(best.order)
        order[at], order[k] = order[k], order[at]
        best = min(_Placement(order), best, key=lambda p: p.total)
    return best


def _place_in_order(buffers: Iterable[Lifetime]) -> dict[Value, int]:
    """Places each buffer, in order, in the smallest gap that fits between the buffers live at the same time, else at the end."""
    offsets: dict[Value, int] = {}
    done: list[Lifetime] = []
    for b in buffers:
        taken = sorted([(offsets[o.value], offsets[o.value] + o.size) for o in done if o.overlaps(b)])
        offsets[b.value] = _smallest_gap(taken, b.size)
        done.append(b)
    return offsets


def _smallest_gap(taken: Iterable[tuple[int, int]], size: int) -> int:
    """Returns the offset of the tightest gap of *size* between sorted intervals, or the end of the last."""
    best, tightest, end = -1, 0, 0
    for low, high in taken:
        gap = low - end
        if gap >= size and (best < 0 or gap < tightest):
            best, tightest = end, gap
        end = max(end, high)
    return best if best >= 0 else end
