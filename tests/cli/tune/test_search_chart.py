"""The course of a search is drawn in parts of the picture's size, and told in words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.tune.search_chart import course_text, search_chart
from weft.tune.measure import Failed, Interval, Measured, Outcome
from weft.tune.task_tuner import Trial


def trials(scores: list[float]) -> list[Trial]:
    """Returns candidates of these speedups, those of 0 failed."""
    return [Trial(np.zeros(1, np.int64), "", Outcome("", None, _result(s)), s, 0.0) for s in scores]


def _result(score: float) -> Measured | Failed:
    if score == 0:
        return Failed("crash", "")
    return Measured((1.0,), (score,), Interval(1 / score, 1 / score, 1 / score), is_early=False, error=0.0)


def test_the_best_so_far() -> None:
    lines = re.findall(
        r'<line class="best" x1="([\d.]+)%" x2="([\d.]+)%" y1="([\d.]+)%" y2="([\d.]+)%"',
        search_chart(trials([0.5, 1.5, 0.0, 1.2, 2.0])),
    )
    top = 2.0 * 1.06
    at = {s: 100 * (1 - s / top) for s in (1.0, 1.5, 2.0)}
    wanted = [
        (0, 40, at[1.0], at[1.0]),
        (40, 40, at[1.0], at[1.5]),
        (40, 100, at[1.5], at[1.5]),
        (100, 100, at[1.5], at[2.0]),
    ]
    assert [tuple(map(float, line)) for line in lines] == [pytest.approx(w, abs=0.01) for w in wanted]


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), max_size=60))
def test_all_is_inside_the_picture(scores: list[float]) -> None:
    picture = search_chart(trials(scores))
    assert all(0 <= float(p) <= 100 for p in re.findall(r'"(-?[\d.e+-]+)%"', picture))
    assert picture.count('class="tried"') == sum(s > 0 for s in scores)
    assert picture.count('class="failed"') == scores.count(0.0)
    assert 2 <= len(re.findall(r'text-anchor="end"', picture)) <= 8


def test_in_words() -> None:
    begin = "Best speedup against candidates: "
    assert course_text(trials([0.5])) == f"{begin}1 candidate tried; none was faster than the incumbent."
    assert course_text(trials([0.5, 0.0, 1.95, 2.0])) == (
        f"{begin}4 candidates tried, 1 of them failed; the best was 2.00 times as fast as the incumbent, candidate 4; "
        "nine tenths of that gain were reached by candidate 3."
    )
