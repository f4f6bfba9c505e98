"""Attention and rotary embeddings in ONNX Runtime's own operators, against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from tests.frontends.onnx.microsoft.contrib_nodes import check_close, contrib_model
from tests.frontends.onnx.nodes import Array, by_runtime, floats

from weft.driver.checking.reference import run_graph
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError

BATCH, LENGTH, OTHER, HEADS, SIZE = 2, 5, 7, 3, 4
WIDTH: Final = HEADS * SIZE


def int32s(values: Sequence[Any] | Array) -> Array:
    return np.array(values, np.int32)


SELF: Final[dict[str, Array]] = {
    "x": floats(BATCH, LENGTH, WIDTH),
    "past": floats(2, BATCH, HEADS, 4, SIZE, seed=5),
    "bias_of_heads": floats(BATCH, HEADS, LENGTH, LENGTH, seed=6),
    "bias_of_all": floats(1, 1, LENGTH, LENGTH, seed=6),
    "flags": int32s([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]),
    "left": int32s([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]),
    "longer": int32s([[1] * 9, [0, 0] + [1] * 7]),
    "table": int32s(np.random.default_rng(0).integers(0, 4, (BATCH, LENGTH, LENGTH)) > 0),
    "lengths": int32s([3, 5]),
    "ends_and_starts": int32s([4, 5, 1, 0]),
}
WEIGHTS: Final = {"w": floats(WIDTH, 3 * WIDTH, seed=1) * np.float32(0.3), "b": floats(3 * WIDTH, seed=2)}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(
    "inputs",
    [
        "x w",
        *[f"x w b {mask}" for mask in ("", "flags", "left", "table", "lengths", "ends_and_starts")],
        *[f"x w b {mask} past" for mask in ("-", "longer")],
        *["x w b - - bias_of_heads", "x w b lengths - bias_of_all"],
    ],
)
def test_self_attention(inputs: str, causal: int) -> None:
    feeds = {name: a for name, a in SELF.items() if name in inputs.split()}
    outputs = "y present" if "past" in inputs else "y"
    attributes: dict[str, Any] = {"num_heads": HEADS, "unidirectional": causal}
    check_close(contrib_model("Attention", inputs, feeds, WEIGHTS, outputs, **attributes), feeds)


def test_sizes_and_scale_of_self_attention() -> None:
    feeds = {"x": SELF["x"]}
    weights = {"w": floats(WIDTH, 2 * WIDTH + 6, seed=1), "b": floats(2 * WIDTH + 6, seed=2)}
    attributes: dict[str, Any] = {"num_heads": HEADS, "qkv_hidden_sizes": [WIDTH, WIDTH, 6], "scale": 0.1}
    check_close(contrib_model("Attention", "x w b", feeds, weights, **attributes), feeds)


def test_symbolic_sizes() -> None:
    feeds = {"x": SELF["x"], "lengths": SELF["lengths"]}
    model = contrib_model("Attention", "x w b lengths", feeds, WEIGHTS, num_heads=HEADS, unidirectional=1)
    for declared, names in zip(model.graph.input, (["batch", "length"], ["batch"]), strict=True):
        for d, name in zip(declared.type.tensor_type.shape.dim, names, strict=False):
            d.dim_param = name
    [found] = run_graph(from_onnx(model), feeds)
    np.testing.assert_allclose(found, by_runtime(model, feeds)[0], rtol=1e-5, atol=2e-6)


CROSS: Final[dict[str, Array]] = {
    "q": floats(BATCH, LENGTH, WIDTH),
    "k": floats(BATCH, OTHER, WIDTH, seed=1),
    "v": floats(BATCH, OTHER, WIDTH, seed=2),
    "heads_k": floats(BATCH, HEADS, OTHER, SIZE, seed=1),
    "heads_v": floats(BATCH, HEADS, OTHER, SIZE, seed=2),
    "now_k": floats(BATCH, LENGTH, WIDTH, seed=3),
    "now_v": floats(BATCH, LENGTH, WIDTH, seed=4),
    "past_k": floats(BATCH, HEADS, 3, SIZE, seed=8),
    "past_v": floats(BATCH, HEADS, 3, SIZE, seed=9),
    "flags": int32s([[1] * OTHER, [1] * 3 + [0] * 4]),
    "table": int32s(np.random.default_rng(0).integers(0, 4, (BATCH, LENGTH, OTHER)) > 0),
    "lengths": int32s([7, 3]),
    "bias": floats(BATCH, 1, LENGTH, OTHER),
}


@pytest.mark.parametrize(
    ("inputs", "outputs", "attributes"),
    [
        ("q k v", "y", {}),
        ("q k v b", "y", {"scale": 0.2}),
        ("q k v b flags", "y", {}),
        ("q k v b table", "y", {"mask_filter_value": -50.0}),
        ("q k v - lengths bias", "y", {}),
        ("q heads_k heads_v b", "y", {}),
        ("q heads_k heads_v", "y", {}),
        ("q now_k now_v b", "y present_k present_v", {"unidirectional": 1}),
        ("q now_k now_v b - - past_k past_v", "y present_k present_v", {"unidirectional": 1}),
    ],
)
def test_attention_to_others(inputs: str, outputs: str, attributes: dict[str, Any]) -> None:
    feeds = {name: a for name, a in CROSS.items() if name in inputs.split()}
    weights = {"b": WEIGHTS["b"]}
    model = contrib_model("MultiHeadAttention", inputs, feeds, weights, outputs, num_heads=HEADS, **attributes)
    check_close(model, feeds)


@pytest.mark.parametrize(("inputs", "count"), [("packed", 3), ("q packed", 2)])
def test_packed_heads_are_taken_apart(inputs: str, count: int) -> None:
    """ONNX Runtime has no such kernel for processors: the oracle is its attention to the parts."""
    packed = floats(BATCH, OTHER, HEADS, count, SIZE)
    parts = [np.ascontiguousarray(packed[:, :, :, k]).reshape(BATCH, OTHER, WIDTH) for k in range(count)]
    q = parts.pop(0) if count == 3 else CROSS["q"]
    apart = {"q": q, "k": parts[0], "v": parts[1]}
    (wanted,) = by_runtime(contrib_model("MultiHeadAttention", "q k v", apart, num_heads=HEADS), apart)
    feeds = {"packed": packed} if count == 3 else {"q": q, "packed": packed}
    model = contrib_model("MultiHeadAttention", inputs, feeds, num_heads=HEADS)
    (made,) = run_graph(from_onnx(model), feeds)
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=2e-6)


def int8s(*shape: int, seed: int, dtype: type = np.int8) -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize(
    ("more", "attributes"),
    [("", {}), ("lengths zero zero_w", {"unidirectional": 1}), ("longer zero zero_w past", {})],
)
@pytest.mark.parametrize("columns", [False, True])
def test_quantized_self_attention(more: str, attributes: dict[str, Any], columns: bool) -> None:
    feeds = {"x": int8s(BATCH, LENGTH, WIDTH, seed=0, dtype=np.uint8)}
    feeds |= {name: a for name, a in SELF.items() if name in more.split()}
    scale = np.linspace(0.5, 2, 3 * WIDTH, dtype=np.float32) if columns else np.ones((), np.float32)
    weights = {
        "w": int8s(WIDTH, 3 * WIDTH, seed=1) // np.int8(2),  # with eight bits, ONNX Runtime's sums of 16 bits overflow
        "b": floats(3 * WIDTH, seed=2),
        "s": np.array(0.02, np.float32),
        "sw": scale * np.float32(0.01),
        "zero": np.array(120, np.uint8),
        "zero_w": np.zeros(scale.shape, np.int8),
    }
    outputs = "y present" if "past" in more else "y"
    model = contrib_model("QAttention", f"x w b s sw {more}", feeds, weights, outputs, num_heads=HEADS, **attributes)
    check_close(model, feeds)


ANGLES: Final = np.random.default_rng(0).random((20, 4)).astype(np.float32)
CACHES: Final = {"cos": np.cos(ANGLES), "sin": np.sin(ANGLES)}
PLACES: Final = np.array([[3, 4, 5, 9, 1], [0, 1, 2, 3, 4]], np.int64)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("places", [PLACES, PLACES[0, :1]], ids=["each", "first"])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((BATCH, HEADS, LENGTH, 8), {}),
        ((BATCH, LENGTH, HEADS * 8), {}),
        ((BATCH, HEADS, LENGTH, 16), {"num_heads": HEADS, "rotary_embedding_dim": 8}),
        ((BATCH, LENGTH, HEADS * 16), {"num_heads": HEADS, "rotary_embedding_dim": 8}),
    ],
)
def test_rotary_embedding(shape: tuple[int, ...], attributes: dict[str, Any], places: Array, interleaved: int) -> None:
    feeds = {"x": floats(*shape), "p": places}
    check_close(
        contrib_model("RotaryEmbedding", "x p cos sin", feeds, CACHES, interleaved=interleaved, **attributes), feeds
    )


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Attention", "x w b", {}, "its attribute 'num_heads' is missing"),
        ("Attention", "x w b", {"num_heads": 5}, "its 5 heads do not divide vectors of 12"),
        ("Attention", "x w b", {"num_heads": 3, "do_rotary": 1}, "its attribute 'do_rotary' is 1; only 0 is supported"),
        ("Attention", "x w b - - - n", {"num_heads": 3}, "its input 6 (past_sequence_length) is not supported"),
        ("Attention", "x w b odd", {"num_heads": 3}, "its mask odd: i32[9] is not supported"),
        (
            "MultiHeadAttention",
            "x packed",
            {"num_heads": 3},
            "its keys should have 3 or 4 dimensions: packed: f32[2, 5]",
        ),
        ("RotaryEmbedding", "x n w w", {"scale": 2.0}, "its attribute 'scale' is 2.0; only 1.0 is supported"),
    ],
)
def test_refused(op: str, inputs: str, attributes: dict[str, Any], message: str) -> None:
    weights = WEIGHTS | {"n": int32s([0]), "odd": int32s([1] * 9), "packed": floats(BATCH, LENGTH)}
    with pytest.raises(ModelError) as caught:
        from_onnx(contrib_model(op, inputs, {"x": SELF["x"]}, weights, **attributes))
    assert caught.value.message == message
    assert caught.value.where == f"{op} /y"
