"""Whole models, compiled and run: against ONNX Runtime, against themselves, at other sizes, on other targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.interpreting import interpret
from tests.models import BUILDERS, conv_bn_relu, matmul, mlp, random_inputs

import weft
from weft.cli.demo_models import resnet18
from weft.targets import can_run, parse_target

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
TOLERANCE = 1e-4  # of the largest magnitude, as float32 networks are compared
Arrays = Mapping[str, np.ndarray[Any, Any]]

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {**BUILDERS, "digits": lambda: onnx.load(DIGITS / "digits.onnx")}
SYMBOLIC: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "mlp": (mlp, "batch"),
    "matmul": (matmul, "m"),
    "convolution": (partial(conv_bn_relu, "batch"), "batch"),
    "digits": (MODELS["digits"], "batch"),
}


def expected(model: onnx.ModelProto, inputs: Arrays) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, dict(inputs))
    return results


def outputs(model: weft.Model, inputs: Arrays) -> list[np.ndarray]:
    return model.run([inputs[s.name] for s in model.inputs])


def assert_close(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    assert [a.shape for a in ours] == [b.shape for b in theirs]
    assert [a.dtype for a in ours] == [b.dtype for b in theirs]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE * max(np.abs(b).max(), 1e-30))


def assert_identical(ours: list[np.ndarray], again: list[np.ndarray]) -> None:
    for a, b in zip(ours, again, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_onnx_runtime(name: str) -> None:
    proto = MODELS[name]()
    compiled = weft.compile(proto, threads=2)
    for seed in (1, 2):
        inputs = random_inputs(proto, seed=seed)
        assert_close(outputs(compiled, inputs), expected(proto, inputs))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_threads_and_runs_do_not_matter(name: str) -> None:
    proto = MODELS[name]()
    inputs = random_inputs(proto, seed=3)
    two, one = weft.compile(proto, threads=2), weft.compile(proto, threads=1)
    first = outputs(two, inputs)
    assert_identical(first, outputs(two, inputs))
    assert_identical(first, outputs(one, inputs))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes_are_compiled_once_and_run_at_any(name: str) -> None:
    build, size = SYMBOLIC[name]
    proto = build()
    compiled = weft.compile(proto)
    for n in (1, 2, 7, 16, 33):
        inputs = random_inputs(proto, {size: n}, seed=n)
        assert_close(outputs(compiled, inputs), expected(proto, inputs))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("mlp", (1, 3, 6)),
        ("matmul", (1, 3, 6)),
        ("convolution", (1, 2, 5)),
        ("digits", (1,)),
        pytest.param("digits", (2, 3, 5), marks=pytest.mark.slow),
    ],
)
def test_symbolic_sizes_in_the_interpreter(name: str, sizes: tuple[int, ...]) -> None:
    build, size = SYMBOLIC[name]
    proto = build()
    compilation = weft.build(proto)
    for n in sizes:
        inputs = random_inputs(proto, {size: n}, seed=n)
        assert_close(interpret(compilation, inputs), expected(proto, inputs))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("level", ["avx2", "sse4"])
@pytest.mark.parametrize("name", MODELS)
def test_older_processors(name: str, level: str) -> None:
    target = f"cpu -mattr={level}"
    if not can_run(parse_target(target)):
        pytest.skip(f"this processor lacks {level}")
    proto = MODELS[name]()
    inputs = random_inputs(proto, seed=4)
    assert_close(outputs(weft.compile(proto, target), inputs), expected(proto, inputs))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("opt_level", [0, 1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_lower_levels_of_optimization(name: str, opt_level: int) -> None:
    proto = MODELS[name]()
    inputs = random_inputs(proto, seed=5)
    assert_close(outputs(weft.compile(proto, opt_level=opt_level), inputs), expected(proto, inputs))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["tiny_resnet", "tiny_bert_layer"])
def test_strict_and_verified(name: str) -> None:
    proto = MODELS[name]()
    inputs = random_inputs(proto, seed=6)
    compiled = weft.compile(proto, precision="strict", verify=True)
    assert_close(outputs(compiled, inputs), expected(proto, inputs))


def test_a_saved_model_gives_the_same(tmp_path: Path) -> None:
    proto = MODELS["tiny_resnet"]()
    inputs = random_inputs(proto, seed=7)
    compiled = weft.compile(proto)
    compiled.save(tmp_path / "model.weft")
    assert_identical(outputs(compiled, inputs), outputs(weft.load(tmp_path / "model.weft"), inputs))


def test_digits_are_read() -> None:
    heldout = np.load(DIGITS / "heldout.npz")
    guesses = np.asarray(weft.compile(DIGITS / "digits.onnx")(heldout["images"])).argmax(1)
    assert (guesses == heldout["labels"]).mean() >= 0.99


@pytest.mark.slow
def test_resnet18() -> None:
    proto = resnet18()
    inputs = random_inputs(proto, seed=8)
    two, one = weft.compile(proto, threads=2), weft.compile(proto, threads=1)
    assert_close(outputs(two, inputs), expected(proto, inputs))
    assert_identical(outputs(two, inputs), outputs(one, inputs))
