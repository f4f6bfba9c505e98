"""Small seeded ONNX models with the operator patterns of real networks, for tests of every layer.

``BUILDERS`` lists them all by name; ``random_inputs`` makes inputs for any of them.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import sqrt

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from weft.cli.demo_models import basic_block, conv_bn, max_pool
from weft.cli.onnx_builder import Dim, GraphBuilder, batch_norm, conv_transpose, gemm, linear

VOCABULARY = 40
POSITIONS = 16
INTEGER_LIMITS = {"ids": VOCABULARY, "pos": POSITIONS, "attention_mask": 2}


def random_inputs(
    model: onnx.ModelProto, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, npt.NDArray[np.generic]]:
    """Return seeded inputs for `model`; `sizes` gives its symbolic dimensions (3 where it does not)."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = [(sizes or {}).get(d.dim_param, 3) if d.dim_param else d.dim_value for d in dims]
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            arrays[value.name] = rng.integers(0, INTEGER_LIMITS[value.name], shape)
        else:
            arrays[value.name] = rng.standard_normal(shape).astype(np.float32)
    return arrays


def matmul(m: Dim = "m", k: int = 20, n: int = 12, *, constant: bool = True, seed: int = 0) -> onnx.ModelProto:
    """Return ``y = a b`` for `a` [m, k]; `b` [k, n] is a weight, or an input if not `constant`."""
    g = GraphBuilder("matmul", seed)
    a = g.input("a", (m, k))
    b = g.normal((k, n), k**-0.5) if constant else g.input("b", (k, n))
    g.output(g.op("MatMul", a, b), "y")
    return g.model()


def mlp(batch: Dim = "batch", widths: tuple[int, ...] = (24, 32, 32, 10), seed: int = 0) -> onnx.ModelProto:
    """Return a multilayer perceptron, ReLU between its layers: `x` [batch, widths[0]] -> `y` [batch, widths[-1]]."""
    g = GraphBuilder("mlp", seed)
    x = g.input("x", (batch, widths[0]))
    for inner, outer in pairwise(widths[:-1]):
        x = g.op("Relu", gemm(g, x, (inner, outer)))
    g.output(gemm(g, x, (widths[-2], widths[-1])), "y")
    return g.model()


def conv_bn_relu(batch: Dim = 1, *, stride: int = 1, groups: int = 1, seed: int = 0) -> onnx.ModelProto:
    """Return one 3x3 convolution, batch normalization and ReLU: `x` [batch, 4, 9, 9], 8 channels out."""
    g = GraphBuilder("conv_bn_relu", seed)
    x = conv_bn(g, g.input("x", (batch, 4, 9, 9)), (4, 8), stride=stride, groups=groups)
    g.output(g.op("Relu", x), "y")
    return g.model()


def tiny_resnet(batch: Dim = 1, seed: int = 0) -> onnx.ModelProto:
    """Return a stem, two residual blocks and a classifier: `x` [batch, 3, 16, 16] -> `y` [batch, 10]."""
    g = GraphBuilder("tiny_resnet", seed)
    x = max_pool(g, g.op("Relu", conv_bn(g, g.input("x", (batch, 3, 16, 16)), (3, 8), kernel=7, stride=2)))
    x = basic_block(g, basic_block(g, x, (8, 8), stride=1), (8, 16), stride=2)
    g.output(_classify(g, x, (16, 10)), "y")
    return g.model()


def tiny_mobilenet(batch: Dim = 1, seed: int = 0) -> onnx.ModelProto:
    """Return a stem, two depthwise separable blocks and a classifier: `x` [batch, 3, 16, 16] -> `y` [batch, 10]."""
    g = GraphBuilder("tiny_mobilenet", seed)
    x = g.op("Relu", conv_bn(g, g.input("x", (batch, 3, 16, 16)), (3, 8), stride=2))
    for inner, outer, stride in ((8, 16, 1), (16, 32, 2)):
        x = g.op("Relu", conv_bn(g, x, (inner, inner), stride=stride, groups=inner))
        x = g.op("Relu", conv_bn(g, x, (inner, outer), kernel=1))
    g.output(_classify(g, x, (32, 10)), "y")
    return g.model()


def tiny_dcgan(batch: Dim = 1, seed: int = 0) -> onnx.ModelProto:
    """Return a generator of transposed convolutions: `x` [batch, 12, 1, 1] -> `y` [batch, 3, 16, 16] in (-1, 1)."""
    g = GraphBuilder("tiny_dcgan", seed)
    x, inner = g.input("x", (batch, 12, 1, 1)), 12
    for outer, stride, padding in ((16, 1, 0), (8, 2, 1)):
        x = batch_norm(g, conv_transpose(g, x, (inner, outer), 4, stride, padding), outer)
        x, inner = g.op("Relu", x), outer
    g.output(g.op("Tanh", conv_transpose(g, x, (inner, 3), 4, 2, 1)), "y")
    return g.model()


def lstm_step(batch: Dim = 1, inner: int = 12, hidden: int = 16, seed: int = 0) -> onnx.ModelProto:
    """Return one step of an LSTM cell in plain operators.

    `x` [batch, inner], `h` and `c` [batch, hidden] -> `h_next` and `c_next` [batch, hidden]. The gates are computed
    together and split in the order input, forget, cell, output.
    """
    g = GraphBuilder("lstm_step", seed)
    x = g.input("x", (batch, inner))
    h, c = g.input("h", (batch, hidden)), g.input("c", (batch, hidden))
    gates = g.op("Add", gemm(g, x, (inner, 4 * hidden)), gemm(g, h, (hidden, 4 * hidden)))
    i, f, u, o = g.split(gates, [hidden] * 4, axis=1)
    kept = g.op("Mul", g.op("Sigmoid", f), c)
    added = g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", u))
    c = g.op("Add", kept, added)
    g.output(g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c)), "h_next")
    g.output(c, "c_next")
    return g.model()


def tiny_bert_layer(tokens: int = 6, heads: int = 2, width: int = 16, seed: int = 0) -> onnx.ModelProto:
    """Return one post-norm transformer encoder layer with every norm and activation decomposed.

    `x` [1, tokens, width] and `attention_mask` [1, tokens] of 0 and 1 -> `y` [1, tokens, width].
    """
    g = GraphBuilder("tiny_bert_layer", seed)
    x = g.input("x", (1, tokens, width))
    mask = g.op("Cast", g.input("attention_mask", (1, tokens), TensorProto.INT64), to=TensorProto.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.scalar(1.0), mask), g.scalar(-10000.0))
    mask = _reshape(g, mask, (1, 1, 1, tokens))
    q, k, v = (_reshape(g, linear(g, x, (width, width)), (1, tokens, heads, width // heads)) for _ in range(3))
    q, v = (g.op("Transpose", y, perm=(0, 2, 1, 3)) for y in (q, v))
    scores = _scores(g, q, g.op("Transpose", k, perm=(0, 2, 3, 1)), width // heads)
    y = _attend(g, g.op("Add", scores, mask), v, (1, tokens, width))
    x = _decomposed_norm(g, g.op("Add", x, linear(g, y, (width, width))), width)
    y = linear(g, _erf_gelu(g, linear(g, x, (width, 4 * width))), (4 * width, width))
    g.output(_decomposed_norm(g, g.op("Add", x, y), width), "y")
    return g.model()


def tiny_gpt2_decode(layers: int = 1, past: int = 5, heads: int = 2, width: int = 16, seed: int = 0) -> onnx.ModelProto:
    """Return one decoding step of a pre-norm transformer whose caller owns the cache of keys and values.

    `ids` [1, 1], `pos` [1] and for every layer `past_k`, `past_v` [1, heads, past, width / heads] -> `logits`
    [1, VOCABULARY] and every layer's new `k`, `v` [1, heads, 1, width / heads]. The embedding is also the last weight.
    """
    g = GraphBuilder("tiny_gpt2_decode", seed)
    ids, pos = g.input("ids", (1, 1), TensorProto.INT64), g.input("pos", (1,), TensorProto.INT64)
    kv = (1, heads, past, width // heads)
    cache = [(g.input(f"past_k{i}", kv), g.input(f"past_v{i}", kv)) for i in range(layers)]
    words, places = g.normal((VOCABULARY, width), 0.5), g.normal((POSITIONS, width), 0.5)
    x = g.op("Add", g.op("Gather", words, ids), g.op("Gather", places, _reshape(g, pos, (1, 1))))
    new = []
    for pair in cache:
        y, added = _cached_attention(g, _layer_norm(g, x, width), pair, heads, width)
        new.append(added)
        x = g.op("Add", x, y)
        y = _tanh_gelu(g, linear(g, _layer_norm(g, x, width), (width, 4 * width)))
        x = g.op("Add", x, linear(g, y, (4 * width, width)))
    x = _reshape(g, g.op("Gather", _layer_norm(g, x, width), g.int64s(0), axis=1), (1, width))
    zeros = g.constant(np.zeros(VOCABULARY, np.float32))
    g.output(g.op("Gemm", x, words, zeros, alpha=1.0, beta=1.0, transB=1), "logits")
    for layer, (k, v) in enumerate(new):
        g.output(k, f"k{layer}")
        g.output(v, f"v{layer}")
    return g.model()


BUILDERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "matmul": matmul,
    "mlp": mlp,
    "conv_bn_relu": conv_bn_relu,
    "tiny_resnet": tiny_resnet,
    "tiny_mobilenet": tiny_mobilenet,
    "tiny_dcgan": tiny_dcgan,
    "lstm_step": lstm_step,
    "tiny_bert_layer": tiny_bert_layer,
    "tiny_gpt2_decode": tiny_gpt2_decode,
}


def _reshape(g: GraphBuilder, x: str, shape: tuple[int, ...]) -> str:
    return g.op("Reshape", x, g.int64s(shape), allowzero=0)


def _classify(g: GraphBuilder, x: str, features: tuple[int, int]) -> str:
    return gemm(g, g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), features)


def _cached_attention(
    g: GraphBuilder, x: str, past: tuple[str, str], heads: int, width: int
) -> tuple[str, tuple[str, str]]:
    """Add causal attention of one new token on a cache; also return the key and the value it adds to the cache."""
    parts = g.split(linear(g, x, (width, 3 * width)), [width] * 3, axis=2)
    joined = (_reshape(g, part, (1, 1, heads, width // heads)) for part in parts)
    q, k, v = (g.op("Transpose", part, perm=(0, 2, 1, 3)) for part in joined)
    keys, values = g.op("Concat", past[0], k, axis=2), g.op("Concat", past[1], v, axis=2)
    scores = _scores(g, q, g.op("Transpose", keys, perm=(0, 1, 3, 2)), width // heads)
    return linear(g, _attend(g, scores, values, (1, 1, width)), (width, width)), (k, v)


def _scores(g: GraphBuilder, q: str, k_transposed: str, depth: int) -> str:
    return g.op("Mul", g.op("MatMul", q, k_transposed), g.scalar(1.0 / sqrt(depth)))


def _attend(g: GraphBuilder, scores: str, values: str, shape: tuple[int, ...]) -> str:
    """Add softmax(scores) values, heads joined again to `shape`."""
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), values)
    return _reshape(g, g.op("Transpose", y, perm=(0, 2, 1, 3)), shape)


def _layer_norm(g: GraphBuilder, x: str, width: int) -> str:
    scale, bias = g.uniform((width,), 0.8, 1.2), g.normal((width,), 0.05)
    return g.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)


def _decomposed_norm(g: GraphBuilder, x: str, width: int) -> str:
    """Add a layer norm as exporters wrote it before it was an operator of its own."""
    scale, bias = g.uniform((width,), 0.8, 1.2), g.normal((width,), 0.05)
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", g.op("Pow", centred, g.scalar(2.0)), axes=[-1])
    deviation = g.op("Sqrt", g.op("Add", variance, g.scalar(1e-12)))
    return g.op("Add", g.op("Mul", g.op("Div", centred, deviation), scale), bias)


def _erf_gelu(g: GraphBuilder, x: str) -> str:
    y = g.op("Add", g.op("Erf", g.op("Div", x, g.scalar(sqrt(2.0)))), g.scalar(1.0))
    return g.op("Mul", g.op("Mul", x, y), g.scalar(0.5))


def _tanh_gelu(g: GraphBuilder, x: str) -> str:
    cube = g.op("Mul", x, g.op("Mul", x, x))
    inner = g.op("Add", x, g.op("Mul", g.scalar(0.044715), cube))
    y = g.op("Add", g.scalar(1.0), g.op("Tanh", g.op("Mul", g.scalar(sqrt(2.0 / np.pi)), inner)))
    return g.op("Mul", g.scalar(0.5), g.op("Mul", x, y))
