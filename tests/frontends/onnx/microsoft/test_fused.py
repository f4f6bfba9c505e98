"""Products, activations and normalisations that ONNX Runtime has fused, against it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from tests.frontends.onnx.microsoft.contrib_nodes import check_close, contrib_model, integers
from tests.frontends.onnx.nodes import Array, by_runtime, floats, imported, single

from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError

HIDDEN: Final = 8

VECTORS: Final = {name: floats(HIDDEN, seed=seed) for seed, name in enumerate(["gamma", "beta", "bias"], 10)}


@pytest.mark.parametrize(
    ("left", "right", "attributes"),
    [
        ((0, 1, 2, 3), (0, 1, 2, 3), {"alpha": 0.5}),
        ((0, 1, 3, 2), (0, 1, 3, 2), {"transA": 1, "transB": 1}),
        ((2, 0, 1, 3), (2, 0, 1, 3), {"transBatchA": 1, "transBatchB": 1}),
        ((3, 0, 1, 2), (0, 1, 2, 3), {"transBatchA": 1, "transA": 1}),
    ],
)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...], attributes: dict[str, Any]) -> None:
    feeds = {"a": floats(2, 3, 4, 5).transpose(left).copy(), "b": floats(2, 3, 5, 6, seed=1).transpose(right).copy()}
    check_close(contrib_model("FusedMatMul", "a b", feeds, **attributes), feeds)


def test_matmul_of_vectors_and_of_the_older_name() -> None:
    feeds = {"a": floats(4), "b": floats(4, 3)}
    check_close(contrib_model("FusedMatMul", "a b", feeds, transA=1), feeds)
    feeds = {"a": floats(4, 5), "b": floats(4, 3)}
    check_close(contrib_model("TransposeMatMul", "a b", feeds, transA=1, alpha=2.0), feeds)


ACTIVATIONS: Final[dict[str, list[float]]] = {
    "Relu": [],
    "Tanh": [],
    "Sigmoid": [],
    "LeakyRelu": [0.2],
    "Clip": [-0.5, 0.7],
    "HardSigmoid": [0.3, 0.4],
}


@pytest.mark.parametrize(("activation", "parameters"), ACTIVATIONS.items())
def test_convolution(activation: str, parameters: list[float]) -> None:
    attributes: dict[str, Any] = {"activation": activation, "pads": [1, 1, 1, 1]}
    attributes |= {"activation_params": parameters} if parameters else {}
    feeds = {"x": floats(1, 3, 6, 7), "z": floats(1, 4, 6, 7, seed=1)}
    weights = {"w": floats(4, 3, 3, 3, seed=2), "b": floats(4, seed=3)}
    check_close(contrib_model("FusedConv", "x w b z", feeds, weights, **attributes), feeds)
    check_close(contrib_model("FusedConv", "x w", {"x": feeds["x"]}, weights, **attributes), {"x": feeds["x"]})


def test_convolution_with_channels_last() -> None:
    """ONNX Runtime's CPU kernels lack it: what it is to give is a convolution between two transpositions."""
    x = floats(1, 4, 6, 7)
    weights = {"w": floats(6, 2, 3, 3, seed=2), "b": floats(6, seed=3)}
    attributes: dict[str, Any] = {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1]}
    feeds = {"x": x.transpose(0, 2, 3, 1).copy()}
    _, [found] = imported(contrib_model("NhwcConv", "x w b", feeds, weights, **attributes), feeds)
    [wanted] = by_runtime(single("Conv", {"x": x}, weights, **attributes), {"x": x})
    np.testing.assert_allclose(found, wanted.transpose(0, 2, 3, 1), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("activation", "parameters"), [a for a in ACTIVATIONS.items() if a[0] != "Clip"])
def test_gemm(activation: str, parameters: list[float]) -> None:
    named = dict(zip(["activation_alpha", "activation_beta"], parameters, strict=False))
    feeds = {"a": floats(4, 3)}
    weights = {"b": floats(5, 4, seed=1), "c": floats(5, seed=2)}
    attributes: dict[str, Any] = {
        "activation": activation,
        "alpha": 0.5,
        "beta": 2.0,
        "transA": 1,
        "transB": 1,
        **named,
    }
    check_close(contrib_model("FusedGemm", "a b c", feeds, weights, **attributes), feeds)


@pytest.mark.parametrize(
    "model", ["Gelu x", "FastGelu x", "FastGelu x bias", "BiasGelu x bias", "QuickGelu x", "QuickGelu x alpha"]
)
def test_gelu(model: str) -> None:
    op, inputs = model.removesuffix(" alpha").split(" ", 1)
    attributes: dict[str, Any] = {"alpha": 1.5} if model.endswith("alpha") else {}
    feeds = {"x": floats(4, HIDDEN) * 3}
    check_close(contrib_model(op, inputs, feeds, VECTORS, **attributes), feeds)


@pytest.mark.parametrize("skip", [(2, 3, HIDDEN), (1, 3, HIDDEN), (3, HIDDEN)])
@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("SkipLayerNormalization", "x s gamma"),
        ("SkipLayerNormalization", "x s gamma beta bias"),
        ("SkipSimplifiedLayerNormalization", "x s gamma"),
        ("SkipSimplifiedLayerNormalization", "x s gamma bias"),
    ],
)
def test_normalization_of_sums(op: str, inputs: str, skip: tuple[int, ...]) -> None:
    feeds = {"x": floats(2, 3, HIDDEN), "s": floats(*skip, seed=1)}
    check_close(contrib_model(op, inputs, feeds, VECTORS, "y - - sum", epsilon=1e-5), feeds)


def test_normalization_by_the_root_of_the_mean_square() -> None:
    feeds = {"x": floats(2, 3, HIDDEN)}
    check_close(contrib_model("SimplifiedLayerNormalization", "x gamma", feeds, VECTORS, domain=""), feeds)
    model = contrib_model("SimplifiedLayerNormalization", "x gamma", feeds, VECTORS, "y inverse", "", epsilon=1e-3)
    check_close(model, feeds)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ("words segments w p s gamma beta mask", "y lengths"),
        ("words - w p - gamma beta", "y lengths sum"),
        ("words segments w p s gamma beta - places", "y lengths sum"),
    ],
)
def test_embeddings(inputs: str, outputs: str) -> None:
    words = integers(np.int32, (2, 5), 1, 0, 9)
    given: dict[str, Array] = {"words": words, "segments": words % 2, "places": words * 3 % 7}
    given["mask"] = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    feeds = {name: a for name, a in given.items() if name in inputs.split()}
    weights = VECTORS | {"w": floats(9, HIDDEN), "p": floats(7, HIDDEN, seed=1), "s": floats(2, HIDDEN, seed=2)}
    check_close(contrib_model("EmbedLayerNormalization", inputs, feeds, weights, outputs), feeds)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "attributes", "message"),
    [
        ("FusedGemm", "x x", "y", {"activation": "Elu"}, "its attribute 'activation' is 'Elu'"),
        ("FusedGemm", "x x", "y", {"activation": "Clip"}, "its activation Clip takes 2 parameters, and it has 0"),
        ("SkipLayerNormalization", "x x gamma", "y mean", {}, "its output 'mean' is not supported"),
    ],
)
def test_refused(op: str, inputs: str, outputs: str, attributes: dict[str, Any], message: str) -> None:
    model = contrib_model(op, inputs, {"x": floats(HIDDEN, HIDDEN)}, VECTORS, outputs, **attributes)
    with pytest.raises(ModelError) as caught:
        from_onnx(model)
    assert caught.value.message == message
    assert caught.value.where == f"{op} /y"
