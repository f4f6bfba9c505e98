"""Ragged and sparse tensors, and lists that grow (`make_ragged`), interpreted, equal what TensorFlow computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.frontends.tensorflow.test_operators import unpacked

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

ARRAYS = unpacked("ragged")
CASES = sorted({name.partition(".")[0] for name in ARRAYS})


def arrays(prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): a for name, a in ARRAYS.items() if name.startswith(prefix)}


@pytest.mark.parametrize("case", CASES)
def test_ragged(case: str) -> None:
    imported = to_graph(ARRAYS[f"{case}.graph"].tobytes())
    for run in range(2):
        made = run_graph(imported, arrays(f"{case}.{run}.input."))
        wanted = arrays(f"{case}.{run}.output.")
        assert set(imported.output_names) == set(wanted)
        for name, got in zip(imported.output_names, made, strict=True):
            want = wanted[name]
            assert (got.shape, got.dtype) == (want.shape, want.dtype), name
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.nanmax(np.abs(want), initial=1e-3))
