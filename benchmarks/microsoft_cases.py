"""Cases of the operators of ONNX Runtime's own domain, in the table of `operator_table`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from operator_table import (
    CELLS,
    CONV,
    FLAT,
    IMAGES,
    MICROSOFT,
    PRODUCTS,
    ROWS,
    STEP,
    Array,
    bytes_,
    case,
    f,
    ints,
    plain,
    u,
)


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


def quantized_lstm(s: int) -> list[Array]:
    """Return all inputs of a layer with weights of signed bytes, which have seven bits."""
    steps, batch, features, hidden = CELLS[s]
    weights = [(bytes_(1, rows, 4 * hidden) >> 1).astype(np.int8) - np.int8(64) for rows in (features, hidden)]
    states = [f(1, batch, hidden), f(1, batch, hidden)]
    lengths = np.full(batch, steps, np.int32)
    scale, zero = np.full(1, 0.01, np.float32), np.zeros(1, np.int8)
    biases = [f(1, 8 * hidden), lengths, *states, f(1, 3 * hidden)]
    return [f(steps, batch, features), *weights, *biases, scale, zero, scale, zero]


microsoft("DynamicQuantizeLSTM", quantized_lstm, "bcdehijkl", 3, hidden_size=(lambda s: CELLS[s][3]))
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
