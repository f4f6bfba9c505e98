"""Models of one node for every ONNX operator that Weft has, each at three sizes: small, large, and awkward.

The awkward sizes are multiples of nothing: primes, and rows a little longer than a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
SIZES: Final = ("small", "large", "awkward")
MICROSOFT: Final = "com.microsoft"
OPSETS: Final = (22, 24, 18, 13, 9)
"""Versions of the operators, the first that a runtime takes is used."""

WITHOUT_TIME: Final = frozenset(
    {
        "Constant",
        "If",
        "Loop",
        "Scan",
        "Identity",
        "Shape",
        "Size",
        "Dropout",
        "BitCast",
        # of chance, whose results can't be compared
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        # of strings, which ONNX Runtime takes from no address: beside the making of them its times say little
        "CategoryMapper",
        "StringConcat",
        "StringSplit",
        "Tokenizer",
        "StringNormalizer",
        "RegexFullMatch",
        "MelWeightMatrix",
        "Optional",
        "OptionalHasElement",
        "OptionalGetElement",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceInsert",
        "SequenceErase",
        "SequenceAt",
        "SequenceLength",
        "SplitToSequence",
        "ConcatFromSequence",
    }
)
"""Operators that compute nothing by themselves, or whose work is that of the nodes in them."""


@dataclass(frozen=True)
class Case:
    """A node: its inputs by name in order (None: left out), which of them are constants, its attributes and its outputs."""

    operator: str
    size: str
    inputs: dict[str, Array | None]
    constants: frozenset[str] = frozenset()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""

    @property
    def label(self) -> str:
        shapes = ["x".join(map(str, a.shape)) or "1" for a in self.inputs.values() if a is not None]
        return f"{self.operator} {self.size} ({' '.join(shapes)})"

    @property
    def given(self) -> dict[str, Array]:
        """Return the arrays that the model is called with."""
        return {n: a for n, a in self.inputs.items() if a is not None and n not in self.constants}

    def model(self, opset: int) -> ModelProto:
        names = [n if a is not None else "" for n, a in self.inputs.items()]
        outputs = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.operator, names, outputs, domain=self.domain, **self.attributes)
        given = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in self.given.items()
        ]
        held = [numpy_helper.from_array(a, n) for n, a in self.inputs.items() if a is not None and n in self.constants]
        made = [helper.make_empty_tensor_value_info(n) for n in outputs]
        graph = helper.make_graph([node], "operator", given, made, held)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


rng = np.random.default_rng(0)


def f(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def u(*shape: int) -> Array:
    return rng.uniform(0.1, 0.9, shape).astype(np.float32)


def ints(high: int, *shape: int) -> Array:
    return rng.integers(0, high, shape)


def bits(*shape: int) -> Array:
    return rng.integers(0, 2, shape).astype(bool)


def bytes_(*shape: int) -> Array:
    return rng.integers(0, 255, shape).astype(np.uint8)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


Build = Callable[[int], dict[str, Any]]
"""Makes the fields of a case of a size, by its number."""

CASES: Final[dict[str, Build]] = {}
ROWS: Final = ((16, 64), (1024, 1024), (61, 1337))
FLAT: Final = ((256,), (1024, 1024), (61, 127, 13))
IMAGES: Final = ((1, 8, 14, 14), (1, 64, 112, 112), (2, 13, 37, 53))


def case(*names: str) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        for name in names:
            CASES[name] = build
        return build

    return register


def plain(
    names: str,
    make: Callable[[int], list[Array]],
    constants: str = "",
    outputs: int = 1,
    domain: str = "",
    **attributes: Any,
) -> None:
    """Register operators that all take the inputs that *make* makes, called a, b, c ... An attribute may be given by size."""

    def build(s: int) -> dict[str, Any]:
        return {
            "inputs": dict(zip("abcdefghi", make(s), strict=False)),
            "constants": frozenset(constants),
            "attributes": {k: v(s) if callable(v) else v for k, v in attributes.items()},
            "outputs": outputs,
            "domain": domain,
        }

    case(*[f"{domain}.{n}" if domain else n for n in names.split()])(build)


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

CONV: Final = (
    ((1, 8, 14, 14), (16, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 64, 56, 56), (128, 64, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 384, 3000), (384, 384, 3), {"pads": [1, 1], "strides": [2]}),
)
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
CELLS: Final = ((4, 1, 16, 16), (32, 8, 128, 128), (7, 3, 37, 41))


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
PRODUCTS: Final = (((16, 16), (16, 16)), ((128, 512), (512, 512)), ((61, 131), (131, 97)))
plain(
    "MatMulInteger", lambda s: [bytes_(*PRODUCTS[s][0]), bytes_(*PRODUCTS[s][1]) >> 1, np.uint8(3), np.uint8(5)], "bcd"
)
plain("ConvInteger", lambda s: [bytes_(*CONV[s % 2][0]), bytes_(*CONV[s % 2][1])], "b", pads=[1, 1, 1, 1])
STEP: Final = np.float32(0.1)


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


def microsoft(
    names: str, make: Callable[[int], list[Array]], constants: str = "", outputs: int = 1, **attributes: Any
) -> None:
    """Register operators of ONNX Runtime's own domain."""
    plain(names, make, constants, outputs, domain=MICROSOFT, **attributes)


def heads(s: int) -> list[Array]:
    """Return queries, keys and values of attention."""
    shape = ((1, 8, 32), (1, 256, 768), (3, 61, 56))[s]
    return [f(*shape), f(*shape), f(*shape)]


microsoft("Gelu QuickGelu", lambda s: [f(*FLAT[s])])
microsoft("BiasGelu FastGelu", lambda s: [f(*ROWS[s]), f(ROWS[s][1])], "b")
microsoft("SkipLayerNormalization", lambda s: [f(1, *ROWS[s]), f(1, *ROWS[s]), *[f(ROWS[s][1]) for _ in "cde"]], "cde")
microsoft(
    "SkipSimplifiedLayerNormalization", lambda s: [f(1, *ROWS[s]), f(1, *ROWS[s]), f(ROWS[s][1])], "c", epsilon=1e-5
)
microsoft("MultiHeadAttention", heads, num_heads=(lambda s: (4, 12, 7)[s]))
microsoft("FusedMatMul TransposeMatMul", lambda s: [f(*PRODUCTS[s][0]), f(*PRODUCTS[s][1])], alpha=0.5)
microsoft(
    "FusedGemm",
    lambda s: [f(*PRODUCTS[s][0]), f(*PRODUCTS[s][1]), f(PRODUCTS[s][1][1])],
    "bc",
    activation="Relu",
)
microsoft("FusedConv", lambda s: [f(*CONV[s % 2][0]), f(*CONV[s % 2][1])], "b", activation="Relu", pads=[1, 1, 1, 1])
OFFSET: Final = np.uint8(128)
QUANTIZED: Final = [STEP, OFFSET]
microsoft(
    "QLinearAdd QLinearMul",
    lambda s: [bytes_(*FLAT[s]), *QUANTIZED, bytes_(*FLAT[s]), *QUANTIZED, *QUANTIZED],
    "bcefgh",
)
microsoft("QLinearSigmoid", lambda s: [bytes_(*FLAT[s]), STEP, OFFSET, np.float32(1 / 256), np.uint8(0)], "bcde")
microsoft("QLinearLeakyRelu", lambda s: [bytes_(*FLAT[s]), STEP, OFFSET, STEP, OFFSET], "bcde")
microsoft("QLinearGlobalAveragePool", lambda s: [bytes_(*IMAGES[s]), STEP, OFFSET, STEP, OFFSET], "bcde")
BLOCKS: Final = ((64, 32), (1024, 1024), (96, 131))


@case(f"{MICROSOFT}.MatMulNBits")
def _four_bits(s: int) -> dict[str, Any]:
    depth, columns = BLOCKS[s]
    held = [bytes_(columns, depth // 32, 16), u(columns * depth // 32)]
    return {
        "inputs": dict(zip("abc", [f((1, 16, 7)[s], depth), *held], strict=True)),
        "constants": frozenset("bc"),
        "attributes": {"K": depth, "N": columns, "bits": 4, "block_size": 32},
        "domain": MICROSOFT,
    }


DECODED: Final = ((1, 4, 2, 8, 7), (1, 32, 8, 64, 1023), (3, 7, 1, 16, 60))
"""The batch, heads of queries and of keys, their size, and the tokens before, of a token that is decoded."""


def decoded(s: int) -> list[Array]:
    """Return a token's query, key and value, those before it, and how many these are."""
    batch, heads, shared, size, past = DECODED[s]
    token = [f(batch, 1, heads * size), f(batch, 1, shared * size), f(batch, 1, shared * size)]
    before = [f(batch, shared, past, size), f(batch, shared, past, size)]
    return [*token, *before, np.full(batch, past, np.int32), np.asarray(past + 1, np.int32)]


microsoft(
    "GroupQueryAttention",
    decoded,
    outputs=3,
    num_heads=(lambda s: DECODED[s][1]),
    kv_num_heads=(lambda s: DECODED[s][2]),
)
ATTENDED: Final = ((1, 8, 32), (1, 128, 768), (3, 61, 56))
microsoft(
    "QAttention",
    lambda s: [bytes_(*ATTENDED[s]), bytes_(ATTENDED[s][2], 3 * ATTENDED[s][2]), f(3 * ATTENDED[s][2]), STEP, STEP],
    "bcde",
    num_heads=(lambda s: (4, 12, 7)[s]),
)
microsoft(
    "NhwcConv",
    lambda s: [np.moveaxis(f(*CONV[s % 2][n]), 1, -1).copy() for n in (0, 1)],
    "b",
    pads=[1, 1, 1, 1],
)
TABLES: Final = ((64, 32), (4096, 1024), (97, 96))
microsoft(
    "GatherBlockQuantized",
    lambda s: [bytes_(*TABLES[s]), ints(TABLES[s][0], (4, 256, 61)[s]), u(TABLES[s][0], TABLES[s][1] // 16)],
    "ac",
    bits=8,
    block_size=16,
    gather_axis=0,
    quantize_axis=1,
)

ROTATED: Final = ((1, 4, 8, 8), (1, 12, 256, 64), (3, 7, 61, 24))


@case(f"{MICROSOFT}.RotaryEmbedding")
def _rotary(s: int) -> dict[str, Any]:
    batch, heads, length, size = ROTATED[s]
    places = np.tile(np.arange(length), (batch, 1))
    held = [places, f(length, size // 2), f(length, size // 2)]
    return {
        "inputs": dict(zip("abcd", [f(batch, heads, length, size), *held], strict=True)),
        "constants": frozenset("bcd"),
        "domain": MICROSOFT,
    }


microsoft(
    "Attention",
    lambda s: [f(*ATTENDED[s]), f(ATTENDED[s][2], 3 * ATTENDED[s][2]), f(3 * ATTENDED[s][2])],
    "bc",
    num_heads=(lambda s: (4, 12, 7)[s]),
)


def weight(s: int) -> Array:
    """Return a right factor of bytes of seven bits: two products of eight can be more than ONNX Runtime's sums have room for."""
    return bytes_(*PRODUCTS[s][1]) >> 1


microsoft("DynamicQuantizeMatMul", lambda s: [f(*PRODUCTS[s][0]), weight(s), STEP, np.uint8(5)], "bcd")
microsoft(
    "MatMulIntegerToFloat",
    lambda s: [bytes_(*PRODUCTS[s][0]), weight(s), STEP, STEP, np.uint8(3), np.uint8(5)],
    "bcdef",
)
microsoft(
    "QGemm",
    lambda s: [
        bytes_(*PRODUCTS[s][0]),
        *QUANTIZED,
        weight(s),
        STEP,
        np.uint8(5),
        np.zeros(PRODUCTS[s][1][1], np.int32),
        np.float32(30),
        OFFSET,
    ],
    "bcdefghi",
)
microsoft(
    "QLinearAveragePool",
    lambda s: [bytes_(*IMAGES[s]), *QUANTIZED, *QUANTIZED],
    "bcde",
    kernel_shape=[3, 3],
    pads=[1, 1, 1, 1],
)
microsoft(
    "QLinearConcat",
    lambda s: [*QUANTIZED, bytes_(*ROWS[s]), *QUANTIZED, bytes_(*ROWS[s]), *QUANTIZED],
    "abdegh",
    axis=1,
)
microsoft(
    "QLinearSoftmax",
    lambda s: [bytes_(*ROWS[s]), *QUANTIZED, np.float32(1 / 256), np.uint8(0)],
    "bcde",
    axis=-1,
    opset=13,
)
microsoft(
    "QLinearWhere",
    lambda s: [bytes_(*FLAT[s]) > OFFSET, bytes_(*FLAT[s]), *QUANTIZED, bytes_(*FLAT[s]), *QUANTIZED, *QUANTIZED],
    "cdfghi",
)
microsoft(
    "EmbedLayerNormalization",
    lambda s: [
        ints(TABLES[s][0], *ATTENDED[s][:2]).astype(np.int32),
        ints(2, *ATTENDED[s][:2]).astype(np.int32),
        f(TABLES[s][0], ATTENDED[s][2]),
        f(ATTENDED[s][1], ATTENDED[s][2]),
        f(2, ATTENDED[s][2]),
        f(ATTENDED[s][2]),
        f(ATTENDED[s][2]),
    ],
    "cdefg",
    outputs=2,
)


def _rows_of(names: Sequence[str] | None) -> Iterator[tuple[str, Build]]:
    yield from [(n, b) for n, b in CASES.items() if not names or n in names or n.rpartition(".")[2] in names]


def cases(names: Sequence[str] | None = None, sizes: Sequence[str] = SIZES) -> Iterator[Case]:
    """Yield the cases of the operators *names*, of all by default, at *sizes*."""
    for name, build in _rows_of(names):
        for size in sizes:
            yield Case(name.removeprefix(f"{MICROSOFT}."), size, **build(SIZES.index(size)))
