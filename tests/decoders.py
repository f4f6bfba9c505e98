"""A GPT-2-like decoder whose caller hands it the cache of keys and values: one model for prompts and for single tokens."""

from __future__ import annotations

from math import sqrt

import numpy as np
import onnx
from onnx import TensorProto

from weft.cli.onnx_builder import GraphBuilder, linear


def growing_decoder(
    layers: int = 2, heads: int = 2, width: int = 32, vocabulary: int = 40, positions: int = 64, seed: int = 0
) -> onnx.ModelProto:
    """Returns a pre-norm transformer of new tokens behind past ones, causal, with a cache that it makes longer.

    `ids` [1, new] and for every layer `past_k`, `past_v` [1, heads, past, width / heads] -> `logits` [1, vocabulary] of the last
    token, and every layer's `present_k`, `present_v` [1, heads, past + new, width / heads].
    """
    g = GraphBuilder("growing_decoder", seed)
    ids = g.input("ids", (1, "new"), TensorProto.INT64)
    depth = width // heads
    names = [(f"{kind}{n}") for n in range(layers) for kind in ("k", "v")]
    cache = {name: g.input(f"past_{name}", (1, heads, "past", depth)) for name in names}
    words, places = g.normal((vocabulary, width), 0.5), g.normal((positions, width), 0.5)
    new = g.op("Gather", g.op("Shape", ids), g.int64s(1), axis=0)
    past = g.op("Gather", g.op("Shape", cache["k0"]), g.int64s(2), axis=0)
    end = g.op("Add", past, new)
    at = g.op("Range", past, end, g.int64s(1))
    keys = g.op("Range", g.int64s(0), end, g.int64s(1))
    seen = g.op("LessOrEqual", keys, g.op("Unsqueeze", at, g.int64s([1])))
    mask = g.op("Where", seen, g.scalar(0.0), g.scalar(-1e9))
    x = g.op("Add", g.op("Gather", words, ids), g.op("Gather", places, at))
    for n in range(layers):
        y = _norm(g, x, width)
        parts = g.split(linear(g, y, (width, 3 * width)), [width] * 3, axis=2)
        q, k, v = (
            g.op("Transpose", g.op("Reshape", p, g.int64s([1, -1, heads, depth])), perm=(0, 2, 1, 3)) for p in parts
        )
        k = g.op("Concat", cache[f"k{n}"], k, axis=2)
        v = g.op("Concat", cache[f"v{n}"], v, axis=2)
        g.output(k, f"present_k{n}")
        g.output(v, f"present_v{n}")
        scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=(0, 1, 3, 2))), g.scalar(1 / sqrt(depth)))
        y = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=(0, 2, 1, 3)), g.int64s([1, -1, width]))
        x = g.op("Add", x, linear(g, y, (width, width)))
        y = linear(g, _norm(g, x, width), (width, 4 * width))
        y = g.op(
            "Mul",
            g.op("Mul", y, g.scalar(0.5)),
            g.op("Add", g.op("Erf", g.op("Div", y, g.scalar(sqrt(2)))), g.scalar(1.0)),
        )
        x = g.op("Add", x, linear(g, y, (4 * width, width)))
    last = g.op("Gather", _norm(g, x, width), g.int64s(-1), axis=1)
    zeros = g.constant(np.zeros(vocabulary, np.float32))
    g.output(g.op("Gemm", last, words, zeros, alpha=1.0, beta=1.0, transB=1), "logits")
    return g.model()


def _norm(g: GraphBuilder, x: str, width: int) -> str:
    scale, bias = g.uniform((width,), 0.8, 1.2), g.normal((width,), 0.05)
    return g.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)


def grouped_decoder(heads: int = 4, shared: int = 2, depth: int = 8, seed: int = 0) -> onnx.ModelProto:
    """Returns attention with fewer heads of keys and values than of queries, which are repeated as exporters repeat them.

    `x` [1, new, heads * depth], `past_k`, `past_v` [1, shared, past, depth] -> `y` like `x`, `present_k`, `present_v`.
    """
    g = GraphBuilder("grouped_decoder", seed)
    width = heads * depth
    x = g.input("x", (1, "new", width))
    q = g.op("Reshape", g.op("MatMul", x, g.normal((width, width), 0.2)), g.int64s([1, -1, heads, depth]))
    q = g.op("Transpose", q, perm=(0, 2, 1, 3))
    repeated = []
    for kind in "kv":
        past = g.input(f"past_{kind}", (1, shared, "past", depth))
        rows = g.op(
            "Reshape", g.op("MatMul", x, g.normal((width, shared * depth), 0.2)), g.int64s([1, -1, shared, depth])
        )
        present = g.op("Concat", past, g.op("Transpose", rows, perm=(0, 2, 1, 3)), axis=2)
        g.output(present, f"present_{kind}")
        length = g.op("Gather", g.op("Shape", present), g.int64s([2]), axis=0)
        sizes = g.op("Concat", g.int64s([1, shared, heads // shared]), length, g.int64s([depth]), axis=0)
        wide = g.op("Expand", g.op("Unsqueeze", present, g.int64s([2])), sizes)
        repeated.append(g.op("Reshape", wide, g.op("Concat", g.int64s([1, heads]), length, g.int64s([depth]), axis=0)))
    k, v = repeated
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=(0, 1, 3, 2))), g.scalar(1 / sqrt(depth)))
    y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=(0, 2, 1, 3))
    g.output(g.op("Reshape", y, g.int64s([1, -1, width])), "y")
    return g.model()
