"""The forms in which graphs have quantised tensors, as frontends build them (`graph.composites.quantized.quantization`).

centred        sub(cast(q, i32), zero), or cast(q, i32): bytes less their zero point, in 32 bits
dequantized    mul(cast(centred, f32), scale)
quantized      cast(clip(add(round(div(x, scale)), zero), low, high), u8 or i8), the zero point given as f32
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Deferred, Value
from weft.graph.rewriting.call_patterns import is_known
from weft.ir import Const
from weft.support.dtypes import DType, f32, i8, i32, u8

BYTES = (u8, i8)


@dataclass(frozen=True)
class Centred:
    """*value* is the bytes *q* less *zero*, None for 0, in 32 bits; the zero point is i32 and broadcasts to *q*."""

    value: Value
    q: Value
    zero: Value | None


@dataclass(frozen=True)
class Dequantized:
    """A tensor of float32: *integers* times *scale*, which broadcasts to them."""

    integers: Centred
    scale: Value

    @property
    def is_uniform(self) -> bool:
        """Tells whether scale and zero point are one number each."""
        zero = self.integers.zero
        return self.scale.rank == 0 and (zero is None or zero.rank == 0)


def call_of(op: str, v: Value | None) -> tuple[Value | None, ...]:
    """Returns the inputs of the call of *op* that makes *v*; empty where it is made otherwise."""
    node = None if v is None else v.producer
    return node.inputs if node is not None and node.op == op else ()


def operand_of(op: str, v: Value | None) -> Value | None:
    """Returns the first input of the call of *op* that makes *v*; None where it is made otherwise."""
    return next(iter(call_of(op, v)), None)


def centred(v: Value | None) -> Centred | None:
    """Returns the bytes and the zero point that *v* is the difference of; None for any other value."""
    if v is None or v.dtype is not i32:
        return None
    wide, zero = call_of("sub", v) or (v, None)
    q = operand_of("cast", wide)
    return Centred(v, q, zero) if q is not None and q.dtype in BYTES and q.shape == v.shape else None


def dequantized(v: Value | None) -> Dequantized | None:
    """Returns the integers and the scale that *v* is the product of; None for any other value."""
    product = call_of("mul", v)
    if v is None or v.dtype is not f32 or not product:
        return None
    wide, scale = product
    found = centred(operand_of("cast", wide))
    return None if found is None or scale is None or found.value.shape != v.shape else Dequantized(found, scale)


def quantized_by(clipped: Value | None, dtype: DType) -> tuple[Value, Value, Value] | None:
    """Returns the floats, the scale and the zero point (f32) that *clipped*, to be converted to *dtype*, is quantised by."""
    parts = call_of("clip", clipped) if dtype in BYTES else ()
    if not parts or not _is_range_of(parts, dtype):
        return None
    whole, zero = call_of("add", parts[0]) or (None, None)
    x, scale = call_of("div", operand_of("round", whole)) or (None, None)
    return None if x is None or scale is None or zero is None else (x, scale, zero)


def _is_range_of(clip: tuple[Value | None, ...], dtype: DType) -> bool:
    low, high = dtype.int_range
    return len(clip) == 3 and known(clip[1]) == low and known(clip[2]) == high


def known(v: Value | None) -> float | None:
    """Returns the element of a constant of one element; None for any other value."""
    if not is_known(v) or isinstance(v, Deferred) or v.size != 1:
        return None
    return float(v.array.reshape(()))


def is_byte(zero: Value | None) -> bool:
    """Tells whether a zero point is one of bytes, or 0."""
    if zero is None:
        return True
    if is_known(zero) and not isinstance(zero, Deferred):
        return bool((np.abs(zero.array) <= u8.int_range[1]).all())
    q = operand_of("cast", zero)
    return q is not None and q.dtype in BYTES


def dequantize(new: Graph, q: Value, like: Dequantized, source: str) -> Value:
    """Returns the floats that bytes *q* stand for by the scale and zero point of *like*."""
    wide = new.add("cast", [q], dtype=i32, source=source)
    zero = like.integers.zero
    whole = wide if zero is None else new.add("sub", [wide, zero], source=source)
    return new.add("mul", [new.add("cast", [whole], dtype=f32, source=source), like.scale], source=source)


def product_rows(node: Node) -> int | None:
    """Returns the rows of a product; None for an unknown number."""
    sizes = [int(s.value) for s in node.output.shape[:-1] if isinstance(s, Const)]
    return prod(sizes) if len(sizes) == node.output.rank - 1 else None
