"""Networks of Darknet's own: it trained them, saved their weights, and its results are stored (`make_own`); and made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontends.darknet.make_own import LIBRARY, make
from tests.frontends.darknet.networks import text_of
from tests.frontends.darknet.own_networks import NETWORKS

import weft

with np.load(Path(__file__).parent / "own.npz") as _archive:
    ARRAYS: dict[str, Any] = dict(_archive)

TOLERANCE = 1e-5


def check(path: Path, x: Any, wanted: dict[str, Any]) -> None:
    """Compares each call of a network with Darknet's results, of which the greatest is 1."""
    model = weft.compile(path)
    assert {o.name for o in model.outputs} == set(wanted)
    assert all(np.ptp(y) > 0.02 for y in wanted.values())
    state = model.new_state() if len(x) > 1 else None
    for k, images in enumerate(x):
        for output, y in zip(model.outputs, model.run([images[None]], state=state), strict=True):
            expected = wanted[output.name][k]
            assert np.abs(y.reshape(expected.shape) - expected).max() <= TOLERANCE * np.abs(expected).max(), output.name


@pytest.mark.parametrize("name", NETWORKS)
def test_equals_darknet(name: str, tmp_path: Path) -> None:
    stored = {n.rpartition("/")[2]: a for n, a in ARRAYS.items() if n.startswith(f"{name}/")}
    path = tmp_path / "net.cfg"
    path.write_text(text_of(NETWORKS[name]))
    path.with_suffix(".weights").write_bytes(stored.pop("weights").tobytes())
    check(path, stored.pop("x"), stored)


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARY.exists(), reason=f"Debian's package darknet, with {LIBRARY}, is not installed")
@pytest.mark.parametrize("name", NETWORKS)
def test_made_anew(name: str, tmp_path: Path) -> None:
    check(*make(NETWORKS[name], 11, tmp_path))
