"""Arguments of a wrong type: each is refused by name, with what to give instead, before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models import mlp

import weft

THREADS = "use 1 or more, or None for all processors"
SHAPES = 'give sizes by name, such as shapes={"batch": 4}, {"batch": weft.Dim(1, 64)} or {"image": (1, 3, 224, 224)}'
KNOBS = "use fusion, layout, winograd, prepacking, parts, memory, parallel, versions, pretuned"

COMPILING: list[tuple[dict[str, Any], str]] = [
    ({"threads": "2"}, f"threads is '2'\n  hint: {THREADS}"),
    ({"threads": 2.0}, f"threads is 2.0\n  hint: {THREADS}"),
    ({"threads": True}, f"threads is True\n  hint: {THREADS}"),
    (
        {"target": None},
        "target is None\n  hint: use cpu, cpu -mattr=avx512|avx2|sse4, or another that `weft targets` lists",
    ),
    ({"opt_level": 2.0}, "opt_level is 2.0\n  hint: use 0, 1, 2 or 3"),
    ({"opt_level": True}, "opt_level is True\n  hint: use 0, 1, 2 or 3"),
    ({"precision": ["strict"]}, 'precision is [\'strict\']\n  hint: use "model", "strict", "bf16" or "tf32"'),
    ({"verify": "no"}, "verify is 'no'\n  hint: use True or False"),
    ({"cache": None}, "cache is None\n  hint: use True or False"),
    ({"shapes": 7}, f"shapes is a int, which has no names\n  hint: {SHAPES}"),
    ({"shapes": [("batch", 1)]}, f"shapes is a list, which has no names\n  hint: {SHAPES}"),
    ({"shapes": {7: 1}}, f"shapes has 7, which is no name\n  hint: {SHAPES}"),
    ({"shapes": {"batch": "1"}}, f"the shape of 'batch' is '1'\n  hint: {SHAPES}"),
    ({"shapes": {"batch": 1.5}}, f"the shape of 'batch' is 1.5\n  hint: {SHAPES}"),
    ({"shapes": {"batch": True}}, f"the shape of 'batch' is True\n  hint: {SHAPES}"),
    ({"shapes": {"x": (2.0, 24)}}, f"the shape of 'x' has the size 2.0\n  hint: {SHAPES}"),
    (
        {"progress": 7},
        "progress is 7\n  hint: give a function that takes a stage, the number of steps done, and of all steps",
    ),
    ({"without": 7}, f"without is 7\n  hint: {KNOBS}"),
    ({"without": [[]]}, f"there is no optimization [] to do without\n  hint: {KNOBS}"),
]

LOADING: list[tuple[dict[str, Any], str]] = [
    ({"threads": "2"}, f"threads is '2'\n  hint: {THREADS}"),
    ({"threads": 0}, f"threads is 0\n  hint: {THREADS}"),
    ({"copy": "yes"}, "copy is 'yes'\n  hint: use True or False"),
    ({"verify": 2}, "verify is 2\n  hint: use True or False"),
]

RUNNING: list[tuple[tuple[Any, ...], str]] = [
    ((None, [1]), "input_feed is a list, which has no names\n  hint: give a dict with 'x'"),
    ((None, None), "input_feed is a NoneType, which has no names\n  hint: give a dict with 'x'"),
    (
        ("y", {"x": np.ones((1, 24), np.float32)}),
        "output_names is 'y'\n  hint: give a list of names, or None for all outputs",
    ),
    (
        (7, {"x": np.ones((1, 24), np.float32)}),
        "output_names is 7\n  hint: give a list of names, or None for all outputs",
    ),
    (([[]], {"x": np.ones((1, 24), np.float32)}), "there is no output []\n  hint: the model makes (y: f32[batch, 10])"),
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arguments") / "m.weft"
    weft.compile(mlp()).save(path)
    return path


@pytest.mark.parametrize(("given", "text"), COMPILING, ids=str)
def test_compiling(given: dict[str, Any], text: str) -> None:
    with pytest.raises(weft.InputError) as caught:
        weft.compile(mlp(), **given)
    assert str(caught.value) == text


@pytest.mark.parametrize(("given", "text"), LOADING, ids=str)
def test_loading(saved: Path, given: dict[str, Any], text: str) -> None:
    with pytest.raises(weft.InputError) as caught:
        weft.load(saved, **given)
    assert str(caught.value) == text


@pytest.mark.parametrize(("args", "text"), RUNNING, ids=lambda v: str(v)[:20])
def test_running_a_session(saved: Path, args: tuple[Any, ...], text: str) -> None:
    with pytest.raises(weft.InputError) as caught:
        weft.InferenceSession(saved).run(*args)
    assert str(caught.value) == text


def test_what_numpy_counts_with_is_a_number(saved: Path) -> None:
    given: list[dict[str, Any]] = [{"batch": np.int64(3)}, {"x": np.array([3, 24])}, {"x": [np.int32(3), 24]}]
    for shapes in given:
        assert weft.compile(mlp(), shapes=shapes).inputs[0].shape == (3, 24)
    assert weft.load(saved, threads=10**30).threads == weft.load(saved).threads


def test_options_of_providers_are_a_list(saved: Path) -> None:
    with pytest.raises(
        weft.InputError, match="provider_options is 7\n  hint: give a list, with a dict for each provider"
    ):
        weft.InferenceSession(saved, providers=["CPUExecutionProvider"], provider_options=7)  # type: ignore[arg-type]
