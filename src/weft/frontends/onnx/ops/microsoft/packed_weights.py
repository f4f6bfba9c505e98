"""Products with weights of few bits, packed into bytes (MatMulNBits)."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import contrib
from weft.graph import UNFIT
from weft.graph.composites.quantized.packed_integers import unpack
from weft.support.dtypes import DType, u8


@contrib(
    "MatMulNBits",
    inputs=(3, 6),
    attributes=dict.fromkeys(("K", "N", "accuracy_level", "bits", "block_size"), int),
    needed=["K", "N", "block_size"],
    only={"weight_prepacked": 0},
    without={4: "g_idx"},
    limits="weights of 3, 5, 6 and 7 bits, g_idx, weights packed for one device, empty weights",
)
def matmul_n_bits(c: Call) -> Results:
    """The product with a matrix [N, K] of 2, 4 or 8 bits, each block along K with a scale and a zero point, plus a bias.

    It computes with floats whatever `accuracy_level` allows.
    """
    rows, columns, size, bits = (c.integer(name, 4) for name in ("N", "K", "block_size", "bits"))
    if bits not in (2, 4, 8):
        c.fail(
            f"its attribute 'bits' is {bits}; only 2, 4 and 8 are supported", "quantise the model again, with 4 bits"
        )
    if size < 1 or columns < 1 or rows < 1:
        c.fail(f"its weight of {rows} x {columns} in blocks of {size} has no elements", UNFIT)
    a, blocks = c.input(0), -(-columns // size)
    weight = c.reshape(c.input(1), [rows, blocks, size * bits // 8])
    operands = [_in_blocks(c, a, columns, blocks * size), weight, c.reshape(c.input(2), [rows, blocks])]
    if c.has(3):
        operands.append(_zeros(c, rows, blocks, bits, a.dtype))
    product = c.add("matmul_bits", *operands, bits=bits)
    return c.add("add", product, c.input(5)) if c.has(5) else product


def _in_blocks(c: Call, a: Operand, columns: int, whole: int) -> Operand:
    """Returns the left operand with zeros for the weights that fill up the last block."""
    if whole == columns:
        return a
    nothing = (0,) * (a.rank - 1)
    return c.add("pad", a, pads=(*nothing, 0, *nothing, whole - columns))


def _zeros(c: Call, rows: int, blocks: int, bits: int, dtype: DType) -> Operand:
    """Returns the zero point of each block, [rows, blocks]: given as floats, or packed."""
    given = c.input(3)
    if given.dtype is not u8:
        return c.reshape(c.cast(given, dtype), [rows, blocks])
    each = unpack(c, c.reshape(given, [rows, -(-blocks * bits // 8)]), bits)
    kept = c.add("slice", each, starts=(0,), ends=(blocks,), axes=(1,), steps=(1,))
    return c.reshape(c.cast(kept, dtype), [rows, blocks])
