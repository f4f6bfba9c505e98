"""Makes models of TensorFlow Lite's operators that its converter seldom writes, with inputs and its interpreter's results.

    python -m tests.frontends.tflite.make_builtins

Needs TensorFlow 2.21; the tests do not. Writes `builtins.npz.xz` with `CASE.model`, `CASE.input0` ... and `CASE.output0` ..., by
the interpreter's reference kernels, compressed as a whole. Seeds are fixed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tests.frontends.tensorflow.make_cases import pack
from tests.frontends.tflite.written import Quantised, model_of, one_operator

FOLDER = Path(__file__).parent
RNG = np.random.default_rng(3)
CASES: dict[str, tuple[bytes, list[Any]]] = {}


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def n(dtype: Any, *shape: int) -> Any:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def options(kind: str, **values: Any) -> Any:
    """Returns the options of an operator."""
    made = getattr(schema, f"{kind}OptionsT")()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def case(name: str, kind: str, tensors: Mapping[str, Any], *inputs: Any, how: Any = None) -> None:
    """Enters a model of one operator, whose last tensor is its result."""
    assert name not in CASES, name
    CASES[name] = (one_operator(kind, how, tensors, 1), list(inputs))


def of_bytes(letter: str, shape: tuple[int, ...], scale: float, zero: int = 0) -> Quantised:
    return Quantised((letter, shape), scale, zero)


SHAPE, IMAGE, BATCH = (3, 4), (1, 5, 7, 4), f(3, 4)
case("dequantize.u8", "DEQUANTIZE", {"x": of_bytes("B", SHAPE, 0.05, 120), "y": SHAPE}, n(np.uint8, 3, 4))
case("dequantize.i8", "DEQUANTIZE", {"x": of_bytes("b", SHAPE, 0.05, -3), "y": SHAPE}, n(np.int8, 3, 4))
case("dequantize.i16", "DEQUANTIZE", {"x": of_bytes("h", SHAPE, 2e-4), "y": SHAPE}, n(np.int16, 3, 4))
case("dequantize.halves", "DEQUANTIZE", {"x": ("e", SHAPE), "y": SHAPE}, f(3, 4).astype(np.float16))
case("quantize.u8", "QUANTIZE", {"x": SHAPE, "y": of_bytes("B", SHAPE, 0.02, 128)}, f(3, 4))
case("quantize.i8", "QUANTIZE", {"x": SHAPE, "y": of_bytes("b", SHAPE, 0.01, -3)}, f(3, 4))
case("quantize.i16", "QUANTIZE", {"x": SHAPE, "y": of_bytes("h", SHAPE, 1e-4)}, f(3, 4))
for one, other, dtypes in (
    ("b", "B", np.int8),
    ("B", "b", np.uint8),
    ("b", "b", np.int8),
    ("h", "h", np.int16),
    ("h", "b", np.int16),
):
    width = {"h": 2e-4}
    case(
        f"quantize.{one}{other}".replace("B", "u"),
        "QUANTIZE",
        {"x": of_bytes(one, SHAPE, width.get(one, 0.05)), "y": of_bytes(other, SHAPE, width.get(other, 0.04) * 1.3)},
        n(dtypes, 3, 4),
    )
case("rank", "RANK", {"x": (2, 3, 1), "y": ("i", ())}, f(2, 3, 1), how=options("Rank"))
case(
    "expand_dims",
    "EXPAND_DIMS",
    {"x": SHAPE, "a": np.array(-2, np.int32), "y": (3, 1, 4)},
    BATCH,
    how=options("ExpandDims"),
)
case("squeeze", "SQUEEZE", {"x": (1, 3, 1, 4), "y": (3, 1, 4)}, f(1, 3, 1, 4), how=options("Squeeze", squeezeDims=[0]))
case("squeeze.all", "SQUEEZE", {"x": (1, 3, 1, 4), "y": SHAPE}, f(1, 3, 1, 4), how=options("Squeeze", squeezeDims=[]))
case("squeeze.last", "SQUEEZE", {"x": (1, 3, 1), "y": (1, 3)}, f(1, 3, 1), how=options("Squeeze", squeezeDims=[-1]))
case("prelu", "PRELU", {"x": IMAGE, "a": f(1, 1, 4), "y": IMAGE}, f(*IMAGE))
case("prelu.channels", "PRELU", {"x": IMAGE, "a": f(4), "y": IMAGE}, f(*IMAGE))
case("relu_0_to_1", "RELU_0_TO_1", {"x": SHAPE, "y": SHAPE}, f(3, 4))
for name, kind in (
    ("relu", "RELU"),
    ("relu6", "RELU6"),
    ("relu_n1_to_1", "RELU_N1_TO_1"),
    ("relu_0_to_1", "RELU_0_TO_1"),
):
    case(
        f"{name}.i8", kind, {"x": of_bytes("b", SHAPE, 0.1, 5), "y": of_bytes("b", SHAPE, 0.05, -20)}, n(np.int8, 3, 4)
    )
for bits in (8, 4):
    how = options("FakeQuant", min=-0.7, max=1.2, numBits=bits)
    case(f"fake_quant.{bits}", "FAKE_QUANT", {"x": SHAPE, "y": SHAPE}, f(3, 4), how=how)
for padding, result, fused in ((0, (1, 3, 4, 4), 0), (1, (1, 2, 3, 4), 0), (1, (1, 2, 3, 4), 3)):
    how = options(
        "Pool2D", padding=padding, strideW=2, strideH=2, filterWidth=2, filterHeight=3, fusedActivationFunction=fused
    )
    case(f"l2_pool.{padding}{fused}", "L2_POOL_2D", {"x": IMAGE, "y": result}, f(*IMAGE) * 4, how=how)
ROWS = {"i": ("i", (5,)), "w": f(6, 3), "y": (5, 3)}
case("embedding_lookup", "EMBEDDING_LOOKUP", ROWS, np.array([0, 5, 2, 2, 1], np.int32))
case(
    "embedding_lookup.i8",
    "EMBEDDING_LOOKUP",
    ROWS | {"w": Quantised(n(np.int8, 6, 3), 0.02)},
    np.array([0, 5, 2, 2, 1], np.int32),
)
BLOCK = {"x": (4, 5), "u": (2, 3), "s": ("i", (2,)), "y": (4, 5)}
for name, start in (("inside", [1, 2]), ("moved", [3, -4])):
    case(f"dynamic_update_slice.{name}", "DYNAMIC_UPDATE_SLICE", BLOCK, f(4, 5), f(2, 3), np.array(start, np.int32))
CASES["broadcast_args"] = (
    model_of(
        [
            ("SHAPE", options("Shape", outType=schema.TensorType.INT32), ["x"], ["s"]),
            ("BROADCAST_ARGS", None, ["s", "t"], ["r"]),
            ("BROADCAST_TO", options("BroadcastTo"), ["x", "r"], ["y"]),
        ],
        {"x": (2, 1, 3), "s": ("i", (3,)), "t": np.array([4, 1, 5, 1], np.int32), "r": ("i", (4,)), "y": (4, 2, 5, 3)},
    ),
    [f(2, 1, 3)],
)

for name, kind, lengths in (("abs", "COMPLEX_ABS", (8, 16)), ("real", "REAL", (4, 4)), ("imag", "IMAG", (1, 8))):
    high, wide = lengths[0], lengths[1] // 2 + 1
    of_transform = {"x": (2, 6, 10), "n": np.array(lengths, np.int32), "t": ("F", (2, high, wide))}
    of_transform |= {"s": np.array([2, high * wide], np.int32), "r": ("F", (2, high * wide)), "y": (2, high * wide)}
    steps = [("RFFT2D", options("Rfft2d"), ["x", "n"], ["t"]), ("RESHAPE", options("Reshape"), ["t", "s"], ["r"])]
    CASES[f"rfft2d.{name}"] = (model_of([*steps, (kind, None, ["r"], ["y"])], of_transform), [f(2, 6, 10)])


def run(model: bytes, inputs: list[Any]) -> list[Any]:
    """Returns the results of the interpreter."""
    interpreter = tf.lite.Interpreter(
        model_content=model, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    for taken, given in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(taken["index"], given)
    interpreter.invoke()
    return [interpreter.get_tensor(made["index"]) for made in interpreter.get_output_details()]


def main() -> None:
    """Makes all cases."""
    held: dict[str, Any] = {}
    for name, (model, inputs) in CASES.items():
        print(name, flush=True)
        held[f"{name}.model"] = np.frombuffer(model, np.uint8)
        held |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        held |= {f"{name}.output{k}": v for k, v in enumerate(run(model, inputs))}
    pack(FOLDER / "builtins.npz.xz", held)


if __name__ == "__main__":
    main()
