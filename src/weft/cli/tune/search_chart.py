"""The course of a search as a picture: a dot for each candidate, the best so far, and the incumbent.

Places are parts of the picture's size, so that it fits any width while texts and dots keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import floor, log10
from typing import Final

from weft.cli.console import human_count, human_seconds
from weft.cli.tune.candidate_fates import FATES, fate_of
from weft.cli.tune.markup import Markup, element
from weft.tune.task_tuner import Trial

HEADROOM: Final = 1.06
"""The end of the axis of speedups, relative to the largest."""

LEAST_TOP: Final = 1.15
"""The least end of the vertical axis, so that the incumbent's line is not the upper edge."""

TICKS: Final = 5
"""Numbers on an axis, about."""


def search_chart(trials: Sequence[Trial]) -> Markup:
    """Returns the picture of *trials*, in the order in which they ended: speedups beside the incumbent, over the candidates."""
    top = max(LEAST_TOP, HEADROOM * max([t.score for t in trials], default=0.0))
    across, up = _Axis(len(trials)), _Axis(top)
    return element(
        "svg",
        *_grid(across, up),
        element("line", class_="incumbent", x1="0", x2="100%", y1=up.from_top(1), y2=up.from_top(1)),
        *[_dot(n, t, across, up) for n, t in enumerate(trials, 1)],
        *_curve([t.score for t in trials], across, up),
        element("text", "candidates tried", x="50%", y="100%", dy=38.0, text_anchor="middle"),
        element("text", "speedup", x=-48.0, y=-10.0),
        class_="search",
        role="img",
        aria_label=course_text(trials),
    )


def course_text(trials: Sequence[Trial]) -> str:
    """Returns the content of the picture in a sentence."""
    scores = [t.score for t in trials]
    failed = sum(s == 0 for s in scores)
    tried = f"{human_count(len(scores), 'candidate')} tried" + (f", {failed} of them failed" if failed else "")
    best = max(scores, default=0.0)
    if best <= 1:
        return f"Best speedup against candidates: {tried}; none was faster than the incumbent."
    first = scores.index(best) + 1
    so_far = next(n for n, s in enumerate(accumulate(scores, max), 1) if s >= 1 + 0.9 * (best - 1))
    return (
        f"Best speedup against candidates: {tried}; the best was {best:.2f} times as fast as the incumbent, candidate {first}; "
        f"nine tenths of that gain were reached by candidate {so_far}."
    )


class _Axis:
    """Numbers from 0 to *end* as places, in percent."""

    def __init__(self, end: float) -> None:
        self.end = max(end, 1e-9)

    def __call__(self, value: float) -> str:
        return f"{100 * value / self.end:.2f}%"

    def from_top(self, value: float) -> str:
        """Returns the place on an axis that goes up."""
        return self(self.end - value)

    def ticks(self, least: float = 0.0) -> list[float]:
        """Returns round numbers on the axis, at least *least* apart."""
        raw = max(self.end / TICKS, least)
        unit = 10.0 ** floor(log10(raw))
        step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw * 0.999)
        return [n * step for n in range(floor(self.end / step * (1 + 1e-9)) + 1)]


def _grid(across: _Axis, up: _Axis) -> Iterator[Markup]:
    for v in up.ticks():
        place = up.from_top(v)
        yield element("line", class_="grid", x1="0", x2="100%", y1=place, y2=place)
        yield element("text", f"{v:g}", x=-8.0, y=place, dy=4.0, text_anchor="end")
    for v in across.ticks(1.0):
        yield element("text", f"{v:g}", x=across(v), y="100%", dy=18.0, text_anchor="middle")


def _dot(number: int, trial: Trial, across: _Axis, up: _Axis) -> Markup:
    """Returns the dot of a candidate; one that failed has a mark on the lower edge."""
    if trial.score > 0:
        said = (
            f"candidate {number}: {trial.score:.2f} times as fast, {human_seconds(trial.second)} after the search began"
        )
        return element(
            "circle", element("title", said), class_="tried", cx=across(number), cy=up.from_top(trial.score), r=3.0
        )
    said = f"candidate {number}: {FATES[fate_of(trial)]}"
    place = across(number)
    return element("line", element("title", said), class_="failed", x1=place, x2=place, y1="97%", y2="100%")


def _curve(scores: Sequence[float], across: _Axis, up: _Axis) -> Iterator[Markup]:
    """Yields the steps of the best so far, which begins with the incumbent."""
    best = list(accumulate(scores, max, initial=1.0))
    gains = [n for n in range(1, len(best)) if best[n] > best[n - 1]]
    for begin, end in pairwise(dict.fromkeys([0, *gains, len(scores)])):
        level, place = up.from_top(best[begin]), across(end)
        yield element("line", class_="best", x1=across(begin), x2=place, y1=level, y2=level)
        if best[end] > best[begin]:
            yield element("line", class_="best", x1=place, x2=place, y1=level, y2=up.from_top(best[end]))
