"""The operators of TensorFlow's cases as TensorFlow Lite's converter writes them, interpreted, equal what TensorFlow computed."""

from __future__ import annotations

import pytest
from tests.frontends.tensorflow.test_operators import check, unpacked

MODELS = {
    name.removesuffix(".model"): array.tobytes() for name, array in (unpacked("lite") | unpacked("named_lite")).items()
}


@pytest.mark.parametrize("case", sorted(MODELS))
def test_operator(case: str) -> None:
    check(MODELS[case], case)
