"""Reads of tensors of 16-bit floats, promoted to float32 for formulas that compute in float32.

x = placeholder((n,), f16, "x")
w = Widened.of(x)
w[i]                            is f32(x[i]): no stage of its own, the conversion is part of the read
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.ir import Expr, ExprLike, cast
from weft.support.dtypes import DType, f32
from weft.te.tensor import Tensor, compute


def is_narrow(dtype: DType) -> bool:
    """Tells whether *dtype* is a float of fewer bits than arithmetic should have."""
    return dtype.is_float and dtype.bits < f32.bits


@dataclass(frozen=True, eq=False)
class Widened(Tensor):
    """The tensor *stored*, of a narrow float type, whose elements are float32 in formulas."""

    stored: Tensor

    @staticmethod
    def of(t: Tensor) -> Tensor:
        """Returns *t* with elements of 32 bits or more."""
        return Widened(t.op, t.index, f32, t) if is_narrow(t.dtype) else t

    def __getitem__(self, indices: ExprLike | Sequence[ExprLike]) -> Expr:
        return cast(self.stored[indices], self.dtype)


def as_formula(t: Tensor) -> Tensor:
    """Returns *t* as a tensor whose elements are of its type: those of a `Widened` one are converted by a formula."""
    return compute(t.shape, lambda *i: t[i], f"{t.name}_wide", dtype=t.dtype) if isinstance(t, Widened) else t


def as_stored(t: Tensor, rearrange: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies *rearrange*, which moves elements without computing, to *t* in the type that it is stored in."""
    return Widened.of(rearrange(t.stored)) if isinstance(t, Widened) else rearrange(t)
