"""Networks that Keras saved, imported, and compared with the outputs that Keras computed (`make_networks`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("h5py")

import weft

FOLDER = Path(__file__).parent / "networks"
SLOW = ("masks.keras", "translation.keras")
MODELS = [
    pytest.param(p.name, marks=pytest.mark.slow) if p.name in SLOW else p.name
    for p in sorted(FOLDER.iterdir())
    if p.suffix != ".npz"
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MODELS)
def test_network_equals_keras(name: str) -> None:
    model = weft.compile(FOLDER / name)
    held = np.load(FOLDER / f"{Path(name).stem}.npz")
    inputs = [held[k] for k in held.files if k.startswith("input")]
    wanted = [held[k] for k in held.files if k.startswith("output")]
    made = model(*[a.astype(object) if a.dtype.kind == "U" else a for a in inputs])
    results = made if isinstance(made, tuple | list) else [made]
    assert len(results) == len(wanted)
    texts = [(got, want) for got, want in zip(results, wanted, strict=True) if want.dtype.kind == "U"]
    assert all((got == want).all() for got, want in texts)
    results, wanted = ([a for a in arrays if a.dtype.kind not in "UO"] for arrays in (results, wanted))
    assert any(w.std() > 0.01 * np.abs(w).max() and np.abs(w[0] - w[1]).max() > 0.01 * np.abs(w).max() for w in wanted)
    for got, want in zip(results, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
