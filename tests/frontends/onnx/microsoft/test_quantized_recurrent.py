"""Recurrent layers of quantised weights against ONNX Runtime: what is quantised in each step decides the next ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto
from tests.frontends.onnx.microsoft.contrib_nodes import contrib_model, integers, seven_bits
from tests.frontends.onnx.nodes import Array, Inputs, floats, imported

from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError

STEPS, BATCH, FEATURES, HIDDEN = 6, 2, 5, 8
INPUTS = "x w r b - h c - s z t u"


def weights(directions: int, *, by_column: bool) -> dict[str, Any]:
    columns = (directions, 4 * HIDDEN) if by_column else (directions,)
    rng = np.random.default_rng(1)
    made: dict[str, Any] = {
        "w": seven_bits((directions, FEATURES, 4 * HIDDEN), 2),
        "r": seven_bits((directions, HIDDEN, 4 * HIDDEN), 3),
        "b": floats(directions, 8 * HIDDEN) * np.float32(0.1),
        "h": floats(directions, BATCH, HIDDEN),
        "c": floats(directions, BATCH, HIDDEN),
    }
    for scale, zero in ("sz", "tu"):
        made[scale] = rng.uniform(0.005, 0.02, columns).astype(np.float32)
        made[zero] = np.zeros(columns, np.int8) if by_column else integers(np.int8, columns, 5, -9, 9)
    return made


def by_one_thread(model: ModelProto, feeds: Inputs) -> list[Array]:
    """Returns ONNX Runtime's results with one thread: several would share the rows of a batch, and each quantise its own."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, dict(feeds))
    return found


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_layers_are_those_of_onnx_runtime(direction: str, by_column: bool) -> None:
    given = weights(2 if direction == "bidirectional" else 1, by_column=by_column)
    feeds = {"x": floats(STEPS, BATCH, FEATURES)}
    model = contrib_model(
        "DynamicQuantizeLSTM", INPUTS, feeds, given, "y last memory", direction=direction, hidden_size=HIDDEN
    )
    _, found = imported(model, feeds)
    for a, b in zip(found, by_one_thread(model, feeds), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_weights_have_three_dimensions() -> None:
    given = {**weights(1, by_column=False), "w": seven_bits((FEATURES, 4 * HIDDEN))}
    feeds = {"x": floats(STEPS, BATCH, FEATURES)}
    model = contrib_model("DynamicQuantizeLSTM", INPUTS, feeds, given, "y", hidden_size=HIDDEN)
    with pytest.raises(ModelError, match="the weights of its inputs"):
        from_onnx(model)
