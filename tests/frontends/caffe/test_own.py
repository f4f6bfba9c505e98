"""Networks that Caffe itself saved, against its stored results (`make_own`); and made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontends.caffe.make_own import PYTHON, make
from tests.frontends.caffe.own_networks import NETWORKS
from tests.frontends.caffe.reference import text_of

import weft

with np.load(Path(__file__).parent / "own.npz") as _archive:
    ARRAYS: dict[str, Any] = dict(_archive)

TOLERANCE = 1e-5
EQUAL = ("ones", "fives")
"""Results whose elements are equal."""


def check(path: Path, values: dict[str, Any]) -> None:
    """Compares a network with Caffe's results, and with those of the next run where what it keeps makes them others."""
    model = weft.compile(path)
    state = model.new_state() if model.states else None
    for run in ("", "next_")[: 1 + any(name.startswith("next_in/") for name in values)]:
        wanted = {name.removeprefix(f"{run}out/"): y for name, y in values.items() if name.startswith(f"{run}out/")}
        assert {o.name for o in model.outputs} == set(wanted)
        made = model.run([values[f"{run}in/{i.name}"] for i in model.inputs], state=state)
        for output, y in zip(model.outputs, made, strict=True):
            expected = wanted[output.name]
            assert y.shape == expected.shape, output.name
            assert np.ptp(expected) > 0.05 or output.name in EQUAL
            assert np.abs(y - expected).max() <= TOLERANCE * np.abs(expected).max(), output.name


@pytest.mark.parametrize("name", NETWORKS)
def test_equals_caffe(name: str, tmp_path: Path) -> None:
    stored = {n.removeprefix(f"{name}:"): a for n, a in ARRAYS.items() if n.startswith(f"{name}:")}
    path = tmp_path / "net.prototxt"
    path.write_text(text_of("small", NETWORKS[name]))
    path.with_suffix(".caffemodel").write_bytes(stored.pop("weights").tobytes())
    check(path, stored)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="CAFFE_PYTHON names no Python that has Caffe")
@pytest.mark.parametrize("name", NETWORKS)
def test_made_anew(name: str, tmp_path: Path) -> None:
    values = make(NETWORKS[name], 11, tmp_path)
    check(tmp_path / "net.prototxt", values)
