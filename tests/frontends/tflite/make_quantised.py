"""Makes quantised models of TensorFlow Lite of one operator each, by its converter, with inputs and its interpreter's results.

    python -m tests.frontends.tflite.make_quantised [CASE FILE]

Needs TensorFlow 2.21 and tf_keras 2.21, whose recurrent layers its converter takes for one operator; the tests need neither.
Writes `quantised.npz.xz` with `SCHEME.CASE.model`, `SCHEME.CASE.input0` ... and
`SCHEME.CASE.output0` ..., compressed as a whole; what the converter does not quantise is said, and left out. Cases of `dynamic`
have `SCHEME.CASE.exact0` ... too, which the interpreter computes of the same weights as floats. Seeds are fixed.

Schemes: `i8` (integers of 8 bits, weights of a scale for each channel), `i16` (activations of 16 bits, weights of 8), `u8` (the
form of old files: all of 8 bits without sign, one scale for each weight), `dynamic` (weights of 8 bits, activations of floats,
which the interpreter's kernels quantise when they run) and `f16` (weights as halves).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import flatbuffers
import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tests.frontends.tensorflow.make_cases import pack

FOLDER = Path(__file__).parent
RNG = np.random.default_rng(5)
Function = Callable[..., Any]
CASES: dict[str, tuple[Function, list[tuple[int, ...]]]] = {}
INTEGERS, WITH_WEIGHTS = ("i8", "i16", "u8"), ("dynamic", "f16")
LATER = ("batch_matmul", "lstm")
"""Beginnings of cases whose kernels are younger than integers without sign, and refuse them."""


def f(*shape: int) -> Any:
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def case(name: str, function: Function, *shapes: tuple[int, ...]) -> None:
    assert name not in CASES, name
    CASES[name] = (function, list(shapes))


IMAGE = (1, 5, 6, 12)
KERNEL, EACH, WIDE, DENSE = f(3, 3, 12, 12), f(3, 3, 128, 1) * 5, f(2, 2, 12, 24), f(32, 40)
BIAS, SLOPES, ROWS = f(1, 12)[0], f(1, 12)[0], f(2, 32, 40)
case("conv", lambda x: tf.nn.conv2d(x, KERNEL, [1, 2, 1, 1], "SAME") + BIAS, IMAGE)
case("conv_relu6", lambda x: tf.nn.relu6(tf.nn.conv2d(x, KERNEL * 9, 1, "VALID") + BIAS), IMAGE)
case("depthwise", lambda x: tf.nn.depthwise_conv2d(x, EACH, [1, 1, 1, 1], "SAME"), (1, 5, 4, 128))
case("dense", lambda x: tf.nn.relu(tf.matmul(x, DENSE) + 0.1), (3, 32))
case("transposed", lambda x: tf.nn.conv2d_transpose(x, WIDE, [1, 10, 12, 12], 2, "SAME"), (1, 5, 6, 24))
case("batch_matmul", tf.matmul, (2, 3, 8), (2, 8, 5))
case("batch_matmul_by_weights", lambda x: tf.matmul(x, ROWS), (2, 3, 32))
case("prelu", lambda: tf.keras.layers.PReLU("uniform", shared_axes=[1, 2]), IMAGE)
case("add", tf.add, (2, 3, 4), (1, 3, 4))
case("add_relu", lambda x, y: tf.nn.relu(x + y), (2, 5), (2, 5))
case("mul", tf.multiply, (2, 3, 4), (3, 1))
case("sub", tf.subtract, (2, 3, 4), (2, 3, 4))
case("concat", lambda x, y: tf.concat([x, y * 3.0], 1), (2, 3), (2, 4))
case("average_pool", lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), IMAGE)
case("max_pool", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), IMAGE)
case("mean", lambda x: tf.reduce_mean(x, [1, 2], keepdims=True), IMAGE)
case("softmax", tf.nn.softmax, (3, 7))
case("logistic", tf.sigmoid, (3, 50))
case("tanh", tf.tanh, (3, 50))
case("reshape", lambda x: tf.reshape(x, [4, -1]), (2, 6))
case("pad", lambda x: tf.pad(x, [[0, 0], [1, 2], [1, 0], [0, 0]]), IMAGE)
case("resize", lambda x: tf.compat.v1.image.resize_bilinear(x, [9, 7], half_pixel_centers=True), IMAGE)
case("hard_swish", lambda x: x * tf.nn.relu6(x + 3.0) / 6.0, (3, 50))
case("leaky_relu", lambda x: tf.nn.leaky_relu(x, 0.3), (3, 50))
case("lstm", lambda: tf.keras.layers.LSTM(32, return_sequences=True), (1, 6, 32))


def converter_of(function: Function, shapes: list[tuple[int, ...]]) -> Any:
    """Returns a converter for a function of tensors, or for what makes a layer."""
    if function.__code__.co_argcount == 0 and function.__name__ == "<lambda>":
        tf.keras.utils.set_random_seed(1)
        given = tf.keras.layers.Input(batch_shape=shapes[0])
        return tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(given, function()(given)))
    specs = [tf.TensorSpec(s, tf.float32, name=f"x{k}") for k, s in enumerate(shapes)]
    made = tf.function(function).get_concrete_function(*specs)
    return tf.lite.TFLiteConverter.from_concrete_functions([made])


def converted(name: str, scheme: str) -> bytes:
    """Returns a case as the converter quantises it."""
    function, shapes = CASES[name]
    converter = converter_of(function, shapes)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    sets = tf.lite.OpsSet
    if scheme in INTEGERS:
        of_16 = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [of_16 if scheme == "i16" else sets.TFLITE_BUILTINS_INT8]
        converter.representative_dataset = lambda: (examples(shapes, seed) for seed in range(20))
        converter.inference_input_type = converter.inference_output_type = tf.int16 if scheme == "i16" else tf.int8
        converter._experimental_disable_per_channel = scheme == "u8"
    if scheme == "f16":
        converter.target_spec.supported_types = [tf.float16]
    model = bytes(converter.convert())
    return without_signs(model) if scheme == "u8" else model


def examples(shapes: list[tuple[int, ...]], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def without_signs(model: bytes) -> bytes:
    """Returns a model whose integers of 8 bits have no sign, as old files have them: all zero points are 128 greater."""
    made = schema.ModelT.InitFromPackedBuf(model, 0)
    changed = set[int]()
    for graph in made.subgraphs:
        for tensor in graph.tensors:
            if tensor.type != schema.TensorType.INT8:
                continue
            tensor.type = schema.TensorType.UINT8
            tensor.quantization.zeroPoint = [z + 128 for z in tensor.quantization.zeroPoint]
            buffer = made.buffers[tensor.buffer]
            if buffer.data is not None and len(buffer.data) and tensor.buffer not in changed:
                changed.add(tensor.buffer)
                buffer.data = (np.asarray(buffer.data, np.uint8) ^ 128).tolist()
    return packed(made)


def with_floats(model: bytes) -> bytes:
    """Returns a model of which weights of integers are the floats that these stand for."""
    made = schema.ModelT.InitFromPackedBuf(model, 0)
    for tensor in made.subgraphs[0].tensors:
        data = made.buffers[tensor.buffer].data
        if tensor.type == schema.TensorType.INT8 and data is not None and len(data):
            scale = np.asarray(tensor.quantization.scale, np.float32)
            lined = [-1 if k == tensor.quantization.quantizedDimension else 1 for k in range(len(tensor.shape))]
            numbers = np.asarray(data, np.uint8).view(np.int8).reshape(tensor.shape).astype(np.float32)
            numbers *= scale.reshape(lined if scale.size > 1 else [])
            made.buffers[tensor.buffer].data = list(numbers.tobytes())
            tensor.type, tensor.quantization = schema.TensorType.FLOAT32, None
    return packed(made)


def packed(model: Any) -> bytes:
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def kinds_of(model: bytes) -> list[tuple[str, str]]:
    """Returns the operators of a model, each with the types of its tensors."""
    operators = {v: k for k, v in vars(schema.BuiltinOperator).items() if k[0] != "_"}
    types = {v: k for k, v in vars(schema.TensorType).items() if k[0] != "_"}
    made = schema.ModelT.InitFromPackedBuf(model, 0)
    graph = made.subgraphs[0]
    codes = [max(c.builtinCode, c.deprecatedBuiltinCode) for c in made.operatorCodes]
    return [
        (
            operators[codes[o.opcodeIndex]],
            " ".join(types[graph.tensors[k].type] for k in (*o.inputs, *o.outputs) if k >= 0),
        )
        for o in graph.operators
    ]


def run(model: bytes, seed: int, most: int | None = None, *, reference: bool = True) -> dict[str, Any]:
    """Returns inputs, integers below *most* or of all there are, and the results of the interpreter, without a delegate.

    Its kernels of *reference* lack some operators, and products of batches by weights of integers.
    """
    kinds = tf.lite.experimental.OpResolverType
    is_there = reference and "BATCH_MATMUL" not in dict(kinds_of(model))
    resolver = kinds.BUILTIN_REF if is_there else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = tf.lite.Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    rng, held = np.random.default_rng(seed), dict[str, Any]()
    for k, taken in enumerate(interpreter.get_input_details()):
        dtype = np.dtype(taken["dtype"])
        limits = (0, most) if most else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1) if dtype.kind in "iu" else None
        given = rng.standard_normal(taken["shape"]) if limits is None else rng.integers(*limits, taken["shape"])
        held[f"input{k}"] = given.astype(dtype)
        interpreter.set_tensor(taken["index"], held[f"input{k}"])
    interpreter.invoke()
    for k, made in enumerate(interpreter.get_output_details()):
        held[f"output{k}"] = interpreter.get_tensor(made["index"])
    return held


def made_of(name: str) -> dict[str, Any]:
    """Returns the arrays of a case in all schemes in which there is one."""
    held: dict[str, Any] = {}
    for scheme in (*INTEGERS, *WITH_WEIGHTS):
        if scheme == "u8" and name.startswith(LATER):
            continue
        try:
            model = converted(name, scheme)
        except RuntimeError as error:
            print(f"{scheme}.{name}: {str(error).strip().splitlines()[-1]}")
            continue
        kinds = kinds_of(model)
        if scheme in WITH_WEIGHTS and all("INT8" not in types and "FLOAT16" not in types for _, types in kinds):
            continue
        print(f"{scheme}.{name}: {len(model)} bytes, {kinds}", flush=True)
        arrays = {"model": np.frombuffer(model, np.uint8), **run(model, zlib.crc32(name.encode()))}
        if scheme == "dynamic":
            exact = run(with_floats(model), zlib.crc32(name.encode()))
            arrays |= {k.replace("output", "exact"): v for k, v in exact.items() if k.startswith("output")}
        held |= {f"{scheme}.{name}.{k}": v for k, v in arrays.items()}
    return held


def main(names: list[str]) -> None:
    """Makes all cases, each in a process of its own, which the converter may crash; or one that is named, into a file."""
    if names:
        np.savez(names[1], **made_of(names[0]))
        return
    held: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            path = Path(folder) / f"{name}.npz"
            for _ in range(3):
                if not path.exists():
                    subprocess.run([sys.executable, "-m", __spec__.name, name, str(path)], check=False)
            with np.load(path) as found:
                held |= dict(found)
    pack(FOLDER / "quantised.npz.xz", held)


if __name__ == "__main__":
    main(sys.argv[1:])
