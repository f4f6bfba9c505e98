"""Operators that a program adds: registered from outside, imported from ONNX models, fused, blocked and cached like its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.replay.machines import MACHINES

import weft
from weft.driver.cache.cache_folder import NAME
from weft.driver.cache.code_cache import default_cache
from weft.frontends.onnx import translations  # noqa: F401  (fills TABLE, which would else be taken for what a test added)
from weft.frontends.onnx.registry import TABLE
from weft.ir import apply, select
from weft.ops import OPERATORS, map_tensors
from weft.te import Tensor, compute

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
DOMAIN = "com.example"
SIGNATURE = "write def f(x, y, *, attribute=1.0): tensors first, attributes after the star"


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Takes away what a test registers."""
    operators, table = set(OPERATORS), set(TABLE)
    yield
    for name in set(OPERATORS) - operators:
        del OPERATORS[name]
    for key in set(TABLE) - table:
        del TABLE[key]


def scaled_tanh(x: Tensor, *, scale: float = 1.0, both: bool = False) -> Tensor:
    def of(e: Any) -> Any:
        y = apply("tanh", e * scale)
        return y if both else select(e < 0, 0, y)

    return map_tensors("scaled_tanh", of, x)


def register() -> None:
    weft.register_op("scaled_tanh", onnx=f"{DOMAIN}::ScaledTanh")(scaled_tanh)


def reference(x: Array, scale: float = 1.0) -> Array:
    return np.where(x < 0, 0, np.tanh(x * scale)).astype(x.dtype)


def node(inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("ScaledTanh", inputs, outputs, name="/act", domain=DOMAIN, **attributes)


def model(nodes: list[onnx.NodeProto], x: tuple[int | str, ...], weights: dict[str, Array] | None = None) -> bytes:
    """A model from x to y."""
    values = [helper.make_tensor_value_info("x", 1, x), helper.make_tensor_value_info("y", 1, None)]
    initializers = [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()  # type: ignore[no-any-return]


X = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)


def test_it_is_computed_with_its_attributes_and_symbolic_sizes() -> None:
    register()
    made = weft.compile(model([node(["x"], ["y"], scale=0.5)], ("rows", 8)))
    np.testing.assert_allclose(made(X), reference(X, 0.5), rtol=1e-5, atol=1e-6)
    both = weft.compile(model([node(["x"], ["y"], both=1)], (3, 8)))
    np.testing.assert_allclose(both(X), np.tanh(X), rtol=1e-5, atol=1e-6)


def test_it_fuses_with_what_is_around_it() -> None:
    register()
    nodes = [helper.make_node("Mul", ["x", "x"], ["a"]), node(["a"], ["b"]), helper.make_node("Neg", ["b"], ["y"])]
    built = weft.build(model(nodes, (3, 8)))
    assert [k.name for k in built.kernels.values()] == ["mul_scaled_tanh_neg"]


def conv(x: str, w: str, y: str) -> onnx.NodeProto:
    return helper.make_node("Conv", [x, w], [y], pads=[1, 1, 1, 1])


def test_it_is_computed_in_channel_blocks_between_convolutions() -> None:
    """36 channels do not fill their blocks: the formula keeps finite numbers finite, which lets it be there all the same."""
    register()
    rng = np.random.default_rng(1)
    w = {n: (rng.standard_normal((36, 36, 3, 3)) / 18).astype(np.float32) for n in ("v", "w")}
    nodes = [conv("x", "v", "a"), node(["a"], ["b"]), conv("b", "w", "y")]
    image = rng.standard_normal((1, 36, 12, 12)).astype(np.float32)
    built = weft.build(model(nodes, image.shape, w), MACHINES["avx512"])
    names = sorted(k.name for k in built.kernels.values())
    assert names == ["conv2d_winograd", "conv2d_winograd_scaled_tanh", "unpack_channels"]
    first, second = (weft.compile(model([conv("x", n, "y")], image.shape, w)) for n in "vw")
    wanted = np.asarray(second(reference(np.asarray(first(image)))))
    np.testing.assert_allclose(weft.compile(model(nodes, image.shape, w))(image), wanted, rtol=1e-3, atol=1e-4)


def test_its_kernels_are_cached_and_its_models_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    register()
    given = model([node(["x"], ["y"])], (3, 8))
    for _ in range(2):
        weft.compile(given)
    folder = tmp_path / NAME
    assert (len(list(folder.glob("model-*"))), len(list(folder.glob("kernel-*")))) == (0, 1)
    assert not any(k.spans for k in weft.build(given, cache=default_cache()).kernels.values())


def test_it_takes_optional_and_many_tensors_and_gives_many() -> None:
    @weft.register_op("plus_minus", onnx=f"{DOMAIN}::ScaledTanh")
    def plus_minus(x: Tensor, y: Tensor, z: Tensor | None = None) -> tuple[Tensor, ...]:
        total = map_tensors("plus", lambda a, b: a + b, x, y)
        return total, map_tensors("minus", lambda a, b: a - b, x, y if z is None else z)

    made = weft.compile(model([node(["x", "x"], ["a", "b"]), helper.make_node("Sub", ["a", "b"], ["y"])], (3, 8)))
    np.testing.assert_allclose(made(X), X + X, rtol=1e-6)


def test_what_can_not_be_registered() -> None:
    register()
    cases: list[tuple[Callable[[], object], str]] = [
        (
            lambda: weft.register_op("relu"),
            "there is an operator relu already\n  hint: register yours under another name",
        ),
        (
            lambda: weft.register_op("scaled_tanh"),
            "there is an operator scaled_tanh already\n  hint: register yours under another name",
        ),
        (
            lambda: weft.register_op("a b"),
            "'a b' is no name for an operator\n  hint: take letters, digits and underscores",
        ),
        (
            lambda: weft.register_op("swirl", onnx="Swirl"),
            'onnx=\'Swirl\' does not name an operator of a domain\n  hint: write it as "domain::Name": "com.example::Swirl"',
        ),
        (
            lambda: weft.register_op("swirl", onnx="ai.onnx::Relu")(lambda x: x),
            "the ONNX operator ai.onnx::Relu has a meaning already\n  hint: register yours under a domain of your own",
        ),
        (
            lambda: weft.register_op("swirl", onnx=f"{DOMAIN}::ScaledTanh")(lambda x: x),
            "the ONNX operator com.example::ScaledTanh has a meaning already\n  hint: register yours under a domain of your own",
        ),
        (
            lambda: weft.register_op("swirl")(lambda x, **more: x),
            f"the operator swirl can't have the parameter **more\n  hint: {SIGNATURE}",
        ),
        (
            lambda: weft.register_op("swirl")(lambda x, alpha=1.0: x),
            "the parameter alpha of the operator swirl is a tensor, and a tensor's default can only be None\n"
            f"  hint: {SIGNATURE}",
        ),
        (lambda: weft.register_op("swirl")(lambda: None), f"the operator swirl takes no tensor\n  hint: {SIGNATURE}"),
    ]
    for attempt, wanted in cases:
        with pytest.raises(weft.InputError) as caught:
            attempt()
        assert str(caught.value) == wanted
    assert "swirl" not in OPERATORS


def refused(n: onnx.NodeProto) -> str:
    with pytest.raises(weft.ModelError) as caught:
        weft.compile(model([n], (3, 8)))
    return str(caught.value)


def test_nodes_that_do_not_fit() -> None:
    register()
    assert refused(node(["x", "x"], ["y"])) == "ScaledTanh /act: it has 2 inputs, and scaled_tanh takes 1 at most"
    assert refused(node([], ["y"])) == "ScaledTanh /act: its input 0 (x) is missing"
    assert refused(node(["x"], ["y"], factor=2.0)) == (
        "ScaledTanh /act: scaled_tanh has no attribute 'factor'\n  hint: its attributes are: scale, both"
    )
    assert refused(node(["x"], ["y"], scale=numpy_helper.from_array(X))) == (
        "ScaledTanh /act: its attribute 'scale' is no number, text, or list of them\n  hint: give a tensor as an input"
    )


def test_an_attribute_without_a_default_is_needed() -> None:
    @weft.register_op("times", onnx=f"{DOMAIN}::ScaledTanh")
    def times(x: Tensor, *, factor: float) -> Tensor:
        return compute(x.shape, lambda *i: x[i] * factor, "times", dtype=x.dtype)

    assert refused(node(["x"], ["y"])) == "ScaledTanh /act: its attribute 'factor' is missing"


def test_shapes_that_do_not_fit_and_formulas_that_fail() -> None:
    @weft.register_op("plus", onnx=f"{DOMAIN}::ScaledTanh")
    def plus(x: Tensor, y: Tensor) -> Tensor:
        return map_tensors("plus", lambda a, b: a + b, x, y)

    with pytest.raises(weft.ModelError) as caught:
        weft.compile(model([node(["x", "c"], ["y"])], (3, 8), {"c": X[:, :5].copy()}))
    assert str(caught.value).startswith(
        "ScaledTanh /act: the shapes (3, 8) and (3, 5) do not broadcast together; given x: f32[3, 8]"
    )
    del OPERATORS["plus"], TABLE[DOMAIN, "ScaledTanh"]

    weft.register_op("broken", onnx=f"{DOMAIN}::ScaledTanh")(lambda x: math.sqrt(x.shape))
    assert refused(node(["x"], ["y"])).startswith(
        "ScaledTanh /act: the formula of broken failed (TypeError: must be real number, not tuple); given x: f32[3, 8]"
    )
    del OPERATORS["broken"], TABLE[DOMAIN, "ScaledTanh"]

    weft.register_op("number", onnx=f"{DOMAIN}::ScaledTanh")(lambda x: 3)
    assert refused(node(["x"], ["y"])).startswith(
        "ScaledTanh /act: the formula of number returned int, not a tensor; given x: f32[3, 8]"
    )
