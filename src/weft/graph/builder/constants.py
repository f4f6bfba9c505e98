"""Tensors whose elements are known at compile time: numbers, or the symbolic sizes of a model and arithmetic on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.cost import LARGEST_FOLDED_GROWTH
from weft.graph.core.graph_values import Array
from weft.graph.core.type_text import attribute_text, type_text
from weft.ir import Expr, ExprLike, index
from weft.ops import TensorType, settled
from weft.support.dtypes import DType, from_numpy, i64, u8

SHOWN: Final = 8
"""A constant of at most so many elements is shown with all of them."""


class CompileTimeConstant:
    """A tensor whose elements are numbers or (`symbolic`) integers and index expressions in an array of objects.

    It is not a value of a graph; `PartialEvaluator.value` makes a graph constant of it where a node reads it.
    """

    __slots__ = ("array", "dtype", "name")

    def __init__(self, array: Array, name: str = "", dtype: DType | None = None) -> None:
        self.array = array
        self.name = name
        self.dtype = dtype or (i64 if array.dtype == object else from_numpy(array.dtype))

    @property
    def symbolic(self) -> bool:
        """Tells whether an element is an index expression rather than a number."""
        return self.array.dtype == object

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents."""
        return tuple([index(n) for n in self.array.shape])

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.array.ndim

    def __repr__(self) -> str:
        type_ = type_text(TensorType(self.shape, self.dtype))
        elements = f" = {attribute_text(tuple(self.array.ravel().tolist()))}" if self.array.size <= SHOWN else ""
        return f"{self.name or 'a constant'}: {type_}{elements}"


def sizes_array(sizes: Sequence[ExprLike], shape: tuple[int, ...] | None = None) -> Array:
    """Returns *sizes* as an array of *shape* (a vector for None): of int64, or of objects where one is symbolic.

    Raises `NotFoldable` for a size of too many operations.
    """
    made = np.empty(len(sizes), object)
    made[:] = [settled(s) for s in sizes]
    a = made.reshape((len(sizes),) if shape is None else shape)
    return a if any(isinstance(e, Expr) for e in a.flat) else a.astype(np.int64)


def is_packable(constant: CompileTimeConstant) -> bool:
    """Tells whether a constant is held as bytes of several elements: a weight so large that it is dequantised as the model runs.

    A smaller one is dequantised by constant folding, which multiplies its bytes by four.
    """
    bits, array = constant.dtype.used_bits, constant.array
    if not constant.dtype.is_storage or bits == u8.bits or array.nbytes <= LARGEST_FOLDED_GROWTH // 2:
        return False
    return int(array.shape[0]) % (u8.bits // bits) == 0


def packed_bytes(constant: CompileTimeConstant) -> Array:
    """Returns the elements of a packable constant several a byte, as the operator `unpack` takes them apart."""
    bits, array = constant.dtype.used_bits, constant.array
    count = u8.bits // bits
    parts = array.view(np.uint8).reshape(count, -1, *array.shape[1:]) & ((1 << bits) - 1)
    places = np.arange(0, u8.bits, bits, dtype=np.uint8).reshape(-1, *[1] * array.ndim)
    packed: Array = np.bitwise_or.reduce(parts << places, axis=0)
    return packed
