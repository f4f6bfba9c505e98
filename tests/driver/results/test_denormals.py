"""What is asked of denormal numbers, from where models are compiled to where they run."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from tests.frontends.onnx.nodes import float_inputs, model_of, node

import weft
from weft.runtime.model import Model
from weft.runtime.package import Denormals
from weft.support.errors import InputError

Array = np.ndarray[Any, np.dtype[np.float32]]
SMALLEST = np.finfo(np.float32).tiny
HALF = model_of([node("Mul", "x h")], float_inputs(x=("n",)), weights={"h": np.array(0.5, np.float32)})
N = 1 << 18
"""Elements: enough for several threads to share the work."""


def halved(model: Model | weft.InferenceSession) -> Array:
    x = np.full(N, SMALLEST, np.float32)
    return np.asarray(model(x) if isinstance(model, Model) else model.run(None, {"x": x})[0])


@pytest.mark.parametrize("denormals", ["keep", "flush"])
def test_results_and_operands(denormals: Any, tmp_path: Path) -> None:
    model = weft.compile(HALF, denormals=denormals)
    wanted = np.full(N, 0 if denormals == "flush" else SMALLEST / 2, np.float32)
    np.testing.assert_array_equal(halved(model), wanted)
    doubled = weft.compile(
        model_of([node("Add", "x x")], float_inputs(x=(4,))), denormals=denormals, cache=False
    )  # what it takes is denormal, and what it makes is not
    x = np.full(4, SMALLEST * 0.75, np.float32)
    np.testing.assert_array_equal(doubled(x), 2 * x if denormals == "keep" else np.zeros(4, np.float32))
    model.save(tmp_path / "m.weft")
    np.testing.assert_array_equal(halved(weft.load(tmp_path / "m.weft")), wanted)
    assert SMALLEST * np.float32(0.5) > 0, "this thread is as it was"


def test_constants_keep_theirs() -> None:
    """What is computed while compiling does not depend on it."""
    tiny = np.full(4, SMALLEST, np.float32)
    nodes = [node("Mul", "c h", "d"), node("Mul", "d k", "e"), node("Add", "x e")]
    weights = {"c": tiny, "h": np.array(0.5, np.float32), "k": np.array(2 / SMALLEST, np.float32)}
    model = weft.compile(model_of(nodes, float_inputs(x=(4,)), weights=weights), denormals="flush")
    np.testing.assert_array_equal(model(np.zeros(4, np.float32)), np.ones(4, np.float32))


def test_what_there_is_not() -> None:
    with pytest.raises(InputError) as told:
        weft.compile(HALF, denormals="zero")  # type: ignore[arg-type] # that is the point
    assert str(told.value) == 'denormals is \'zero\'\n  hint: use "keep" or "flush"'


def test_a_session(tmp_path: Path) -> None:
    weft.compile(HALF, denormals="flush").save(tmp_path / "flush.weft")
    sources = {"onnx": HALF.SerializeToString(), "saved": str(tmp_path / "flush.weft")}
    for entry, wanted in (
        ("1", {"onnx": 0, "saved": 0}),
        ("0", {"onnx": 1, "saved": 1}),
        (None, {"onnx": 1, "saved": 0}),
    ):
        options = weft.SessionOptions()
        if entry is not None:
            options.add_session_config_entry("session.set_denormal_as_zero", entry)
        for name, source in sources.items():
            made = halved(weft.InferenceSession(source, options))
            assert (made != 0).all() == wanted[name], (entry, name)


def test_a_session_that_does_not_spin() -> None:
    options = weft.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    np.testing.assert_array_equal(halved(weft.InferenceSession(HALF, options)), np.full(N, SMALLEST / 2, np.float32))


@pytest.mark.slow
@pytest.mark.timed
def test_flushing_costs_nothing_and_helps_among_denormals() -> None:
    """A product among denormals takes no longer flushed than kept, where it takes many times as long on most processors."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((256, 256)).astype(np.float32)
    proto = model_of(
        [node("MatMul", "x w", "a"), node("Mul", "a a", "b"), node("Sqrt", "b")],
        float_inputs(x=(256, 256)),
        weights={"w": w},
    )
    kinds: tuple[Denormals, ...] = ("keep", "flush")
    models = {d: weft.compile(proto, denormals=d, threads=1) for d in kinds}
    seconds = {}
    for scale in (1.0, float(SMALLEST) / 100):
        x = (rng.standard_normal((256, 256)) * scale).astype(np.float32)
        for name, model in models.items():
            taken = []
            for _ in range(30):
                start = process_time()
                model(x)
                taken.append(process_time() - start)
            seconds[name, scale] = min(taken)
        assert seconds["flush", scale] < 1.25 * seconds["keep", scale]
    assert seconds["flush", float(SMALLEST) / 100] < 1.25 * seconds["flush", 1.0]
