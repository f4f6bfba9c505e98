"""Constant weights as `matmul_bits` takes them: several of a column in a byte, with a scale and a zero point for each block.

A graph has the scales of blocks as frontends spread them (`graph.composites.quantized.quantization.broadcast_to_blocks`):

    slice(reshape(expand(reshape(s, [K/B, 1, N]), [K/B, B, N]), [K, N]))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.graph.core.graph import Node
from weft.graph.core.graph_values import Array, Constant, Value
from weft.graph.passes.quantized.quantized_patterns import BYTES, call_of, operand_of
from weft.graph.rewriting.call_patterns import is_known
from weft.support.dtypes import DType, f32, u8


@dataclass(frozen=True)
class LowBitWeight:
    """A matrix in bytes [N, blocks, bytes] of weights of *bits* bits, and the scale and zero point [N, blocks] of each block.

    Without *zero*, the middle of the range of the bits stands for zero.
    """

    matrix: Array
    scale: Array
    zero: Array | None
    bits: int


@dataclass(frozen=True)
class Factors:
    """A constant matrix of integers of *dtype*, its scale, and its zero point (None for 0), as a product of them is written.

    Where it *is_packed*, several are in a byte, since it is large: dequantised, it would take many times its memory.
    """

    q: Array
    dtype: DType
    scale: Value
    zero: Value | None
    is_packed: bool


def weight_factors(v: Value | None) -> Factors | None:
    """Returns the constant of integers of 8 bits or fewer that *v* is dequantised from; None for any other value."""
    whole, scale = call_of("mul", v) or (None, None)
    wide = operand_of("cast", whole)
    if v is None or v.dtype is not f32 or wide is None or scale is None or scale.dtype is not f32:
        return None
    integers, zero = call_of("sub", wide) or (wide, None)
    q = operand_of("cast", integers) or operand_of("decode", integers)
    elements = None if q is None else _elements(q)
    if q is None or elements is None:
        return None
    return Factors(elements, q.dtype, scale, zero, is_packed=not isinstance(q, Constant))


def _elements(q: Value) -> Array | None:
    """Returns the integers of a constant of bytes, or of one taken apart by `unpack`; None for any other value."""
    if isinstance(q, Constant):
        is_whole = q.dtype in BYTES or (q.dtype.is_storage and not q.dtype.holds_floats)
        return q.array.astype(np.int16) if is_known(q) and is_whole else None
    packed = operand_of("unpack", q)
    if not is_known(packed) or q.dtype.holds_floats:
        return None
    bits = q.dtype.used_bits
    fields = [packed.array >> np.uint8(bits * n) & np.uint8((1 << bits) - 1) for n in range(u8.bits // bits)]
    whole = np.concatenate(fields).astype(np.int16)
    return whole - (1 << bits) * (whole >> (bits - 1)) if _is_signed(q.dtype) else whole


def _is_signed(dtype: DType) -> bool:
    return not str(dtype).startswith("u")


def low_bit_weight(found: Factors, *, by_rows: bool) -> LowBitWeight | None:
    """Returns a matrix [K, N], or [N, K] *by_rows*, by its columns; None where scales or zero points have another form."""
    q, bits = found.q, found.dtype.used_bits
    if q.ndim != 2:
        return None
    depth_axis = 1 if by_rows else 0
    scale, zero = (_by_blocks(v, q.shape, depth_axis) for v in (found.scale, found.zero))
    if scale is None or zero is None:
        return None
    blocks = max(scale.shape[1], zero.shape[1])
    size, each = q.shape[depth_axis] // blocks, u8.bits // bits
    if size % each or blocks % scale.shape[1] or blocks % zero.shape[1]:
        return None
    shift = 1 << (bits - 1) if _is_signed(found.dtype) else 0
    columns = np.ascontiguousarray(q if by_rows else q.T) + shift
    fields = columns.reshape(columns.shape[0], blocks, size // each, each)
    matrix = sum((fields[..., n] << bits * n for n in range(1, each)), fields[..., 0]).astype(np.uint8)
    scale, zero = (np.repeat(v, blocks // v.shape[1], 1) for v in (scale, zero))
    centre = zero.astype(np.float32) + np.float32(shift)
    middle = bool((centre == 1 << (bits - 1)).all())
    return LowBitWeight(matrix, np.ascontiguousarray(scale, np.float32), None if middle else centre, bits)


def _by_blocks(v: Value | None, shape: tuple[int, ...], depth_axis: int) -> Array | None:
    """Returns a number for each column and block [N, blocks] of *v*, zeros where it is absent; None for another form."""
    columns = shape[1 - depth_axis]
    if v is None:
        return np.zeros((columns, 1), np.float32)
    blocked = _before_spreading(v, shape, depth_axis)
    if blocked is not None:
        return blocked if depth_axis == 1 else blocked.T
    if not is_known(v) or v.rank > 2:
        return None
    extents = (1,) * (2 - v.rank) + v.extents
    if extents[depth_axis] != 1 or extents[1 - depth_axis] not in (1, columns):
        return None
    return np.broadcast_to(v.array.reshape(-1, 1), (columns, 1))


def _chain(v: Value, operators: Sequence[str]) -> list[Node] | None:
    """Returns the nodes of *operators* of which each computes the first operand of the one before, *v* first; None without."""
    found: list[Node] = []
    for op in operators:
        node = v.producer
        if node is None or node.op != op or node.inputs[0] is None:
            return None
        found.append(node)
        v = node.inputs[0]
    return found


def _before_spreading(v: Value, shape: tuple[int, ...], axis: int) -> Array | None:
    """Returns the constant whose elements *v* repeats along *axis*, each for a block; None for any other value."""
    chain = _chain(v, ("slice", "reshape", "expand", "reshape"))
    spread = None if chain is None else chain[-1].inputs[0]
    if chain is None or not is_known(spread) or spread.rank != len(shape):
        return None
    counts = spread.extents
    size = -(-shape[axis] // counts[axis])
    apart = (*counts[: axis + 1], 1, *counts[axis + 1 :])
    wide = (*counts[: axis + 1], size, *counts[axis + 1 :])
    whole = tuple([n * size if d == axis else n for d, n in enumerate(counts)])
    made = [n.output.static_shape for n in chain]
    from_start = not any(chain[0].attribute("starts")) and set(chain[0].attribute("steps") or (1,)) == {1}
    return spread.array if from_start and whole == shape and made == [shape, whole, wide, apart] else None
