"""Evaluates expressions with NumPy, and measures results in units in the last place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

import mpmath
import numpy as np

from weft.ir import (
    INTRINSICS,
    Apply,
    Binary,
    Broadcast,
    Cast,
    Const,
    Expr,
    Neg,
    Node,
    Not,
    Reinterpret,
    Select,
    Var,
    post_order,
)
from weft.lower.math.expansions import EXPANSIONS
from weft.support.dtypes import DType, f32, f64

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
WORDS: dict[DType, np.dtype[Any]] = {f32: np.dtype(np.uint32), f64: np.dtype(np.uint64)}


def evaluate(e: Expr, env: Mapping[Var, Array]) -> Array:
    """Returns the value of *e* for arrays of operands, each node computed once in its own type."""
    values: dict[Node, Any] = {v: a for v, a in env.items()}  # noqa: C416  (widens the type)
    with np.errstate(all="ignore"):
        for n in post_order(e):
            if n not in values:
                values[n] = _value(n, values)
    return np.asarray(values[e])


def _value(n: Node, values: Mapping[Node, Any]) -> Any:
    match n:
        case Const():
            return n.dtype.numpy.type(n.value)
        case Broadcast():
            return values[n.value]
        case Select():
            return np.where(values[n.cond], values[n.then], values[n.other])
        case Neg():
            return -values[n.a]
        case Not():
            return ~values[n.a]
        case Cast():
            return np.asarray(values[n.a]).astype(n.dtype.numpy)
        case Reinterpret():
            return np.asarray(values[n.a]).view(n.dtype.numpy)
        case Apply():
            args = [values[a] for a in n.args]
            return fma(*args) if n.fn == "fma" else INTRINSICS[n.fn].reference(*args)
        case Binary():
            return n.numpy(values[n.a], values[n.b])
    raise TypeError(f"no value for {type(n).__name__}")


def fma(a: Any, b: Any, c: Any) -> Any:
    """Returns a * b + c rounded once."""
    narrow = np.asarray(a).dtype == np.float32
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    product = a * b
    total = product + c
    middle = total - product
    lost = (product - (total - middle)) + (c - middle)
    if narrow:
        return _to_odd(total, lost).astype(np.float32)
    exact = total + (lost + _product_error(a, b, product))
    return np.where(np.isfinite(exact), exact, total)


def _to_odd(total: Array, lost: Array) -> Array:
    """Rounds a float64 sum to odd, after which rounding to float32 is as if done once (Boldo and Melquiond, 2008)."""
    bits = np.asarray(total).view(np.int64)
    inexact = (lost != 0) & (bits & 1 == 0) & np.isfinite(total) & np.isfinite(lost)
    step = np.where((lost > 0) == (total > 0), 1, -1)
    odd: Array = np.where(inexact, bits + step, bits).view(np.float64)
    return odd


def _product_error(a: Array, b: Array, product: Array) -> Array:
    """Returns what rounding took from a * b (Dekker, 1971)."""
    heads = [(x * 134217729.0) - (x * 134217729.0 - x) for x in (a, b)]
    ah, bh = heads
    al, bl = a - ah, b - bh
    error: Array = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    return error


@cache
def expanded(
    name: str, dtype: DType, fused: bool, arity: int = 1, scales: bool = False
) -> tuple[tuple[Var, ...], Expr]:
    """Returns operands and the expansion of *name* applied to them."""
    operands = tuple([Var(c, dtype) for c in "xyz"[:arity]])
    return operands, EXPANSIONS[name](*operands, fused=fused, scales=scales)


def computed(name: str, dtype: DType, fused: bool, *args: Array, scales: bool = False) -> Array:
    """Returns the expansion of *name* evaluated at *args*."""
    operands, e = expanded(name, dtype, fused, len(args), scales)
    return evaluate(e, dict(zip(operands, args, strict=True)))


def limits(dtype: Any) -> Any:
    """Returns NumPy's facts about a float type."""
    return np.finfo(dtype)


def ulp_error(y: Array, high: Array, low: Array | float = 0.0) -> Array:
    """Returns the distance of *y* from high + low in units in the last place of that; infinity counts as 2^emax."""
    info = limits(y.dtype)
    top = 2.0 ** np.longdouble(info.maxexp)
    exact = np.asarray(high, np.float64)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(exact)[1] - 1, info.minexp)
        unit = np.ldexp(1.0, exponent - info.nmant)
        got = np.where(np.isinf(y), np.copysign(top, y.astype(np.float64)), y.astype(np.longdouble))
        want = np.where(np.abs(exact) >= top, np.copysign(top, exact), exact.astype(np.longdouble))
        error = (np.abs((got - want) - np.where(np.isfinite(exact), low, 0.0)) / unit).astype(np.float64)
    both_nan = np.isnan(y) & np.isnan(exact)
    return np.where(both_nan, 0.0, np.where(np.isnan(error) | (np.isnan(y) != np.isnan(exact)), np.inf, error))


def in_two(values: Iterable[Any]) -> tuple[Array, Array]:
    """Returns numbers of mpmath as sums of two float64."""
    exact = list(values)
    high = np.array([float(v) for v in exact])
    low = [float(v - h) if np.isfinite(h) else 0.0 for v, h in zip(exact, high.tolist(), strict=True)]
    return high, np.array(low)


def reference(fn: Callable[..., Any], *args: Array) -> tuple[Array, Array]:
    """Returns *fn* of mpmath at *args* in 200 bits; NaN where it is not real or not defined."""
    with mpmath.workprec(200):
        rows = zip(*[a.astype(np.float64).tolist() for a in args], strict=True)
        return in_two([_real(fn, [mpmath.mpf(v) for v in row]) for row in rows])


def _real(fn: Callable[..., Any], row: list[Any]) -> Any:
    try:
        result = fn(*row)
    except (ValueError, ZeroDivisionError):
        return mpmath.nan
    return mpmath.nan if isinstance(result, mpmath.mpc) else result


def every_nth(dtype: DType, step: int, first: int = 0) -> Array:
    """Returns every *step*-th bit pattern of float32, or as many of float64 spread over all of its patterns."""
    patterns = np.arange(first, 2**32, step, dtype=np.uint64)
    if dtype is f32:
        return patterns.astype(np.uint32).view(np.float32)
    return (patterns * np.uint64(2**32 + 1)).view(np.float64)


def stratified(dtype: DType, seed: int, per_exponent: int = 4) -> Array:
    """Returns numbers of both signs with every exponent of *dtype* (every eighth of float64 away from 1)."""
    rng = np.random.default_rng(seed)
    word = WORDS[dtype]
    info = limits(dtype.numpy)
    mantissa, bias = info.nmant, info.maxexp - 1
    exponents = np.array([e for e in range(2 * bias + 1) if dtype is f32 or e % 8 == 0 or abs(e - bias) < 64])
    shape = (2, len(exponents), per_exponent)
    fields = np.broadcast_to(exponents[None, :, None], shape).astype(word) << word.type(mantissa)
    fractions = rng.integers(0, 2**mantissa, shape, dtype=np.uint64).astype(word)
    signs = np.arange(2, dtype=word)[:, None, None] << word.type(8 * word.itemsize - 1)
    made: Array = (fields | fractions | signs).ravel().view(dtype.numpy)
    return made


def specials(dtype: DType) -> Array:
    """Returns zeros, infinities, NaN, the ends of the normal and denormal ranges, and small whole numbers."""
    info = limits(dtype.numpy)
    sizes = [0.0, info.smallest_subnormal, info.tiny, info.tiny * 0.75, 0.5, 1, 1.5, 2, 3, info.max, np.inf]
    sizes += [float(np.nextafter(dtype.numpy.type(1), dtype.numpy.type(v))) for v in (0, 2)]
    return np.array([*sizes, *[-s for s in sizes], np.nan], dtype.numpy)
