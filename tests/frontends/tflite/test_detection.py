"""The custom operator at the end of detectors equals TensorFlow Lite's interpreter; see `make_detection`."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph
from weft.frontends.tflite.flatbuffer import Damaged
from weft.frontends.tflite.flexbuffer import settings

FOLDER = Path(__file__).parent / "detection"
MAP = b"a\0b\0\x02\x05\x04\x02\x01\x02\x07\xff\x04\x04\x04\x24\x01"
"""The FlexBuffer of {"a": 7, "b": -1}."""


@pytest.mark.parametrize("case", sorted(p.stem for p in FOLDER.glob("*.npz")))
def test_equals_the_interpreter(case: str) -> None:
    with np.load(FOLDER / f"{case}.npz") as held:
        graph = to_graph(held["model"].tobytes())
        made = run_graph(graph, {v.name: held[f"given_{v.name}"] for v in graph.inputs})
        found = dict(zip(graph.output_names, made, strict=True))
        wanted = {k.removeprefix("made_"): v for k, v in held.items() if k.startswith("made_")}
    assert found["count"] == wanted["count"] > 1
    entries = int(found["count"][0]) * (2 if case == "fast_of_two_classes" else 1)
    for name in ("boxes", "classes", "scores"):
        assert found[name].shape == wanted[name].shape
        np.testing.assert_allclose(found[name][0, :entries], wanted[name][0, :entries], rtol=1e-5, atol=1e-6)
        assert not found[name][0, entries:].any()


def test_settings_are_a_map_of_numbers() -> None:
    assert settings(MAP) == {"a": 7, "b": -1}


def test_damaged_settings_are_told() -> None:
    rng, damaged = random.Random(0), 0
    for _ in range(2000):
        data = bytearray(MAP)
        data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            settings(bytes(data[: rng.randint(0, len(data))]))
        except Damaged:
            damaged += 1
    assert damaged > 500
