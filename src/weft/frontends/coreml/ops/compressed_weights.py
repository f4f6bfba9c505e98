"""Weights held as small integers, as indices of tables, or without their zeros; the graph has them as they are used."""

from __future__ import annotations

import numpy as np

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.registry import translates
from weft.graph import Array
from weft.graph.builder import Operand


def along(values: Array, axis: int, rank: int) -> Array:
    """Returns a vector of numbers for the places along an axis, or one for all, to be broadcast to *rank* dimensions."""
    return values if values.ndim == 0 else values.reshape([-1 if d == axis else 1 for d in range(rank)])


@translates("constexpr_affine_dequantize")
def affine_dequantize(c: Call) -> Operand:
    """Weights held as small integers: (q - zero point) * scale."""
    data, axis = c.constant("quantized_data"), c.integer("axis", 0)
    scale, zero = (along(c.constant(n), axis, data.ndim) for n in ("scale", "zero_point"))
    return _dequantized(c, data, scale, zero)


@translates("constexpr_blockwise_shift_scale")
def blockwise_shift_scale(c: Call) -> Operand:
    """Weights held as small integers, with a scale and a zero point for each block."""
    data, scale = c.constant("data"), _of_blocks(c, c.constant("data").shape, "scale")
    return _dequantized(
        c, data, scale, _of_blocks(c, data.shape, "offset") if c.has("offset") else np.zeros((), np.float32)
    )


def _dequantized(c: Call, data: Array, scale: Array, zero: Array) -> Operand:
    made = (data.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)
    return c.cast(c.kept_constant(made.astype(np.float32)), c.dtype())


def _of_blocks(c: Call, shape: tuple[int, ...], name: str) -> Array:
    """Returns a number for each element of *shape* from those of its blocks."""
    return _repeated(c, c.constant(name), shape, f"its input {name!r}")


def _repeated(c: Call, values: Array, shape: tuple[int, ...], what: str) -> Array:
    """Returns *values* repeated along the dimensions of *shape*, as often as it is larger."""
    if len(values.shape) != len(shape) or any(not v or s % v for s, v in zip(shape, values.shape, strict=True)):
        c.fail(f"{what} is of shape {list(values.shape)}, which divides {list(shape)} into no blocks", AGAIN)
    for d, size in enumerate(shape):
        values = values.repeat(size // values.shape[d], axis=d)
    return values


@translates("constexpr_cast")
def constexpr_cast(c: Call) -> Operand:
    """Weights held as another type."""
    return c.cast(c.operand("source_val"), c.dtype())


@translates("constexpr_lut_to_dense")
def lut_to_dense(c: Call) -> Operand:
    """Weights held as indices of a table: of few bits, packed, with one table; or as a tensor, with a table for each block."""
    if not c.has("shape"):
        return _by_tables(c, c.constant("indices"), c.constant("lut"))
    table, shape = c.constant("lut"), c.ints("shape")
    width, count = int(np.log2(max(table.size, 1))), int(np.prod(shape))
    bits = _bits(c, "indices", count * width)
    places = (bits.reshape(count, width) << np.arange(width)).sum(axis=1)
    return c.kept_constant(table.reshape(-1)[places].reshape(shape))


def _bits(c: Call, name: str, count: int) -> Array:
    """Returns the first *count* bits of an input, the lowest of each byte first."""
    held = c.constant(name).reshape(-1).view(np.uint8)
    if count > 8 * held.size:
        c.fail(f"its input {name!r} has {8 * held.size} bits, and should have {count}", AGAIN)
    return np.unpackbits(held, bitorder="little", count=count)


def _by_tables(c: Call, places: Array, tables: Array) -> Operand:
    """Returns the elements at *places* of tables [..., entries, elements], whose first dimensions are those of blocks."""
    if tables.ndim != places.ndim + 2 or tables.shape[-1] != 1:
        c.fail(f"its tables of shape {list(tables.shape)} are not supported", "palettize with scalars (cluster_dim=1)")
    entries = tables[..., 0]
    if places.max(initial=0) >= entries.shape[-1]:
        c.fail(f"its tables have {entries.shape[-1]} entries, and indices are greater", AGAIN)
    table_of = np.arange(entries.size // entries.shape[-1]).reshape(entries.shape[:-1])
    numbers = _repeated(c, table_of, places.shape, "its input 'lut'")
    return c.kept_constant(entries.reshape(-1, entries.shape[-1])[numbers, places])


@translates("constexpr_sparse_to_dense")
def sparse_to_dense(c: Call) -> Operand:
    """Weights held without their zeros, and a mask of where they are: bits, packed, or a tensor of them."""
    values = c.constant("nonzero_data").reshape(-1)
    shape = c.ints("shape") if c.has("shape") else list(c.constant("mask").shape)
    count = int(np.prod(shape))
    kept = (_bits(c, "mask", count) if c.has("shape") else c.constant("mask").reshape(-1)) != 0
    if np.count_nonzero(kept) != values.size:
        c.fail(f"its mask keeps {np.count_nonzero(kept)} elements, and it has {values.size}", AGAIN)
    made = np.zeros(count, values.dtype)
    made[kept] = values
    return c.kept_constant(made.reshape(shape))
