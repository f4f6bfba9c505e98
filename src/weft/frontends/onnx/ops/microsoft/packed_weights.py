"""Products with weights of few bits, packed into bytes (MatMulNBits), and tables of such (GatherBlockQuantized)."""

from __future__ import annotations

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import contrib
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant, static_sizes
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


@contrib(
    "GatherBlockQuantized",
    inputs=(3, 4),
    attributes=dict.fromkeys(("bits", "block_size", "gather_axis", "quantize_axis"), int),
    limits="blocks along the axis that is gathered along",
)
def gather_block_quantized(c: Call) -> Results:
    """Slices of a quantised tensor at indices, each block along an axis with a scale and a zero point, as floats."""
    data, indices, scales = (c.input(i) for i in range(3))
    axis, along = c.axis(0, data.rank, "gather_axis"), c.axis(1, data.rank, "quantize_axis")
    bits, size = c.integer("bits", 4), c.integer("block_size", 128)
    is_packed = data.dtype is u8 and bits < 8
    if axis == along or bits not in (4, 8) or size < 16 or size & (size - 1):
        c.fail(f"its axes {axis} and {along}, {bits} bits and blocks of {size} are not supported", UNFIT)
    if is_packed and along != data.rank - 1:
        c.fail(f"its packed elements {data!r} are not in blocks along the last axis", UNFIT)

    def chosen(x: Operand) -> Operand:
        made = c.add("gather", x, indices, axis=axis)
        return unpack(c, made, bits) if is_packed and x.dtype is u8 else made

    x = chosen(data)
    along += indices.rank - 1 if along > axis else 0
    length = static_sizes(x.shape[along : along + 1])
    if length is None:
        c.fail(f"the axis {along} of {x!r}, which has blocks, is symbolic", UNFIT)
    block_of = CompileTimeConstant(np.arange(length[0], dtype=np.int64) // size)
    blocks = -(-length[0] // size)

    def each(of_blocks: Operand) -> Operand:
        kept = c.add("slice", of_blocks, starts=(0,), ends=(blocks,), axes=(along,), steps=(1,))
        return c.add("gather", kept, block_of, axis=along)

    numbers = c.cast(x, scales.dtype)
    if c.has(3):
        numbers = c.add("sub", numbers, each(c.cast(chosen(c.input(3)), scales.dtype)))
    elif data.dtype is u8:
        numbers = c.add("sub", numbers, c.scalar(1 << (bits - 1), scales.dtype))
    return c.add("mul", numbers, each(chosen(scales)))
