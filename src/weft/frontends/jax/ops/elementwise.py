"""Operations on each element: arithmetic, comparison, logic, and functions of one number."""

from __future__ import annotations

import math
from functools import reduce
from typing import Final

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import Translation, translates
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites.numerics import bessel_series, gamma_derivatives, next_float, special_functions
from weft.graph.composites.sequences import element, stack
from weft.support.dtypes import SCALARS, DType, bool_, u8

DIRECTIONS: Final = ("EQ", "NE", "GE", "GT", "LE", "LT")


def _unary(op: str) -> Translation:
    return lambda c: c.add(op, c.operand(0))


for _name, _op in {
    "abs": "abs",
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "ceil": "ceil",
    "cosh": "cosh",
    "cosine": "cos",
    "erf": "erf",
    "custom_call @mhlo.erf": "erf",
    "exponential": "exp",
    "floor": "floor",
    "is_inf": "is_inf",
    "log": "log",
    "logistic": "sigmoid",
    "negate": "neg",
    "round_nearest_even": "round",
    "rsqrt": "rsqrt",
    "sign": "sign",
    "sine": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "square": "square",
    "tan": "tan",
    "tanh": "tanh",
}.items():
    translates(_name)(_unary(_op))

translates("digamma")(lambda c: gamma_derivatives.digamma(c, c.operand(0)))
translates("zeta")(lambda c: gamma_derivatives.zeta(c, c.operand(0), c.operand(1)))
translates("bessel_i1e")(lambda c: bessel_series.bessel_i(c, c.operand(0), 1, scaled=True))
translates("cbrt")(lambda c: special_functions.cbrt(c, c.operand(0)))
translates("erf_inv")(lambda c: special_functions.erfinv(c, c.operand(0)))
translates("erfc")(lambda c: special_functions.erfc(c, c.operand(0)))
translates("exponential_minus_one")(lambda c: special_functions.expm1(c, c.operand(0)))
translates("lgamma")(lambda c: special_functions.lgamma(c, c.operand(0)))
translates("log_plus_one")(lambda c: special_functions.log1p(c, c.operand(0)))


@translates(
    "optimization_barrier",
    "custom_call @Sharding",
    "custom_call @SPMDFullToShardShape",
    "custom_call @SPMDShardToFullShape",
)
def unchanged(c: Call) -> tuple[Operand, ...]:
    """Returns the operands: the operation is a hint for other compilers, or for several devices."""
    return tuple(c.operands)


@translates("constant")
def constant(c: Call) -> Operand:
    """Numbers in the text; one for all elements is not held as often as it is there."""
    return c.constant_of(c.value("value"))


@translates("convert")
def convert(c: Call) -> Operand:
    """Elements as another type."""
    return c.cast(c.operand(0), c.result_dtype())


@translates("bitcast_convert")
def bitcast_convert(c: Call) -> Operand:
    """The bits of elements as another type; elements of several of its width are a last dimension, the lowest bits first."""
    x, dtype = c.operand(0), c.result_dtype()
    widths = {x.dtype.bits, dtype.bits}
    if len(widths) == 1:
        return c.add("bit_cast", x, dtype=dtype)
    if bool_ in (x.dtype, dtype) or not widths <= {8, 16, 32, 64}:
        c.fail(f"the bits of {x.dtype} as {dtype} are not supported", "keep the width")
    wide, narrow = (SCALARS[f"u{bits}"] for bits in (max(widths), min(widths)))
    count = wide.bits // narrow.bits
    if dtype.bits < x.dtype.bits:
        words = c.add("bit_cast", x, dtype=wide)
        steps = [c.add("shift_right", words, c.scalar(k * narrow.bits, wide)) for k in range(count)]
        parts = [c.cast(c.add("bit_and", s, c.scalar((1 << narrow.bits) - 1, wide)), narrow) for s in steps]
        return c.add("bit_cast", stack(c, parts, x.rank), dtype=dtype)
    if not x.rank or c.static(x)[-1] != count:
        c.fail(f"the bits of {x!r} are no {dtype}", AGAIN)
    pieces = [c.cast(element(c, c.add("bit_cast", x, dtype=narrow), x.rank - 1, k), wide) for k in range(count)]
    moved = [c.add("shift_left", p, c.scalar(k * narrow.bits, wide)) for k, p in enumerate(pieces)]
    return c.add("bit_cast", reduce(lambda a, b: c.add("bit_or", a, b), moved), dtype=dtype)


@translates("reduce_precision")
def reduce_precision(c: Call) -> Operand:
    """Elements rounded to a smaller type and back."""
    x, to = c.operand(0), {"e8m7": "bf16", "e5m10": "f16", "e8m23": "f32", "e11m52": "f64"}
    form = c.value("format")
    if form is None:
        form = f"e{c.integer('exponent_bits')}m{c.integer('mantissa_bits')}"
    if form not in to:
        c.fail(f"rounding to {form} is not supported", f"round to one of {', '.join(to)}")
    dtype = SCALARS[to[form]]
    return x if dtype.bits >= x.dtype.bits else c.cast(c.cast(x, dtype), x.dtype)


@translates("round_nearest_afz")
def round_away(c: Call) -> Operand:
    """Rounded to the nearest integer, halves away from zero."""
    x = c.operand(0)
    size = c.add("abs", x)
    down = c.add("floor", size)
    is_up = c.add("less_equal", c.scalar(0.5, x.dtype), c.add("sub", size, down))
    rounded = c.add("where", is_up, c.add("add", down, c.scalar(1, x.dtype)), down)
    return c.add("mul", rounded, c.add("sign", x))


@translates("is_pos_inf", "is_neg_inf")
def is_infinite_of_sign(c: Call) -> Operand:
    """Tells where elements are infinite, and above zero, or below it."""
    x = c.operand(0)
    return c.add("equal", x, c.scalar(math.inf if c.operation.name.endswith("is_pos_inf") else -math.inf, x.dtype))


@translates("polygamma")
def polygamma(c: Call) -> Operand:
    """The derivatives of the digamma function, of orders that are data."""
    n, x = c.operand(0), c.operand(1)
    one, two = (c.scalar(v, x.dtype) for v in (1, 2))
    after = c.add("add", n, one)
    odd = c.add("equal", c.add("floor_mod", n, two), one)
    size = c.add("mul", c.add("exp", special_functions.lgamma(c, after)), gamma_derivatives.zeta(c, after, x))
    made = c.add("where", odd, size, c.add("neg", size))
    return c.add("where", c.add("equal", n, c.scalar(0, x.dtype)), gamma_derivatives.digamma(c, x), made)


@translates("is_finite")
def is_finite(c: Call) -> Operand:
    """Tells where elements are neither infinite nor NaN."""
    return special_functions.is_finite(c, c.operand(0))


@translates("not")
def not_(c: Call) -> Operand:
    """Negates truth values, or all bits."""
    x = c.operand(0)
    return c.add("logical_not" if x.dtype is bool_ else "bit_not", x)


# of two operands

_BINARY: Final = {
    "add": ("add", "logical_or"),
    "subtract": ("sub", "logical_xor"),
    "multiply": ("mul", "logical_and"),
    "maximum": ("maximum", "logical_or"),
    "minimum": ("minimum", "logical_and"),
    "and": ("bit_and", "logical_and"),
    "or": ("bit_or", "logical_or"),
    "xor": ("bit_xor", "logical_xor"),
}
"""Weft's operators on numbers, and on truth values."""


def combine(c: Call, name: str, a: Operand, b: Operand) -> Operand:
    """Returns two operands combined by the operation *name* of the table above."""
    on_numbers, on_truths = _BINARY[name]
    return c.add(on_truths if a.dtype is bool_ else on_numbers, a, b)


def _binary(name: str) -> Translation:
    return lambda c: combine(c, name, c.operand(0), c.operand(1))


for _name in _BINARY:
    translates(_name)(_binary(_name))


@translates("power")
def power(c: Call) -> Operand:
    """A power, of integers too."""
    return c.add("power", c.operand(0), c.operand(1))


@translates("divide")
def divide(c: Call) -> Operand:
    """The quotient, of integers rounded towards zero; by zero it is -1, all bits."""
    x, y = c.operand(0), c.operand(1)
    made = c.add("div", x, y)
    if not x.dtype.is_int or _is_nonzero(y):
        return made
    zero = c.add("equal", y, c.scalar(0, y.dtype))
    return c.add("where", zero, c.add("bit_not", c.scalar(0, x.dtype)), made)


@translates("remainder")
def remainder(c: Call) -> Operand:
    """The remainder, with the sign of the dividend; of a division of integers by zero it is the dividend."""
    x, y = c.operand(0), c.operand(1)
    if not x.dtype.is_int:
        return c.add("float_mod", x, y)
    made = c.add("trunc_mod", x, y)
    return made if _is_nonzero(y) else c.add("where", c.add("equal", y, c.scalar(0, y.dtype)), x, made)


def _is_nonzero(y: Operand) -> bool:
    return isinstance(y, CompileTimeConstant) and not y.symbolic and bool((y.array != 0).all())


@translates("atan2")
def atan2(c: Call) -> Operand:
    """The angle of a point."""
    return special_functions.atan2(c, c.operand(0), c.operand(1))


@translates("next_after")
def next_after(c: Call) -> Operand:
    """The float next to an element in the direction of another."""
    return next_float.next_after(c, c.operand(0), c.operand(1))


@translates("shift_left")
def shift_left(c: Call) -> Operand:
    """Bits moved to higher places."""
    return c.add("shift_left", c.operand(0), c.operand(1))


@translates("shift_right_arithmetic")
def shift_right_arithmetic(c: Call) -> Operand:
    """Bits moved to lower places, the sign staying."""
    x, y = c.operand(0), c.operand(1)
    signed = SCALARS[f"i{x.dtype.bits}"]
    return c.add("bit_cast", c.add("shift_right", _bits(c, x, signed), _bits(c, y, signed)), dtype=x.dtype)


@translates("shift_right_logical")
def shift_right_logical(c: Call) -> Operand:
    """Bits moved to lower places, and zeros behind them."""
    x, y = c.operand(0), c.operand(1)
    unsigned = SCALARS[f"u{x.dtype.bits}"]
    return c.add("bit_cast", c.add("shift_right", _bits(c, x, unsigned), _bits(c, y, unsigned)), dtype=x.dtype)


def _bits(c: Call, x: Operand, dtype: DType) -> Operand:
    return x if x.dtype is dtype else c.add("bit_cast", x, dtype=dtype)


@translates("compare")
def compare(c: Call) -> Operand:
    """Compares elements; truth values as 0 and 1."""
    direction = c.word("comparison_direction", 0, DIRECTIONS)
    x, y = (c.cast(v, u8) if v.dtype is bool_ else v for v in (c.operand(0), c.operand(1)))
    if direction in ("EQ", "NE"):
        made = c.add("equal", x, y)
        return made if direction == "EQ" else c.add("logical_not", made)
    low, high = (x, y) if direction in ("LT", "LE") else (y, x)
    return c.add("less" if direction in ("LT", "GT") else "less_equal", low, high)


@translates("select")
def select(c: Call) -> Operand:
    """Chooses between two tensors, element by element."""
    return c.add("where", c.operand(0), c.operand(1), c.operand(2))


@translates("clamp")
def clamp(c: Call) -> Operand:
    """Elements kept between two bounds."""
    return c.add("minimum", c.add("maximum", c.operand(1), c.operand(0)), c.operand(2))


@translates("map")
def map_(c: Call) -> tuple[Operand, ...]:
    """A region for each element, computed for all of them at once; one that looks at no element gives a number alone."""
    made = c.region(0, c.operands)
    return tuple([v if v.rank else c.add("expand", v, shape=c.operand(0).shape) for v in made])


@translates("popcnt")
def popcnt(c: Call) -> Operand:
    """How many bits of each element are set."""
    x = c.operand(0)
    return c.add("bit_cast", _count(c, _unsigned(c, x)), dtype=x.dtype)


@translates("count_leading_zeros")
def count_leading_zeros(c: Call) -> Operand:
    """How many bits of each element are not set before the first that is."""
    x = c.operand(0)
    filled = _unsigned(c, x)
    for k in _powers(x.dtype.bits):
        filled = c.add("bit_or", filled, c.add("shift_right", filled, c.scalar(k, filled.dtype)))
    zeros = c.add("sub", c.scalar(x.dtype.bits, filled.dtype), _count(c, filled))
    return c.add("bit_cast", zeros, dtype=x.dtype)


def _unsigned(c: Call, x: Operand) -> Operand:
    if not x.dtype.is_int or x.dtype.bits not in (8, 16, 32, 64):
        c.fail(f"it counts bits of {x!r}", AGAIN)
    return c.add("bit_cast", x, dtype=SCALARS[f"u{x.dtype.bits}"])


def _count(b: Builder, x: Operand) -> Operand:
    """Returns how many bits are set: sums of pairs, then of pairs of these (Warren, "Hacker's Delight", section 5-1)."""
    bits = x.dtype.bits
    for k in _powers(bits):
        mask = b.scalar(sum(((1 << k) - 1) << s for s in range(0, bits, 2 * k)), x.dtype)
        upper = b.add("bit_and", b.add("shift_right", x, b.scalar(k, x.dtype)), mask)
        x = b.add("add", b.add("bit_and", x, mask), upper)
    return x


def _powers(bits: int) -> list[int]:
    """Returns 1, 2, 4, ... below a word's *bits*."""
    return [1 << k for k in range(bits.bit_length() - 1)]
