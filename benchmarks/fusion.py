#!/usr/bin/env python3
"""What fusing operators is worth: the four cases of Chen et al., "TVM" (OSDI 2018), figure 4, each with fusion and without.

    ../.venv/bin/python fusion.py [--seconds 2] [--threads 1] [--json FILE]

Normalizations stay operators of their own (precision="strict"), as they do there; the last column folds them into the
weights as well, as compiling does by default. Both sides take turns in one process; the ratio is the median over the rounds.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

import weft
from weft.cli.demo_models import batch_norm, conv
from weft.cli.onnx_builder import GraphBuilder, gemm

HIDDEN = 128
ROUNDS = 7


def conv_bn_relu(g: GraphBuilder) -> None:
    """1x1 convolution of 28x28 pixels, 128 to 256 channels, normalized and rectified."""
    x = conv(g, g.input("x", (1, 128, 28, 28)), (128, 256), 1, 1)
    g.output(g.op("Relu", batch_norm(g, x, 256)), "y")


def depthwise_conv_bn_relu(g: GraphBuilder) -> None:
    """3x3 depthwise convolution of 14x14 pixels and 512 channels, normalized and rectified."""
    x = conv(g, g.input("x", (1, 512, 14, 14)), (512, 512), 3, 1, groups=512)
    g.output(g.op("Relu", batch_norm(g, x, 512)), "y")


def rnn_cell(g: GraphBuilder) -> None:
    """One step of a recurrent cell: tanh(W x + U h + b)."""
    x, h = (g.input(name, (1, HIDDEN)) for name in "xh")
    both = g.op("Add", gemm(g, x, (HIDDEN, HIDDEN)), gemm(g, h, (HIDDEN, HIDDEN)))
    g.output(g.op("Tanh", both), "y")


def lstm_cell(g: GraphBuilder) -> None:
    """One step of an LSTM cell, its four gates computed together."""
    x, h, c = (g.input(name, (1, HIDDEN)) for name in "xhc")
    gates = g.op("Add", gemm(g, x, (HIDDEN, 4 * HIDDEN)), gemm(g, h, (HIDDEN, 4 * HIDDEN)))
    i, f, u, o = g.split(gates, [HIDDEN] * 4, axis=1)
    added = g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", u))
    c = g.op("Add", g.op("Mul", g.op("Sigmoid", f), c), added)
    g.output(g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c)), "y")
    g.output(c, "c_next")


CASES: dict[str, Callable[[GraphBuilder], None]] = {
    "conv+bn+relu": conv_bn_relu,
    "depthwise-conv+bn+relu": depthwise_conv_bn_relu,
    "rnn cell": rnn_cell,
    "lstm cell": lstm_cell,
}


def build(name: str) -> bytes:
    """Return a case as an ONNX model."""
    g = GraphBuilder(name.replace(" ", "_"), 0)
    CASES[name](g)
    return bytes(g.model().SerializeToString())


def inputs_of(model: weft.Model) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {s.name: rng.standard_normal(s.shape).astype(np.float32) for s in model.inputs}


def turn(model: weft.Model, inputs: dict[str, np.ndarray], seconds: float) -> float:
    """Return the microseconds of processor time of a run, over *seconds* of them."""
    model(**inputs)
    count, start = 0, process_time()
    while process_time() - start < seconds:
        for _ in range(10):
            model(**inputs)
        count += 10
    return (process_time() - start) / count * 1e6


def measure(name: str, threads: int, seconds: float) -> dict[str, object]:
    """Return the figures of one case."""
    source = build(name)
    ways = {"fused": {"precision": "strict"}, "unfused": {"precision": "strict", "without": ["fusion"]}, "folded": {}}
    models = {way: weft.compile(source, threads=threads, cache=False, **options) for way, options in ways.items()}
    inputs = inputs_of(models["fused"])
    results = [np.concatenate([np.ravel(y) for y in as_tuple(m(**inputs))]) for m in models.values()]
    worst = max(float(np.abs(r - results[0]).max()) for r in results)
    if not worst <= 1e-4:
        raise SystemExit(f"{name}: the outputs differ by {worst:.0e}")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, model in models.items():
            times[way].append(turn(model, inputs, seconds / ROUNDS / len(ways)))
    figures: dict[str, object] = {f"{way}_us": median(t) for way, t in times.items()}
    speedup = median([u / f for u, f in zip(times["unfused"], times["fused"], strict=True)])
    return {"case": name, **figures, "speedup": speedup}


def as_tuple(outputs: object) -> tuple[np.ndarray, ...]:
    return outputs if isinstance(outputs, tuple) else (np.asarray(outputs),)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [measure(name, options.threads, options.seconds) for name in CASES]
    print(f"{'':<24}{'fused us':>10}{'unfused us':>12}{'speedup':>9}{'folded us':>11}")
    for r in rows:
        print(
            f"{r['case']:<24}{r['fused_us']:>10.2f}{r['unfused_us']:>12.2f}{r['speedup']:>9.2f}{r['folded_us']:>11.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
