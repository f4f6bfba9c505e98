"""Grouped-query attention against ONNX Runtime's: prompts, and tokens behind a past that is as long for all or not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from onnx import ModelProto
from tests.frontends.onnx.microsoft.contrib_nodes import contrib_model
from tests.frontends.onnx.nodes import Array, by_runtime, floats, imported

from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError

HEADS, SHARED, SIZE, PAST = 4, 2, 16, 3
ANGLES: Final = np.random.default_rng(0).random((16, SIZE // 2)).astype(np.float32)
CACHES: Final = {"cos": np.cos(ANGLES), "sin": np.sin(ANGLES)}
OUTPUTS: Final = "y present_k present_v"


def int32s(*values: int) -> Array:
    return np.array(values, np.int32)


def feeds_of(batch: int, length: int, past: int, lengths: Array | None = None) -> dict[str, Array]:
    total = past + length
    return {
        "q": floats(batch, length, HEADS * SIZE),
        "k": floats(batch, length, SHARED * SIZE, seed=1),
        "v": floats(batch, length, SHARED * SIZE, seed=2),
        "past_k": floats(batch, SHARED, past, SIZE, seed=3),
        "past_v": floats(batch, SHARED, past, SIZE, seed=4),
        "lengths": int32s(*[total - 1] * batch) if lengths is None else lengths,
        "total": int32s(total),
        "bias": floats(1, HEADS, length, total, seed=5),
        "packed": floats(batch, length, (HEADS + 2 * SHARED) * SIZE, seed=6),
        "places": np.broadcast_to(np.arange(past, total, dtype=np.int64), (batch, length)).copy(),
        "sink": floats(HEADS, seed=7),
        "norm": floats(SIZE, seed=8),
    }


def model_and_feeds(inputs: str, every: dict[str, Array], **attributes: Any) -> tuple[ModelProto, dict[str, Array]]:
    feeds = {name: a for name, a in every.items() if name in inputs.split()}
    weights = CACHES if "cos" in inputs else {}
    named = {"num_heads": HEADS, "kv_num_heads": SHARED, **attributes}
    return contrib_model("GroupQueryAttention", inputs, feeds, weights, OUTPUTS, **named), feeds


def check(inputs: str, every: dict[str, Array], seen: Array | None = None, **attributes: Any) -> None:
    """Compares; of the present, only the positions *seen* [batch, positions]."""
    model, feeds = model_and_feeds(inputs, every, **attributes)
    _, made = imported(model, feeds)
    for k, (a, b) in enumerate(zip(made, by_runtime(model, feeds), strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if k and seen is not None:
            a, b = (np.where(seen[:, None, :, None], x, 0) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


PROMPT: Final = "q k v - - lengths total"
TOKEN: Final = "q k v past_k past_v lengths total"


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        (PROMPT, {}),
        ("packed - - - - lengths total", {"scale": 0.2}),
        (f"{PROMPT} cos sin", {"do_rotary": 1}),
        (f"{PROMPT} cos sin", {"do_rotary": 1, "rotary_interleaved": 1}),
        (PROMPT, {"local_window_size": 2}),
        (PROMPT, {"softcap": 0.7}),
        (PROMPT, {"smooth_softmax": 1}),
    ],
)
def test_prompts(inputs: str, attributes: dict[str, Any]) -> None:
    check(inputs, feeds_of(2, 5, 0), **attributes)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        (TOKEN, {}),
        (f"{TOKEN} cos sin", {"do_rotary": 1}),
        (f"{TOKEN} cos sin places", {"do_rotary": 1}),
        ("packed - - past_k past_v lengths total cos sin", {"do_rotary": 1, "local_window_size": 2}),
        (f"{TOKEN} - - - bias", {"softcap": 0.7}),
        (f"{TOKEN} - - - - sink", {}),
    ],
)
def test_a_token_behind_a_past(inputs: str, attributes: dict[str, Any], batch: int) -> None:
    check(inputs, feeds_of(batch, 1, PAST), **attributes)


def test_pasts_of_several_lengths() -> None:
    lengths = int32s(PAST, PAST - 2)
    seen = np.arange(PAST + 1) <= lengths[:, None]
    check(f"{TOKEN} cos sin", feeds_of(2, 1, PAST, lengths), seen, do_rotary=1)


def test_heads_are_not_repeated() -> None:
    """The pass on heads of keys and values that queries share knows how this operator repeats them."""
    model, _ = model_and_feeds(TOKEN, feeds_of(1, 1, PAST))
    found = [n.op for n in from_onnx(model).nodes]
    assert found.count("expand") == 2


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        (PROMPT, {"kv_num_heads": 3}, "its 4 heads of queries and 3 of keys do not divide vectors of 64"),
        (PROMPT, {"qk_output": 1}, "its attribute 'qk_output' is 1; only 0 is supported"),
        (f"{TOKEN} - - - - - k_scale", {}, "its input 12 (k_scale) is not supported"),
    ],
)
def test_refused(inputs: str, attributes: dict[str, Any], message: str) -> None:
    every = feeds_of(1, 1, PAST) | {"k_scale": floats(1)}
    model, _ = model_and_feeds(inputs, every, **attributes)
    with pytest.raises(ModelError) as caught:
        from_onnx(model)
    assert caught.value.message == message


def test_shared_buffers_are_refused_in_the_call() -> None:
    every = feeds_of(1, 1, PAST) | {"total": int32s(PAST)}
    with pytest.raises(Exception, match="total_sequence_length is 3, and the past and the queries have 4 positions"):
        imported(*model_and_feeds(TOKEN, every))
