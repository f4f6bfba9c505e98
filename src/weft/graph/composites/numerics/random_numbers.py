"""Random numbers of the common distributions, each a function of a seed, and of a stream that is the caller's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.ordering import top_k
from weft.ir import ExprLike
from weft.support.dtypes import DType, bf16, f16, f32, f64, i32, i64, u64

_BITS: Final = {f32: 24, f16: 11, bf16: 8}
"""Bits of a uniform number: as many as the significand of its type has, so that none is rounded to 1."""

_STEP: Final = 0x9E3779B97F4A7C15 - 2**64
"""Between the keys of iterations: odd, and far from the differences of seeds that are given."""


@dataclass(frozen=True, eq=False)
class RandomStream:
    """A sequence of random numbers: the *seed*, an int64, and which of its streams, of which those from 1 on are the callers'."""

    seed: Operand
    number: int

    def bits(self, b: Builder, shape: Sequence[ExprLike], word: int = 0) -> Operand:
        """Returns random u32."""
        return b.add("random_bits", self.seed, shape=tuple(shape), stream=self.number, word=word)


def uniform(b: Builder, source: RandomStream, shape: Sequence[ExprLike], dtype: DType, word: int = 0) -> Operand:
    """Numbers from 0 to below 1, of as many bits as the significand of *dtype* has."""
    digits = _BITS[f32 if dtype is f64 else dtype]
    bits = _signed(b, source.bits(b, shape, word), 32 - digits)
    if dtype is not f64:
        return b.cast(b.add("mul", b.cast(bits, f32), b.scalar(2.0**-digits, f32)), dtype)
    rest = _signed(b, source.bits(b, shape, word + 1), 3)
    upper, lower = (b.add("mul", b.cast(v, f64), b.scalar(s, f64)) for v, s in ((bits, 2.0**-digits), (rest, 2.0**-53)))
    return b.add("add", upper, lower)


def normal(b: Builder, source: RandomStream, shape: Sequence[ExprLike], dtype: DType) -> Operand:
    """Numbers of the normal distribution of mean 0 and variance 1 (Box and Muller, 1958)."""
    wide = _computed_in(dtype)
    turn = b.scalar(2 * math.pi, wide)
    angle = b.add("mul", uniform(b, source, shape, wide, word=2), turn)
    length = b.add("sqrt", b.add("mul", exponential(b, source, shape, wide), b.scalar(2, wide)))
    return b.cast(b.add("mul", length, b.add("cos", angle)), dtype)


def exponential(b: Builder, source: RandomStream, shape: Sequence[ExprLike], dtype: DType) -> Operand:
    """Numbers of the exponential distribution of mean 1."""
    wide = _computed_in(dtype)
    rest = b.add("sub", b.scalar(1, wide), uniform(b, source, shape, wide))  # which is never 0
    return b.cast(b.add("neg", b.add("log", rest)), dtype)


def integers(b: Builder, source: RandomStream, shape: Sequence[ExprLike], low: int, high: int) -> Operand:
    """Int64 from *low* to below *high*; their shares differ by a part in 2^63 / (high - low)."""
    positive = b.cast(b.add("shift_right", _long_bits(b, source, shape), b.scalar(1, u64)), i64)
    return b.add("add", b.add("floor_mod", positive, b.scalar(high - low, i64)), b.scalar(low, i64))


def permutation(b: Builder, source: RandomStream, count: ExprLike) -> Operand:
    """The numbers from 0 to below *count* in a random order."""
    return b.cast(b.add("argsort", integers(b, source, [count], 0, 2**62), axis=0, descending=False), i64)


def chosen(b: Builder, source: RandomStream, weights: Operand, count: int, *, again: bool) -> Operand:
    """Returns *count* places along the last dimension, each as likely as its weight is large; *again* the same ones, or not."""
    lead, size, axis = weights.shape[:-1], weights.shape[-1], weights.rank - 1
    if not again:  # the one whose exponential clock, of a rate that is its weight, rings first; then the next
        clocks = exponential(b, source, weights.shape, weights.dtype)
        return top_k(b, b.add("div", weights, clocks), count, axis, largest=True)[1]
    ends = b.add("cumsum", weights, axis=axis, exclusive=False, reverse=False)
    last = b.add("slice", ends, starts=(-1,), ends=(2**62,), axes=(axis,), steps=(1,))
    drawn = b.add("mul", uniform(b, source, [*lead, count], weights.dtype), last)
    before = b.add("less_equal", b.reshape(ends, [*lead, 1, size]), b.reshape(drawn, [*lead, count, 1]))
    return b.add("reduce_sum", b.cast(before, i64), axes=(axis + 1,), keepdims=False)


def seed_of_step(b: Builder, seed: Operand, step: Operand) -> Operand:
    """Returns the seed of one iteration of a loop, int64 as *seed* and the number *step*: others draw independent numbers."""
    key = b.add("add", seed, b.add("mul", step, b.scalar(_STEP, i64)))
    return b.cast(_long_bits(b, RandomStream(key, 0), ()), i64)


def happens(b: Builder, source: RandomStream, probability: Operand) -> Operand:
    """Returns for each element of *probability*, floats of 32 or 64 bits, whether something as probable happens."""
    return b.add("less", uniform(b, source, probability.shape, probability.dtype), probability)


def _long_bits(b: Builder, source: RandomStream, shape: Sequence[ExprLike]) -> Operand:
    """Returns random u64."""
    upper, lower = (b.cast(source.bits(b, shape, word), u64) for word in (0, 1))
    return b.add("bit_or", b.add("shift_left", upper, b.scalar(32, u64)), lower)


def _computed_in(dtype: DType) -> DType:
    """Returns the type in which numbers of *dtype* are made of uniform ones, of which 11 bits would leave out all tails."""
    return f64 if dtype is f64 else f32


def _signed(b: Builder, bits: Operand, dropped: int) -> Operand:
    """Returns u32 without their lowest bits as i32, which processors convert to floats faster."""
    return b.cast(b.add("shift_right", bits, b.scalar(dropped, bits.dtype)), i32)
