"""Weights held as small integers, as indices of tables, or without their zeros; the graph has them as they are used."""

from __future__ import annotations

from typing import Any

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
    """Returns the elements at *places* of tables [..., entries, elements], whose first dimensions are those of blocks.

    Entries of several elements lie along `vector_axis`.
    """
    size = tables.shape[-1] if tables.ndim else 0
    numbers = _table_numbers(c, tables, places.shape)
    found = _looked_up(c, places, tables, numbers)
    if size == 1:
        return c.kept_constant(found[..., 0])
    axis = c.axis_of(c.integer("vector_axis"), places.ndim)
    whole = np.moveaxis(found, -1, axis + 1)
    shape = [s * (size if d == axis else 1) for d, s in enumerate(places.shape)]
    return c.kept_constant(whole.reshape(shape))


def _table_numbers(c: Call, tables: Array, shape: tuple[int, ...]) -> Array:
    """Returns the number of the table that each element of *shape* is looked up in."""
    if tables.ndim != len(shape) + 2 or not tables.shape[-1]:
        c.fail(f"its tables of shape {list(tables.shape)} are not those of indices {list(shape)}", AGAIN)
    count = int(np.prod(tables.shape[:-2]))
    return _repeated(c, np.arange(count).reshape(tables.shape[:-2]), shape, "its input 'lut'")


def _looked_up(c: Call, places: Array, tables: Array, numbers: Array) -> Array:
    """Returns the entries at *places*, each of the table of its number, with their elements in a last dimension."""
    if places.max(initial=0) >= tables.shape[-2]:
        c.fail(f"its tables have {tables.shape[-2]} entries, and indices are greater", AGAIN)
    found: Array = tables.reshape(-1, *tables.shape[-2:])[numbers, places]
    return found


@translates("constexpr_lut_to_sparse")
def lut_to_sparse(c: Call) -> tuple[Operand, Operand]:
    """The mask of weights without their zeros, and those that are no zeros, held as indices of tables."""
    mask, tables = c.constant("indices_mask"), c.constant("lut")
    if tables.ndim and tables.shape[-1] != 1:
        c.fail("sparse weights in tables of vectors are not supported", "palettize with scalars (cluster_dim=1)")
    kept = mask != 0
    places = _kept(c, "indices_nonzero_data", kept)
    found = _looked_up(c, places, tables, _table_numbers(c, tables, mask.shape)[kept])
    return c.operand("indices_mask"), c.kept_constant(found[..., 0])


@translates("constexpr_sparse_blockwise_shift_scale")
def sparse_blockwise_shift_scale(c: Call) -> tuple[Operand, Operand]:
    """The mask of weights without their zeros, and those that are no zeros, held as small integers."""
    mask = c.constant("data_mask")
    kept = mask != 0
    data, scale = _kept(c, "nonzero_data", kept), _of_blocks(c, mask.shape, "scale")[kept]
    zero = _of_blocks(c, mask.shape, "offset")[kept] if c.has("offset") else np.zeros((), np.float32)
    made = (data.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)
    return c.operand("data_mask"), c.cast(c.kept_constant(made.astype(np.float32)), c.dtype(1))


def _kept(c: Call, name: str, kept: Array) -> Array:
    """Returns an input that has an element for each of those *kept* by a mask."""
    found: Array = c.constant(name).reshape(-1)
    if found.size != np.count_nonzero(kept):
        c.fail(f"its mask keeps {np.count_nonzero(kept)} elements, and it has {found.size}", AGAIN)
    return found


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


@translates("dequantize")
def dequantize(c: Call) -> Operand:
    """Activations held as small integers, as numbers: (q - zero point) * scale."""
    x, scale = c.operand("input"), _of_channels(c, "scale")
    made = c.cast(x, scale.dtype)
    if c.has("zero_point"):
        made = c.add("sub", made, c.cast(_of_channels(c, "zero_point"), scale.dtype))
    return c.add("mul", made, scale)


@translates("quantize")
def quantize(c: Call) -> Operand:
    """Activations as small integers: numbers divided by a scale, rounded, and moved by the zero point."""
    x, dtype = c.operand("input"), c.dtype()
    if not dtype.is_int:
        c.fail(f"it makes elements of type {dtype}", AGAIN)
    limits: Any = np.iinfo(dtype.numpy)
    made = c.add("round", c.add("div", x, c.cast(_of_channels(c, "scale"), x.dtype)))
    if c.has("zero_point"):
        made = c.add("add", made, c.cast(_of_channels(c, "zero_point"), x.dtype))
    return c.cast(c.add("clip", made, c.scalar(limits.min, x.dtype), c.scalar(limits.max, x.dtype)), dtype)


def _of_channels(c: Call, name: str) -> Operand:
    """Returns numbers for the places along `axis`, or one for all, as a tensor that is broadcast to the input."""
    rank = c.operand("input").rank
    axis = c.axis_of(c.integer("axis"), rank) if c.has("axis") else 0
    return c.kept_constant(along(c.constant(name), axis, rank))
