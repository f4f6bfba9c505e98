"""Models that coremltools converted from PyTorch, compiled, and compared with PyTorch's outputs (`make_networks`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft
from weft.frontends.dispatch import to_graph

FOLDER = Path(__file__).parent / "networks"
MODELS = sorted(p.name for p in FOLDER.iterdir() if p.suffix != ".npz")


@pytest.mark.parametrize("name", MODELS)
def test_network_equals_pytorch(name: str) -> None:
    model = weft.compile(FOLDER / name)
    held = np.load(FOLDER / f"{Path(name).stem}.npz")
    got = model(held["x"])
    assert isinstance(got, np.ndarray)
    assert got.shape == held["y"].shape
    assert held["y"].std() > 0.01
    assert np.abs(got - held["y"]).max() <= 1e-5 * np.abs(held["y"]).max()


def test_names_and_metadata_are_kept() -> None:
    graph = to_graph(FOLDER / "residual.mlpackage")
    assert [v.name for v in graph.inputs] == ["x"]
    assert graph.metadata.producer_name == "coreml"
    assert graph.metadata.custom_metadata_map["com.github.apple.coremltools.source"].startswith("torch==")


def test_a_model_is_given_as_bytes() -> None:
    path = FOLDER / "residual.mlmodel"
    assert len(to_graph(path.read_bytes()).nodes) == len(to_graph(path).nodes)


def test_states_are_kept_between_calls() -> None:
    folder = FOLDER.parent / "stateful"
    model = weft.compile(folder / "cache.mlpackage")
    held, state = np.load(folder / "cache.npz"), model.new_state()
    assert [(name, np.asarray(state[name]).shape) for name in ("cache", "total")] == [
        ("cache", (1, 6, 4)),
        ("total", (4,)),
    ]
    for x, y in zip(held["x"], held["y"], strict=True):
        np.testing.assert_allclose(model.run([x], state=state)[0], y, rtol=1e-5)
    assert len({*map(bytes, held["y"])}) == 3
