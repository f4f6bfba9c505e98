"""Two compiled models are compared in several places of memory: one that does ten times the work is slower in all of them."""

from __future__ import annotations

import pytest
from tests.models import matmul, mlp

import weft
from weft.tune import tune_model
from weft.tune.measure import PLACES, Interval


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_model, "COMPARED", 0.06)


def test_more_work_is_slower() -> None:
    small, large = (weft.build(mlp(4, (24, width, width, 10)), "cpu") for width in (16, 512))
    assert tune_model.compare_models(small, large, 1).high < 1
    assert tune_model.compare_models(large, small, 1).low > 1


def test_what_is_slower_in_one_place_is_not_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its interval encloses those of all places."""
    told = iter([Interval(0.97, 0.98, 0.99), Interval(1.01, 1.02, 1.03), Interval(0.96, 0.97, 0.98)])
    monkeypatch.setattr(tune_model, "_ratio_of_calls", lambda *_: next(told))
    made = weft.build(matmul(4, 4, 4), "cpu")
    assert PLACES == 3
    assert tune_model.compare_models(made, made, 1) == Interval(0.96, 0.98, 1.03)
