"""Cases of every ONNX operator that Weft has, in the table of `operator_table`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import microsoft_cases  # noqa: F401  (registers its cases)
import numpy as np
from onnx import TensorProto
from operator_table import (
    CASES,
    CELLS,
    CONV,
    FLAT,
    IMAGES,
    MICROSOFT,
    PRODUCTS,
    ROWS,
    SIZES,
    STEP,
    Array,
    Build,
    Case,
    bits,
    bytes_,
    case,
    f,
    i64,
    ints,
    plain,
    u,
)

plain(
    "Relu Sigmoid Softplus Softsign LeakyRelu Elu Selu HardSigmoid ThresholdedRelu HardSwish Gelu Mish Swish Abs Neg Exp "
    "Reciprocal Floor Ceil Round Erf Sign Sin Cos Tan Atan Sinh Cosh Tanh Asinh IsNaN IsInf",
    lambda s: [f(*FLAT[s])],
)
plain("Log Sqrt Asin Acos Atanh", lambda s: [u(*FLAT[s])])
plain("Acosh", lambda s: [u(*FLAT[s]) + np.float32(1)])
plain(
    "Add Sub Mul Div Equal Less LessOrEqual Greater GreaterOrEqual Max Min Sum Mean",
    lambda s: [f(*FLAT[s]), f(*FLAT[s])],
)
plain("Pow", lambda s: [u(*FLAT[s]), f(*FLAT[s])])
plain("PRelu", lambda s: [f(*ROWS[s]), u(ROWS[s][1])])
plain("Clip", lambda s: [f(*FLAT[s]), np.float32(-0.5), np.float32(0.5)], "bc")
plain("Not", lambda s: [bits(*FLAT[s])])
plain("And Or Xor", lambda s: [bits(*FLAT[s]), bits(*FLAT[s])])
plain("BitwiseNot", lambda s: [ints(99, *FLAT[s])])
plain("BitwiseAnd BitwiseOr BitwiseXor", lambda s: [ints(99, *FLAT[s]), ints(99, *FLAT[s])])
plain("Mod", lambda s: [ints(99, *FLAT[s]), ints(9, *FLAT[s]) + 1])
plain("BitShift", lambda s: [bytes_(*FLAT[s]), ints(7, *FLAT[s]).astype(np.uint8)], direction="LEFT")
plain("Where", lambda s: [bits(*FLAT[s]), f(*FLAT[s]), f(*FLAT[s])])
plain("Cast", lambda s: [f(*FLAT[s])], to=TensorProto.INT64)
plain("CastLike", lambda s: [f(*FLAT[s]), np.zeros(1, np.int32)], "b")
plain("ConstantOfShape", lambda s: [i64(*FLAT[s])], "a")
plain("Range", lambda s: [np.int64(0), np.int64((100, 10**6, 9973)[s]), np.int64(1)], "abc")
plain("EyeLike", lambda s: [f(*((8, 8), (1024, 1024), (97, 131))[s])])
plain("OneHot", lambda s: [ints(90, *((16,), (4096,), (61, 7))[s]), i64((97, 1000, 131)[s]), f(2)], "b")
plain("Trilu", lambda s: [f(*((8, 8), (4, 512, 512), (3, 97, 131))[s])])

plain("Conv", lambda s: [f(*CONV[s][0]), f(*CONV[s][1])], "b")
TRANSPOSED: Final = (((1, 8, 7, 7), (8, 8, 4, 4)), ((1, 64, 28, 28), (64, 64, 4, 4)), ((2, 13, 17, 19), (13, 7, 3, 5)))
plain("ConvTranspose", lambda s: [f(*TRANSPOSED[s][0]), f(*TRANSPOSED[s][1])], "b", strides=[2, 2])
plain("MaxPool AveragePool LpPool", lambda s: [f(*IMAGES[s])], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
plain("GlobalAveragePool GlobalMaxPool GlobalLpPool", lambda s: [f(*IMAGES[s])])
UNPOOLED: Final = ((1, 4, 4, 4), (1, 64, 28, 28), (2, 13, 7, 11))


@case("MaxUnpool")
def _unpool(s: int) -> dict[str, Any]:
    x = f(*UNPOOLED[s])
    rows, columns = np.indices(x.shape[2:]) * 2
    flat = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], 1, 1) * (4 * x.shape[2] * x.shape[3])
    where = (flat + rows * 2 * x.shape[3] + columns).astype(np.int64)
    return {"inputs": {"a": x, "b": where}, "attributes": {"kernel_shape": [2, 2], "strides": [2, 2]}}


plain("DepthToSpace", lambda s: [f(*((1, 8, 7, 7), (1, 256, 56, 56), (2, 12, 17, 19))[s])], blocksize=2)
plain("SpaceToDepth", lambda s: [f(*((1, 8, 8, 8), (1, 64, 112, 112), (2, 13, 34, 38))[s])], blocksize=2)
plain("Gather", lambda s: [f(*ROWS[s]), ints(ROWS[s][0], (16, 1000, 77)[s])])
plain("GatherElements", lambda s: [f(*ROWS[s]), ints(ROWS[s][1], *ROWS[s])], axis=1)
plain("GatherND", lambda s: [f(*ROWS[s]), ints(ROWS[s][0], (16, 100_000, 997)[s], 2)])
UPDATES: Final = (16, 1000, 77)
plain("ScatterElements", lambda s: [f(*ROWS[s]), ints(ROWS[s][0], UPDATES[s], ROWS[s][1]), f(UPDATES[s], ROWS[s][1])])
plain("ScatterND", lambda s: [f(*ROWS[s]), ints(ROWS[s][0], UPDATES[s], 1), f(UPDATES[s], ROWS[s][1])])
plain("Scatter", lambda s: [f(*ROWS[s]), ints(ROWS[s][1], *ROWS[s]), f(*ROWS[s])], axis=1)
plain("Compress", lambda s: [f(*ROWS[s]), bits(ROWS[s][0])], "b", axis=0)
plain("NonZero", lambda s: [bits(*ROWS[s])], "a")
plain("ReverseSequence", lambda s: [f(*ROWS[s], 8), ints(ROWS[s][0], ROWS[s][1])])
CACHE: Final = ((1, 2, 16, 8), (4, 8, 1024, 64), (3, 5, 97, 33))
plain("TensorScatter", lambda s: [f(*CACHE[s]), f(*CACHE[s][:2], 3, CACHE[s][3]), ints(5, CACHE[s][0])])
plain("MatMul", lambda s: [f(*((16, 16), (512, 512), (61, 131))[s]), f(*((16, 16), (512, 512), (131, 97))[s])])
plain("Gemm", lambda s: [f(*((1, 64), (128, 1024), (7, 131))[s]), f(*((64, 32), (1024, 512), (131, 97))[s])], "b")
EINSUM: Final = (("ij,jk->ik", (8, 16), (16, 8)), ("bij,bjk->bik", (8, 128, 128), (8, 128, 128)))


@case("Einsum")
def _einsum(s: int) -> dict[str, Any]:
    if s < 2:
        equation, *shapes = EINSUM[s]
    else:
        equation, *shapes = "ij,jk,kl->il", (37, 61), (61, 43), (43, 29)
    return {"inputs": dict(zip("abc", [f(*x) for x in shapes], strict=False)), "attributes": {"equation": equation}}


plain(
    "ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare ReduceMean ReduceSum ReduceProd",
    lambda s: [f(*ROWS[s]), i64((1, 1, 0)[s])],
    "b",
)
plain("ReduceLogSum", lambda s: [u(*ROWS[s]), i64((1, 1, 0)[s])], "b")
plain("ArgMax ArgMin Softmax LogSoftmax Hardmax", lambda s: [f(*ROWS[s])], axis=lambda s: (1, 1, 0)[s])
plain("CumSum CumProd", lambda s: [f(*((256,), (10**6,), (61, 1337))[s]), np.int64(0)], "b")
plain("TopK", lambda s: [f(*((64,), (8, 50257), (61, 1337))[s]), i64((5, 50, 700)[s])], "b", outputs=2)
plain("Unique", lambda s: [np.round(f((64, 10**5, 1337)[s]) * 100)])
BOXES: Final = ((1, 1, 16), (1, 4, 1000), (2, 3, 97))
plain(
    "NonMaxSuppression",
    lambda s: [u(BOXES[s][0], BOXES[s][2], 4), u(*BOXES[s]), i64(20), np.float32([0.5]), np.float32([0.1])],
    "cde",
)
plain("Reshape", lambda s: [f(*ROWS[s]), i64(-1)], "b")
plain("Flatten", lambda s: [f(*IMAGES[s])])
plain("Squeeze", lambda s: [f(1, *ROWS[s]), i64(0)], "b")
plain("Unsqueeze", lambda s: [f(*ROWS[s]), i64(0)], "b")
plain("Transpose", lambda s: [f(*((16, 64), (1024, 1024), (7, 61, 131))[s])])
plain("Concat", lambda s: [f(*ROWS[s]), f(*ROWS[s])], axis=1)
plain("Split", lambda s: [f(ROWS[s][0], ROWS[s][1] * 2)], outputs=2, axis=1, num_outputs=2)
plain("Slice", lambda s: [f(*ROWS[s]), i64(1, 3), i64(999, 999), i64(0, 1), i64(1, 2)], "bcde")
plain("Pad", lambda s: [f(*IMAGES[s]), i64(0, 0, 1, 2, 0, 0, 2, 1)], "b")
plain("Tile", lambda s: [f(*((4, 8), (128, 512), (61, 13))[s]), i64(3, 5)], "b")
plain("Expand", lambda s: [f(*((8, 1), (1024, 1), (61, 1))[s]), i64(*((8, 8), (1024, 1024), (61, 131))[s])], "b")
CHANNELS: Final = tuple(shape[1] for shape in IMAGES)
plain("BatchNormalization", lambda s: [f(*IMAGES[s]), *[u(CHANNELS[s]) for _ in range(4)]], "bcde")
plain("LayerNormalization", lambda s: [f(*ROWS[s]), f(ROWS[s][1]), f(ROWS[s][1])], "bc")
plain("RMSNormalization SimplifiedLayerNormalization", lambda s: [f(*ROWS[s]), f(ROWS[s][1])], "b")
plain("InstanceNormalization", lambda s: [f(*IMAGES[s]), f(CHANNELS[s]), f(CHANNELS[s])], "bc")
GROUPED: Final = ((1, 8, 14, 14), (1, 64, 112, 112), (2, 14, 37, 53))
plain("GroupNormalization", lambda s: [f(*GROUPED[s]), f(GROUPED[s][1]), f(GROUPED[s][1])], "bc", num_groups=2)
plain("MeanVarianceNormalization", lambda s: [f(*IMAGES[s])])
plain("LpNormalization", lambda s: [f(*ROWS[s])])
plain("LRN", lambda s: [f(*IMAGES[s])], size=5)


def recurrent(name: str, gates: int, outputs: int) -> None:
    """Register a recurrent operator of so many *gates*."""

    def make(s: int) -> list[Array]:
        steps, batch, width, hidden = CELLS[s]
        return [f(steps, batch, width), f(1, gates * hidden, width) * 0.1, f(1, gates * hidden, hidden) * 0.1]

    plain(name, make, "bc", outputs=outputs, hidden_size=lambda s: CELLS[s][3])


recurrent("RNN", 1, 2)
recurrent("GRU", 3, 2)
recurrent("LSTM", 4, 3)
SCALES: Final = np.array([1, 1, 2, 2], np.float32)


@case("Resize")
def _resize(s: int) -> dict[str, Any]:
    return {
        "inputs": {"a": f(*IMAGES[s]), "roi": None, "b": SCALES},
        "constants": frozenset("b"),
        "attributes": {"mode": "linear"},
    }


plain("Upsample", lambda s: [f(*IMAGES[s]), SCALES], "b")
plain("GridSample", lambda s: [f(*IMAGES[s]), f(IMAGES[s][0], *((7, 7), (56, 56), (17, 23))[s], 2)])
plain("AffineGrid", lambda s: [f(4, 2, 3), i64(4, 3, *((7, 7), (256, 256), (37, 53))[s])], "b")
SIGNALS: Final = (64, 16384, 1337)
plain("DFT", lambda s: [f(4, SIGNALS[s], 1)])
plain("STFT", lambda s: [f(1, (400, 32000, 9001)[s], 1), i64((64, 160, 100)[s]), f((64, 400, 301)[s])], "bc")
COVERED: Final = (8, 56, 37)  # windows of 3 * 3 over images so large
ROIS: Final = (4, 100, 37)
plain("Col2Im", lambda s: [f(1, 9 * 16, (COVERED[s] - 2) ** 2), i64(COVERED[s], COVERED[s]), i64(3, 3)], "bc")
plain("DeformConv", lambda s: [f(1, 16, *[COVERED[s]] * 2), f(8, 16, 3, 3), f(1, 18, *[COVERED[s] - 2] * 2)], "b")
plain(
    "RoiAlign",
    lambda s: [f(1, 16, *[COVERED[s]] * 2), np.tile(np.float32([1, 1, 6, 7]), (ROIS[s], 1)), i64(*[0] * ROIS[s])],
    output_height=7,
    output_width=7,
    sampling_ratio=2,
)
plain(
    "MaxRoiPool",
    lambda s: [f(1, 16, *[COVERED[s]] * 2), np.tile(np.float32([0, 1, 1, 6, 7]), (ROIS[s], 1))],
    pooled_shape=[7, 7],
)
NGRAMS: Final = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0], "mode": "TF"}
plain(
    "TfIdfVectorizer",
    lambda s: [np.random.default_rng(0).integers(0, 500, ((4, 64), (64, 1000), (7, 337))[s])],
    **{**NGRAMS, "ngram_indexes": list(range(400)), "pool_int64s": list(range(50, 450))},
)
plain("Det", lambda s: [f(*((4, 8, 8), (64, 64, 64), (3, 97, 97))[s])])
plain("QuantizeLinear", lambda s: [f(*FLAT[s]), np.float32(0.1), np.uint8(128)], "bc")
plain("DequantizeLinear", lambda s: [bytes_(*FLAT[s]), np.float32(0.1), np.uint8(128)], "bc")
plain(
    "MatMulInteger", lambda s: [bytes_(*PRODUCTS[s][0]), bytes_(*PRODUCTS[s][1]) >> 1, np.uint8(3), np.uint8(5)], "bcd"
)
plain("ConvInteger", lambda s: [bytes_(*CONV[s % 2][0]), bytes_(*CONV[s % 2][1])], "b", pads=[1, 1, 1, 1])


@case("QLinearMatMul")
def _qlinear_matmul(s: int) -> dict[str, Any]:
    a, b = (bytes_(*shape) for shape in PRODUCTS[s])
    held = [STEP, np.uint8(3), b >> 1, STEP, np.uint8(5), np.float32(30), np.uint8(7)]
    return {"inputs": dict(zip("abcdefgh", [a, *held], strict=True)), "constants": frozenset("bcdefgh")}


@case("QLinearConv")
def _qlinear_conv(s: int) -> dict[str, Any]:
    x, w = bytes_(*CONV[s % 2][0]), bytes_(*CONV[s % 2][1]) >> 1
    held = [STEP, np.uint8(3), w, STEP, np.uint8(5), np.float32(30), np.uint8(7)]
    return {
        "inputs": dict(zip("abcdefgh", [x, *held], strict=True)),
        "constants": frozenset("bcdefgh"),
        "attributes": {"pads": [1, 1, 1, 1]},
    }


def _rows_of(names: Sequence[str] | None) -> Iterator[tuple[str, Build]]:
    yield from [(n, b) for n, b in CASES.items() if not names or n in names or n.rpartition(".")[2] in names]


def cases(names: Sequence[str] | None = None, sizes: Sequence[str] = SIZES) -> Iterator[Case]:
    """Yield the cases of the operators *names*, of all by default, at *sizes*."""
    for name, build in _rows_of(names):
        for size in sizes:
            yield Case(name.removeprefix(f"{MICROSOFT}."), size, **build(SIZES.index(size)))
