"""Stateful layers begin where the call before ended, as Keras's do (`make_stateful`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("h5py")

import weft

FOLDER = Path(__file__).parent / "stateful"


def test_calls_follow_one_another() -> None:
    model = weft.compile(FOLDER / "remembering.keras")
    state = model.new_state()
    with np.load(FOLDER / "remembering.npz") as held:
        for x, want in zip(held["inputs"], held["outputs"], strict=True):
            (got,) = model.run([x], state=state)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
        assert np.abs(held["outputs"][0] - held["outputs"][1]).max() > 0.01


def test_an_open_batch_is_refused() -> None:
    with pytest.raises(weft.ModelError, match="LSTM lstm: it is stateful, and the size of its batch is open"):
        weft.compile(FOLDER / "remembering.keras", shapes={"x": ("batch", 5, 3)})
