"""The campaign of `make fuzz-import`, in small, and that it would tell of a failure."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.frontends.fuzz import __main__ as command
from tests.frontends.fuzz import campaign
from tests.frontends.fuzz.campaign import Outcome, run_inputs, through
from tests.frontends.fuzz.formats import FORMATS
from tests.frontends.onnx.mutations import damaged_model
from tests.frontends.onnx.test_onnx_cases import cases

MADE_BY = {"keras": "h5py", "h5": "h5py", "torch": "torch", "bytecode": "jax"}
"""What makes or reads the models, where it is a package that may not be installed."""

SLOW_TO_MAKE = {"torch", "bytecode"}


def check(name: str, seed: int, count: int, passes: bool = False) -> None:
    pytest.importorskip(MADE_BY.get(name, "onnx"))
    found = run_inputs(name, seed, range(count), passes)
    assert found.count == count
    assert found.is_good, str(found)


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - SLOW_TO_MAKE - {"onnx"}))
def test_damaged_models_do_no_harm(name: str) -> None:
    check(name, 0, 30)


def test_what_is_imported_goes_through_the_passes() -> None:
    check("onnx", 1, 40, passes=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_many_damaged_models_do_no_harm(name: str) -> None:
    check(name, 1, 2_000)


@pytest.mark.parametrize("number", [3519, 33207, 40406, 45635, 46387])
def test_what_a_campaign_found_is_mended(number: int, tmp_path: Path) -> None:
    """Inputs for which ONNX has no body of a function, tensors of fewer strings than they say, and no indices of no columns."""
    rng = random.Random(f"1 {number}")
    whole = rng.choice(cases()[rng.choice(sorted(cases()))]).model
    assert whole is not None
    made = bytearray(damaged_model(rng, whole.SerializeToString()))
    for _ in range(rng.choice([1, 2, 8]) if rng.random() < 0.125 else 0):
        made[rng.randrange(len(made))] = rng.randrange(256)
    (tmp_path / "model.onnx").write_bytes(made)
    through(tmp_path / "model.onnx", None, passes=True)


def test_a_crash_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> int:
        raise KeyError("lost")

    monkeypatch.setattr(campaign, "through", crash)
    found = run_inputs("darknet", 0, range(5, 6))
    assert found == Outcome(1, 0, ("input 5 of seed 0 of darknet: KeyError: 'lost'",))
    assert not found.is_good


def test_a_loop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(*_: Any) -> int:
        while True:
            pass

    monkeypatch.setattr(campaign, "SECONDS", 0.05)
    monkeypatch.setattr(campaign, "through", forever)
    (told,) = run_inputs("darknet", 0, range(5, 6)).failures
    assert told == "input 5 of seed 0 of darknet: 0 seconds"


def test_the_end_of_a_process_is_told_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = tmp_path / "python"
    outcome = '{"count": 1, "imported": 1, "failures": []}'
    step = f"echo $k; [ $k = 1 ] && kill -SEGV $$; echo '{outcome}'"
    worker.write_text(f"#!/bin/sh\nfor k in $(seq $5 $(($6 - 1))); do {step}; done\n")
    os.chmod(worker, 0o700)
    monkeypatch.setattr("sys.executable", str(worker))
    found = command.run_apart("darknet", 7, range(4))
    assert found == Outcome(4, 3, ("input 1 of seed 7 of darknet: the process ended with -11: ",))
