"""The operators of TensorFlow's cases as TensorFlow Lite's converter writes them, interpreted, equal what TensorFlow computed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontends.tensorflow.test_operators import FOLDER, check

with np.load(FOLDER / "lite.npz") as _archive:
    MODELS = {name.removesuffix(".model"): _archive[name].tobytes() for name in _archive}


@pytest.mark.parametrize("case", sorted(MODELS))
def test_operator(case: str) -> None:
    check(MODELS[case], case)
