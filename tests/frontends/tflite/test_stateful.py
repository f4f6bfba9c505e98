"""Models whose calls change variables equal TensorFlow Lite's interpreter, call after call; see `make_stateful`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft
from weft.support.errors import InputError

FOLDER = Path(__file__).parent / "stateful"


def opened(case: str) -> tuple[weft.Model, np.ndarray, np.ndarray]:
    with np.load(FOLDER / f"{case}.npz") as held:
        return weft.compile(held["model"].tobytes()), held["x"], held["y"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", sorted(p.stem for p in FOLDER.glob("*.npz")))
def test_calls_in_a_row(case: str) -> None:
    model, x, y = opened(case)
    for state in (model.new_state(), model.new_state()):
        for given, wanted in zip(x, y, strict=True):
            np.testing.assert_allclose(model.run([given], state=state)[0], wanted, rtol=1e-5, atol=1e-5)


def test_variables_are_states_by_their_names() -> None:
    model, x, y = opened("values")
    state = model.new_state()
    with pytest.raises(InputError, match="state"):
        model.run([x[0]])
    for given in x:
        model.run([given], state=state)
    state.reset()
    np.testing.assert_allclose(model.run([x[0]], state=state)[0], y[0], rtol=1e-5)
