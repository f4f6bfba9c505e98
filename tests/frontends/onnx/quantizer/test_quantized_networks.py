"""Networks as ONNX Runtime's quantiser writes them, in all its modes, against ONNX Runtime.

ONNX Runtime runs them as they are written, without its optimisations: those round a few values otherwise, and what follows is up
to eleven quanta apart, in two runs of ONNX Runtime.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper
from tests.frontends.onnx.nodes import by_runtime
from tests.frontends.onnx.quantizer.modes import EVERYWHERE, OF_PRODUCTS, Mode, few_bits
from tests.frontends.onnx.quantizer.networks import NETWORKS
from tests.models import random_inputs

import weft

DEFAULTS = (
    ("resnet18", "QDQ QUInt8 QInt8"),
    ("mobilenet_v2", "QOperator QUInt8 QInt8"),
    ("bert_layer", "dynamic QInt8"),
)
"""What is not slow."""

CASES = [(network, mode) for network in NETWORKS for mode in EVERYWHERE]
QUANTA = {"QDQ 16 bits": 4, "QDQ 16 bits, ONNX Runtime's nodes": 4, "QDQ 16 bits, weights too": 4}
"""Where not one quantum: those of 16 bits are so small that float32 counts, in which ONNX Runtime sums in another order."""

slow = pytest.mark.slow


def check(network: str, mode: Mode, quanta: float = 1.0) -> None:
    model = mode(NETWORKS[network]())
    assert len(model.graph.node) > 0
    feeds = random_inputs(model, seed=1)
    [wanted] = by_runtime(model, feeds, optimized=False)
    made = np.asarray(weft.compile(model)(**feeds))
    assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
    quantum = quantum_of(model) or np.abs(wanted).max() / 127
    assert np.ptp(wanted) > 20 * quantum, "the result hardly varies"
    assert np.abs(made - wanted).max() <= (quanta + 0.01) * quantum


def quantum_of(model: ModelProto) -> float | None:
    """Returns the scale of the result, or None if it is not quantised."""
    [last] = [n for n in model.graph.node if model.graph.output[0].name in n.output]
    weights = {w.name: w for w in model.graph.initializer}
    return float(numpy_helper.to_array(weights[last.input[1]])) if last.op_type == "DequantizeLinear" else None


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("network", "mode"), [c if c in DEFAULTS else pytest.param(*c, marks=slow) for c in CASES])
def test_all_that_is_quantized(network: str, mode: str) -> None:
    check(network, EVERYWHERE[mode], QUANTA.get(mode, 1))


@slow
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # by HQQ, which has PyTorch look at weights
@pytest.mark.parametrize("mode", OF_PRODUCTS)
def test_weights_of_products(mode: str) -> None:
    check("bert_layer", OF_PRODUCTS[mode], quanta=0.01)


@slow
def test_activations_of_eight_bits_beside_weights_of_four() -> None:
    """ONNX Runtime rounds the activations of each product, which the model only allows."""
    check("bert_layer", few_bits(bits=4, block_size=32, accuracy_level=4), quanta=2)
