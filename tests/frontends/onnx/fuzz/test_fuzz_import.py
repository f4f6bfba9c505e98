"""The campaign of `make fuzz-import`, in small, and that it would tell of a failure."""

from __future__ import annotations

import pytest
from tests.frontends.onnx.fuzz import campaign
from tests.frontends.onnx.fuzz.campaign import Outcome, run_chunk


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit would stay for the tests behind in this process."""
    monkeypatch.setattr(campaign, "_limit_memory", lambda: None)


def test_damaged_models_do_no_harm() -> None:
    found = run_chunk((0, 0, 60))
    assert found.is_good, str(found)


@pytest.mark.slow
def test_many_damaged_models_do_no_harm() -> None:
    found = run_chunk((1, 0, 2_000))
    assert found.is_good, str(found)


@pytest.mark.parametrize("number", [3519, 33207, 40406, 45635, 46387])
def test_what_a_campaign_found_is_mended(number: int) -> None:
    """Inputs for which ONNX has no body of a function, tensors of fewer strings than they say, and no indices of no columns."""
    found = run_chunk((1, number, 1))
    assert not found.failures


def test_a_crash_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: bytes) -> int:
        raise KeyError("lost")

    monkeypatch.setattr(campaign, "_through", crash)
    found = run_chunk((0, 5, 1))
    assert found == Outcome(1, found.parsed, 0, ("input 5 of seed 0: KeyError: 'lost'",))
    assert not found.is_good


def test_a_loop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(_: bytes) -> int:
        while True:
            pass

    monkeypatch.setattr(campaign, "SECONDS", 0.05)
    monkeypatch.setattr(campaign, "_through", forever)
    (told,) = run_chunk((0, 5, 1)).failures
    assert told == "input 5 of seed 0: 0 seconds"
