"""Quantised and half-precision models: their time, and how near their results are to those of ONNX Runtime.

    .venv/bin/python benchmarks/low_precision.py                     all models
    .venv/bin/python benchmarks/low_precision.py qdq mlp_dynamic     those whose names contain one of these
    .venv/bin/python benchmarks/low_precision.py --instructions      a product of bytes by each instruction of the machine
    .venv/bin/python benchmarks/low_precision.py --bf16              float32 models, factors rounded to bf16, beside OpenVINO's

The models are networks of this benchmark, quantised by `onnxruntime.quantization` with random calibration data, or built here.
The engines run in turns in this process with one thread; times are of the processor, and ratios to the better of the peers.
OpenVINO, which chooses bf16 itself where there is AMX, need not be installed but for --bf16:
`.venv/bin/python -m pip install openvino`. Differences are to float32 there, else to the first peer that runs the model.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from own_networks import feed_forward, layer_norm

import weft
from weft.cli.demo_models import resnet18
from weft.cli.onnx_builder import GraphBuilder, conv, gemm, linear
from weft.driver.function import NativeFunction
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import DType, f32, i8, u8
from weft.targets import Target, cpu
from weft.te import placeholder, to_program

TURN = 0.02
"""Seconds of processor time that a turn takes at least."""

Feed = dict[str, np.ndarray]


def mobilenet() -> onnx.ModelProto:
    """MobileNet v1 without its normalizations, which quantisation folds: `x` [1, 3, 224, 224] -> `y` [1, 1000]."""
    g = GraphBuilder("mobilenet")
    x, inner = g.op("Relu", conv(g, g.input("x", (1, 3, 224, 224)), (3, 32), stride=2, bias=True)), 32
    for outer, stride in [
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ]:
        x = g.op("Relu", conv(g, x, (inner, inner), stride=stride, groups=inner, bias=True))
        x, inner = g.op("Relu", conv(g, x, (inner, outer), kernel=1, bias=True)), outer
    g.output(gemm(g, g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), (inner, 1000)), "y")
    return g.model()


def mlp(rows: int = 64, width: int = 1024) -> onnx.ModelProto:
    g = GraphBuilder("mlp")
    x = g.input("x", (rows, width))
    for _ in range(2):
        x = g.op("Relu", gemm(g, x, (width, width)))
    g.output(gemm(g, x, (width, width)), "y")
    return g.model()


def encoder(layers: int = 12, tokens: int = 128, heads: int = 12, width: int = 768) -> onnx.ModelProto:
    """The encoder of BERT base: `x` [1, tokens, width] -> `y`."""
    g = GraphBuilder("encoder")
    x, depth = g.input("x", (1, tokens, width)), width // heads
    for _ in range(layers):
        parts = []
        for turned in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            rows = g.op("Reshape", linear(g, x, (width, width)), g.int64s([1, tokens, heads, depth]))
            parts.append(g.op("Transpose", rows, perm=turned))
        scores = g.op("Mul", g.op("MatMul", parts[0], parts[1]), g.scalar(depth**-0.5))
        mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), parts[2])
        joined = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.int64s([1, tokens, width]))
        x = layer_norm(g, g.op("Add", x, linear(g, joined, (width, width))), width)
        x = layer_norm(g, g.op("Add", x, feed_forward(g, x, width, 4 * width)), width)
    g.output(x, "y")
    return g.model()


def matmul_integer(size: int) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.integers(-128, 128, (size, size)).astype(np.int8), "w")
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, (size, size))
    y = helper.make_tensor_value_info("y", TensorProto.INT32, (size, size))
    return _model(helper.make_graph([node], "matmul_integer", [x], [y], [weight]))


def matmul_n_bits(rows: int, depth: int = 4096, columns: int = 4096, bits: int = 4, block: int = 32) -> onnx.ModelProto:
    rng, blocks = np.random.default_rng(0), depth // block
    weight = rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    scales = rng.uniform(0.001, 0.003, columns * blocks).astype(np.float32)
    given = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(scales, "s")]
    sizes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **sizes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, depth))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))
    return _model(helper.make_graph([node], "matmul_n_bits", [x], [y], given))


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


class _Calibration(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, model: onnx.ModelProto) -> None:
        self.feeds: Iterator[Feed] = iter([inputs_of(model, seed) for seed in range(4)])

    def get_next(self) -> Feed | None:
        return next(self.feeds, None)


def static(model: Callable[[], onnx.ModelProto], **options: Any) -> onnx.ModelProto:
    return _through_files(
        model(), lambda a, b, m: quantize_static(a, b, _Calibration(m), weight_type=QuantType.QInt8, **options)
    )


def dynamic(model: Callable[[], onnx.ModelProto]) -> onnx.ModelProto:
    return _through_files(model(), lambda a, b, _: quantize_dynamic(a, b, weight_type=QuantType.QInt8))


def half(model: Callable[[], onnx.ModelProto], kind: int = TensorProto.FLOAT16) -> onnx.ModelProto:
    """The model with float32 made float16, or bfloat16, its inputs and outputs too."""
    made = onnx.shape_inference.infer_shapes(model())
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    for t in made.graph.initializer:
        if t.data_type == TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(dtype), t.name))
    for v in (*made.graph.input, *made.graph.output):
        v.type.tensor_type.elem_type = kind
    for node in made.graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR and a.t.data_type == TensorProto.FLOAT:
                a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t).astype(dtype), a.t.name))
    del made.graph.value_info[:]
    return made


def low_bits(model: Callable[[], onnx.ModelProto], bits: int, block: int = 32) -> onnx.ModelProto:
    """The model with constant factors of products in *bits* bits, a scale to each *block* of a column (MatMulNBits)."""
    made = model()
    weights = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    for node in made.graph.node:
        w = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if w is None or w.ndim != 2 or w.shape[0] % block:
            continue
        columns = w.T.reshape(w.shape[1], -1, block)
        scales = np.abs(columns).max(-1) / (2 ** (bits - 1) - 1)
        whole = np.rint(columns / np.maximum(scales, 1e-30)[..., None]) + 2 ** (bits - 1)
        packed = whole.astype(np.uint8)
        if bits == 4:
            packed = packed[..., ::2] | packed[..., 1::2] << 4
        given = {"codes": packed, "scales": scales.astype(np.float32).reshape(-1)}
        names = [f"{node.input[1]}_{k}" for k in given]
        made.graph.initializer.extend(map(numpy_helper.from_array, given.values(), names))
        sizes = {"K": w.shape[0], "N": w.shape[1], "bits": bits, "block_size": block}
        node.CopyFrom(
            helper.make_node(
                "MatMulNBits", [node.input[0], *names], list(node.output), node.name, domain="com.microsoft", **sizes
            )
        )
    used = {i for n in made.graph.node for i in n.input}
    kept = [t for t in made.graph.initializer if t.name in used]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return _model(made.graph)


def _through_files(model: onnx.ModelProto, quantise: Callable[[str, str, onnx.ModelProto], None]) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        given, prepared, made = (str(Path(folder) / f"{n}.onnx") for n in ("given", "prepared", "made"))
        onnx.save(model, given)
        quant_pre_process(given, prepared)
        quantise(prepared, made, model)
        return onnx.load(made)


STATIC = {"activation_type": QuantType.QUInt8, "quant_format": QuantFormat.QDQ}
SIGNED = {"activation_type": QuantType.QInt8, "quant_format": QuantFormat.QDQ, "per_channel": True}
AS_OPERATORS = {"activation_type": QuantType.QUInt8, "quant_format": QuantFormat.QOperator}
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet18_qdq_u8s8": partial(static, resnet18, **STATIC),
    "resnet18_qdq_s8s8_per_channel": partial(static, resnet18, **SIGNED),
    "resnet18_qoperator": partial(static, resnet18, **AS_OPERATORS),
    "resnet18_fp16": partial(half, resnet18),
    "mobilenet_qdq_u8s8": partial(static, mobilenet, **STATIC),
    "mobilenet_qdq_s8s8_per_channel": partial(static, mobilenet, **SIGNED),
    "mobilenet_qoperator": partial(static, mobilenet, **AS_OPERATORS),
    "mlp_dynamic": partial(dynamic, mlp),
    "bert_dynamic": partial(dynamic, encoder),
    "bert_qdq_u8s8": partial(static, partial(encoder, 2), **STATIC),
    "matmul_integer_256": partial(matmul_integer, 256),
    "matmul_integer_1024": partial(matmul_integer, 1024),
    "matmul_4bits_row": partial(matmul_n_bits, 1),
    "matmul_4bits_128_rows": partial(matmul_n_bits, 128),
    "matmul_8bits_row": partial(matmul_n_bits, 1, bits=8),
    "resnet18_bf16": partial(half, resnet18, TensorProto.BFLOAT16),
    "bert_fp16": partial(half, partial(encoder, 2)),
    "bert_bf16": partial(half, partial(encoder, 2), TensorProto.BFLOAT16),
    "gpt2_token_8bits": lambda: low_bits(decoder_step, 8),
    "gpt2_token_4bits": lambda: low_bits(decoder_step, 4),
}


def decoder_step(layers: int = 12, cached: int = 256, heads: int = 12, width: int = 768) -> onnx.ModelProto:
    """A token of a GPT-2's decoder, *cached* tokens behind it: `x` [1, 1, width], keys and values -> `y` [1, 1, 50257]."""
    g, depth = GraphBuilder("decoder_step"), width // heads
    x = g.input("x", (1, 1, width))
    for n in range(layers):
        q, k, v = (
            g.op(
                "Transpose",
                g.op("Reshape", linear(g, x, (width, width)), g.int64s([1, 1, heads, depth])),
                perm=[0, 2, 1, 3],
            )
            for _ in range(3)
        )
        keys = g.op("Concat", g.input(f"k{n}", (1, heads, cached, depth)), k, axis=2)
        values = g.op("Concat", g.input(f"v{n}", (1, heads, cached, depth)), v, axis=2)
        scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", keys, perm=[0, 1, 3, 2])), g.scalar(depth**-0.5))
        mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), values)
        joined = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.int64s([1, 1, width]))
        x = layer_norm(g, g.op("Add", x, linear(g, joined, (width, width))), width)
        x = layer_norm(g, g.op("Add", x, feed_forward(g, x, width, 4 * width)), width)
    g.output(linear(g, x, (width, 50257)), "y")
    return g.model()


NARROWED: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet18": resnet18,
    "mobilenet": mobilenet,
    "mlp": mlp,
    "bert_2_layers": partial(encoder, 2),
    "gpt2_token": decoder_step,
    "resnet18_fp16": partial(half, resnet18),
    "bert_2_layers_fp16": partial(half, partial(encoder, 2)),
    "matmul_4bits_128_rows": partial(matmul_n_bits, 128),
}
"""Models of float32 and float16 that are computed in bf16."""


def inputs_of(model: onnx.ModelProto, seed: int = 0) -> Feed:
    rng, feed = np.random.default_rng(seed), Feed()
    weights = {t.name for t in model.graph.initializer}
    for v in model.graph.input:
        shape = [d.dim_value for d in v.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type)
        if v.name not in weights:
            whole = dtype.kind in "iu"
            feed[v.name] = (rng.integers(0, 256, shape) if whole else rng.standard_normal(shape)).astype(dtype)
    return feed


def difference(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, as a part of the largest result."""
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


Run = Callable[[], Any]


def openvino_run(model: bytes, feed: Feed, precision: str = "") -> Run:
    """A call of OpenVINO with one thread, in *precision*, activations included; in those of its choice if empty.

    It takes NumPy's bfloat16 for another type: inputs and outputs that are that in the model are given and read as float32.
    """
    import openvino  # needed for nothing else here
    from openvino.preprocess import PrePostProcessor

    settings = {
        **({"INFERENCE_PRECISION_HINT": precision, "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"} if precision else {}),
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
    }
    core, wide = (
        openvino.Core(),
        {k: v.astype(np.float32) if v.dtype == ml_dtypes.bfloat16 else v for k, v in feed.items()},
    )
    read = core.read_model(model)
    outside = PrePostProcessor(read)
    for ports, at in ((read.inputs, outside.input), (read.outputs, outside.output)):
        for n, port in enumerate(ports):
            if port.get_element_type() == openvino.Type.bf16:
                at(n).tensor().set_element_type(openvino.Type.f32)
    request = core.compile_model(outside.build(), "CPU", settings).create_infer_request()
    found = request.infer(wide)

    def run() -> np.ndarray:
        request.infer()
        return np.array(next(iter(found.values())))

    return run


def onnxruntime_run(model: bytes, feed: Feed, precision: str) -> Run:
    """A call of ONNX Runtime with one thread, in the *precision* of the model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    session.run(None, feed)
    return lambda: session.run(None, feed)[0]


def in_turns(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """The processor time of a call of each of *runs*, round by round."""
    times: dict[str, list[float]] = {k: [] for k in runs}
    for _ in range(rounds):
        for k, run in runs.items():
            times[k].append(seconds(run))
    return times


def told(name: str, times: dict[str, list[float]], ours: str, peers: Sequence[str]) -> str:
    """A line with the medians, and that of the ratios of *ours* to the best of its *peers*."""
    ratios = [t / min([times[p][k] for p in peers]) for k, t in enumerate(times[ours])] if peers else []
    line = "   ".join([f"{k} {1e3 * median(t):8.3f} ms" for k, t in times.items()])
    return f"{name:30} {line}   ratio {median(ratios) if ratios else float('nan'):5.2f}"


def compare_narrowed(name: str, rounds: int) -> None:
    """Compares a model in bf16 with OpenVINO, which chooses bf16 itself."""
    model = NARROWED[name]()
    feed, bytes_ = inputs_of(model), model.SerializeToString()
    compiled, exact = (weft.compile(bytes_, threads=1, precision=p) for p in ("bf16", "model"))
    runs: dict[str, Run] = {
        "bf16": lambda: compiled(**feed),
        "openvino": openvino_run(bytes_, feed),
        "as it is": lambda: exact(**feed),
    }
    line, wanted = told(name, in_turns(runs, rounds), "bf16", ["openvino"]), np.asarray(exact(**feed))
    ours, peer = (difference(np.asarray(runs[k]()), wanted) for k in ("bf16", "openvino"))
    print(f"{line}   differences {ours:.1e} {peer:.1e}", flush=True)


PEERS: dict[str, Callable[[bytes, Feed, str], Run]] = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}
PRECISIONS = {"fp16": "f16", "bf16": "bf16"}
"""What OpenVINO is held to by the end of a model's name; others to float32, beside what is quantised."""


def compare(name: str, rounds: int) -> None:
    """Compares a model with the peers that run it."""
    model = MODELS[name]()
    bytes_, feed = model.SerializeToString(), inputs_of(model)
    compiled, precision = weft.compile(model, threads=1), PRECISIONS.get(name.split("_")[-1], "f32")
    runs: dict[str, Run] = {"weft": lambda: compiled(**feed)}
    for peer, start in PEERS.items():
        with suppress(Exception):  # it lacks an operator or a type, or is not installed
            runs[peer] = start(bytes_, feed, precision)
    peers = [p for p in runs if p != "weft"]
    line = told(name, in_turns(runs, rounds), "weft", peers)
    apart = difference(np.asarray(runs["weft"]()), runs[peers[0]]()) if peers else float("nan")
    print(f"{line}   difference {apart:.1e}", flush=True)


def instructions(size: int = 256) -> None:
    """The rate of a product of bytes by each kind of dot product, beside that of float32 in the same vectors."""
    for name, level, without in (
        ("AVX-512 VNNI", "avx512", ""),
        ("AVX-512, pairs", "avx512", "+avx512vnni"),
        ("AVX-VNNI", "avx2", ""),
        ("AVX2, pairs", "avx2", "+avxvnni"),
    ):
        target = cpu(level)
        target = target.having(features=tuple([f for f in target.isa.features if f != without]))
        block = target.lanes(32) * (4 if level == "avx512" else 2)
        rates = [
            _rate("matmul_grouped", size, block, target, (u8, i8), 4),
            _rate("matmul_packed", size, block, target, (f32, f32)),
        ]
        print(f"{name:16} {rates[0]:6.0f} x 10^9 operations a second, float32 {rates[1]:6.0f}")


def _rate(op: str, size: int, block: int, target: Target, types: tuple[DType, DType], group: int = 0) -> float:
    a = placeholder((size, size), types[0], "a")
    shape = (size // block, size // group, block, group) if group else (size // block, size, block)
    b = placeholder(shape, types[1], "b")
    (y,) = OPERATORS[op]([a, b], {"columns": size})
    function = NativeFunction(schedule_program(to_program([a, b], [y], "product"), target).program, target)
    given = [
        np.ones((size, size), types[0].numpy),
        np.ones(shape, types[1].numpy),
        np.zeros((size, size), y.dtype.numpy),
    ]
    return max(2 * size**3 / function.time(*given, repeats=5) / 1e9 for _ in range(5))


def seconds(run: Callable[[], Any]) -> float:
    """The processor time of one call, of as many as fill a turn."""
    begin, calls = process_time(), 0
    while calls == 0 or process_time() - begin < TURN:
        run()
        calls += 1
    return (process_time() - begin) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names of models")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--instructions", action="store_true", help="a product of bytes by each instruction instead")
    parser.add_argument("--bf16", action="store_true", help="float32 models in bf16, beside OpenVINO's")
    options = parser.parse_args()
    if options.instructions:
        instructions()
        return
    for name in NARROWED if options.bf16 else MODELS:
        if not options.names or any(part in name for part in options.names):
            (compare_narrowed if options.bf16 else compare)(name, options.rounds)


if __name__ == "__main__":
    main()
