"""Element-wise operators: arithmetic, comparison, logic and activations, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.ir import (
    INDEX,
    Add,
    And,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Cast,
    Div,
    Eq,
    Expr,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Reinterpret,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    apply,
    as_expr,
    const,
    eq,
    maximum,
    minimum,
    ne,
    select,
)
from weft.ir import cast as cast_expr
from weft.ops.folding import (
    Array,
    Fold,
    NotFoldable,
    absolute_size,
    check_spread,
    comparison,
    divide,
    divide_exactly,
    divide_sizes,
    elementwise,
    remainder_of_sizes,
)
from weft.ops.registry import OPERATORS, Operator, operator
from weft.ops.shapes import at_broadcast, broadcast_shapes, check_shape
from weft.support.dtypes import DType, bool_, f64
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute


def map_tensors(name: str, fn: Callable[..., Expr], *xs: Tensor, dtype: DType | None = None) -> Tensor:
    """Applies *fn* to the elements of *xs*, broadcast together; the result's type is *dtype*, or the first tensor's."""
    shape = broadcast_shapes(*[x.shape for x in xs])
    return compute(shape, lambda *i: fn(*[at_broadcast(x, i, shape) for x in xs]), name, dtype=dtype or xs[0].dtype)


def _check_same(name: str, a: Tensor, b: Tensor) -> None:
    if a.dtype is not b.dtype:
        raise TypeMismatch(f"{name} takes two tensors of one type, not {a.dtype} and {b.dtype}")


def _define_binary(
    name: str,
    fn: Callable[..., Expr],
    dtype: DType | None = None,
    integers: Callable[..., Expr] | None = None,
    fold: Fold | None = None,
) -> None:
    """Registers the operator that applies *fn* (*integers* to integer tensors) element by element, evaluated by *fold*."""

    def build(a: Tensor, b: Tensor) -> Tensor:
        _check_same(name, a, b)
        used = integers if integers is not None and a.dtype.is_int else fn
        return map_tensors(name, used, a, b, dtype=dtype)

    OPERATORS[name] = Operator(name, build, fold=fold)


def _quotient(x: Expr, y: Expr) -> Expr:
    """Divides integers, rounded towards zero; by zero the result is zero, as NumPy's, where a processor would stop."""
    negated = select(eq(y, -1), -x, TruncDiv(x, _divisor(y))) if y.dtype.kind == "int" else TruncDiv(x, _divisor(y))
    return select(eq(y, 0), const(0, x.dtype), negated)


def _remainder(cls: type[Binary]) -> Callable[[Expr, Expr], Expr]:
    """Returns the remainder of integers that *cls* leaves; of a division by zero it is zero."""
    return lambda x, y: cls(x, _divisor(y))


def _divisor(y: Expr) -> Expr:
    """Returns one for divisors that a processor may stop at: zero, and -1, which the smallest integer has no quotient by."""
    stops = eq(y, 0) | eq(y, -1) if y.dtype.kind == "int" else eq(y, 0)
    return select(stops, const(1, y.dtype), y)


def _define_unary(name: str, fn: Callable[[Expr], Expr], dtype: DType | None = None, fold: Fold | None = None) -> None:
    """Registers the operator that applies *fn* element by element, evaluated by *fold*."""

    def build(x: Tensor) -> Tensor:
        return map_tensors(name, fn, x, dtype=dtype)

    OPERATORS[name] = Operator(name, build, fold=fold)


def _smaller(a: Any, b: Any) -> Expr:
    return minimum(as_expr(a, INDEX), as_expr(b, INDEX))


def _larger(a: Any, b: Any) -> Expr:
    return maximum(as_expr(a, INDEX), as_expr(b, INDEX))


_MINIMUM: Final = elementwise(np.minimum, _smaller)
_MAXIMUM: Final = elementwise(np.maximum, _larger)


def _itself(a: Any) -> Any:
    """Rounds a size, which is a whole number."""
    return a


_define_binary("add", Add, fold=elementwise(np.add, lambda a, b: a + b))
_define_binary("sub", Sub, fold=elementwise(np.subtract, lambda a, b: a - b))
_define_binary("mul", Mul, fold=elementwise(np.multiply, lambda a, b: a * b))
_define_binary("minimum", Min, fold=_MINIMUM)
_define_binary("maximum", Max, fold=_MAXIMUM)
_define_binary("bit_and", BitAnd)
_define_binary("bit_or", BitOr)
_define_binary("bit_xor", BitXor)
_define_binary("logical_and", And, fold=elementwise(np.logical_and))
_define_binary("logical_or", Or, fold=elementwise(np.logical_or))
_define_binary("div", Div, integers=_quotient, fold=elementwise(divide, divide_sizes, divide_exactly))
_define_binary("trunc_mod", TruncMod, integers=_remainder(TruncMod), fold=elementwise(np.fmod, remainder_of_sizes))
_define_binary("less", Lt, bool_, fold=comparison(np.less, Lt))
_define_binary("less_equal", Le, bool_, fold=comparison(np.less_equal, Le))
_define_binary("equal", Eq, bool_, fold=comparison(np.equal, eq))


@operator("logical_not", fold=elementwise(np.logical_not))
def logical_not(x: Tensor) -> Tensor:
    """Negates bools."""
    if not x.dtype.is_bool:
        raise TypeMismatch(f"logical_not takes bools, not {x.dtype}")
    return map_tensors("logical_not", Not, x)


@operator("logical_xor")
def logical_xor(a: Tensor, b: Tensor) -> Tensor:
    """Tells where just one of two bools holds."""
    return map_tensors("logical_xor", ne, a, b, dtype=bool_)


def _tanh_of_softplus(x: Expr) -> Expr:
    """`tanh(log(1 + e^x))` is `n / (n + 2)` with `n = e^x (e^x + 2)`; both by `e^-x` where that is no larger."""
    e, positive = apply("exp", -apply("abs", x)), x > 0
    n = select(positive, e * 2 + 1, e * (e + 2))
    return n / (n + select(positive, e * e * 2, const(2, x.dtype)))


for _name in ("exp", "log", "rsqrt", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
              "acosh", "atanh", "sigmoid"):  # fmt: skip
    _define_unary(_name, lambda x, fn=_name: apply(fn, x))  # type: ignore[misc]
_define_unary("sqrt", lambda x: apply("sqrt", x), fold=elementwise(np.sqrt))
_define_unary("floor", lambda x: apply("floor", x), fold=elementwise(np.floor, _itself))
_define_unary("ceil", lambda x: apply("ceil", x), fold=elementwise(np.ceil, _itself))
_define_unary("round", lambda x: apply("round_even", x), fold=elementwise(np.rint, _itself))
_define_unary("abs", lambda x: apply("abs", x), fold=elementwise(np.abs, absolute_size))
_define_unary("neg", lambda x: -x, fold=elementwise(np.negative, lambda a: -a))
_define_unary("bit_not", Not)
_define_unary("reciprocal", lambda x: 1 / x, fold=elementwise(np.reciprocal))
_define_unary("relu", lambda x: maximum(x, 0))
_define_unary("is_nan", lambda x: apply("is_nan", x), bool_)
_define_unary("is_inf", lambda x: apply("is_inf", x), bool_)
_define_unary("sign", lambda x: select(x > 0, const(1, x.dtype), select(x < 0, const(-1, x.dtype), x * 0)))
_define_unary("softsign", lambda x: x / (apply("abs", x) + 1))
_define_unary("softplus", lambda x: maximum(x, 0) + apply("log1p", apply("exp", -apply("abs", x))))
_define_unary("softplus_tanh", _tanh_of_softplus)
_define_unary("square", lambda x: x * x, fold=elementwise(np.square, lambda a: a * a))


@operator("power", fold=elementwise(np.power))
def power(a: Tensor, b: Tensor) -> Tensor:
    """Raises *a* to *b*; the exponent may be of another type, and the result is of the type of *a*."""

    def raised(x: Expr, y: Expr) -> Expr:
        if x.dtype.is_float:
            return apply("pow", x, cast_expr(y, x.dtype))
        if y.dtype.is_float:
            return cast_expr(apply("pow", cast_expr(x, f64), cast_expr(y, f64)), x.dtype)
        return _integer_power(x, cast_expr(y, x.dtype))

    return map_tensors("power", raised, a, b)


def _integer_power(x: Expr, y: Expr) -> Expr:
    """Raises by repeated squaring; exponents above 63 are right where x is 0, 1 or -1, for others the result overflows."""
    one = const(1, x.dtype)
    result = one
    for bit in range(6):
        result = select(ne(BitAnd(ShiftRight(y, const(bit, y.dtype)), one), 0), result * x, result)
        x = x * x
    return result


@operator("floor_mod", fold=elementwise(np.mod, remainder_of_sizes))
def floor_mod(a: Tensor, b: Tensor) -> Tensor:
    """Returns the remainder of a division rounded down, with the divisor's sign."""
    _check_same("floor_mod", a, b)

    def of_floats(x: Expr, y: Expr) -> Expr:
        r = apply("fmod", x, y)
        return select(ne(r, 0.0) & ne(r < 0, y < 0), r + y, r)

    return map_tensors("floor_mod", _remainder(FloorMod) if a.dtype.is_int else of_floats, a, b)


def _within(amount: Expr) -> Expr:
    """Tells whether a shift leaves any of the bits."""
    return (amount >= 0) & (amount < amount.dtype.bits)


@operator("shift_left")
def shift_left(a: Tensor, b: Tensor) -> Tensor:
    """Shifts the bits of *a* to the left; a negative amount, or one as large as the type, leaves none."""
    _check_same("shift_left", a, b)
    return map_tensors("shift_left", lambda x, n: select(_within(n), ShiftLeft(x, n), x ^ x), a, b)


@operator("shift_right")
def shift_right(a: Tensor, b: Tensor) -> Tensor:
    """Shifts the bits of *a* to the right, keeping the sign; a negative amount, or one as large as the type, leaves only that."""
    _check_same("shift_right", a, b)

    def shifted(x: Expr, n: Expr) -> Expr:
        rest = ShiftRight(x, const(x.dtype.bits - 1, x.dtype)) if x.dtype.kind == "int" else x ^ x
        return select(_within(n), ShiftRight(x, n), rest)

    return map_tensors("shift_right", shifted, a, b)


@operator("bit_cast", reads_bits=True)
def bit_cast(x: Tensor, *, dtype: DType) -> Tensor:
    """Reads the bits of the elements as *dtype*, of the same width in memory."""
    convert = Cast if x.dtype.is_bool or dtype.is_bool else Reinterpret
    return map_tensors("bit_cast", lambda e: e if e.dtype is dtype else convert(e, dtype), x, dtype=dtype)


@operator("float_mod")
def float_mod(a: Tensor, b: Tensor) -> Tensor:
    """Returns the remainder of a division rounded towards zero, of floats."""
    return map_tensors("float_mod", lambda x, y: apply("fmod", x, y), a, b)


@operator("identity", fold=Fold(lambda a: a))
def identity(x: Tensor) -> Tensor:
    """Returns *x*."""
    return map_tensors("identity", lambda e: e, x)


def _fold_cast(a: Array, *, dtype: DType) -> Array:
    if a.dtype == object and not (dtype.is_float or (dtype.is_int and dtype.bits >= 32)):
        raise NotFoldable
    return a if a.dtype == object else a != 0 if dtype.is_bool else a.astype(dtype.numpy)


@operator("cast", fold=Fold(_fold_cast, typed_by=None))
def cast(x: Tensor, *, dtype: DType) -> Tensor:
    """Converts the elements to *dtype*: floats to integers towards zero, anything to bool by `!= 0`."""
    return map_tensors("cast", lambda e: e if e.dtype is dtype else Cast(e, dtype), x, dtype=dtype)


@operator("leaky_relu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    """Returns x where it is positive, else `alpha * x`."""
    return map_tensors("leaky_relu", lambda e: select(e < 0, e * alpha, e), x)


@operator("thresholded_relu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Returns x where it is above *alpha*, else zero."""
    return map_tensors("thresholded_relu", lambda e: select(e > alpha, e, const(0, e.dtype)), x)


@operator("elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Returns x where it is positive, else `alpha * (exp(x) - 1)`."""
    return map_tensors("elu", lambda e: select(e < 0, apply("expm1", e) * alpha, e), x)


@operator("selu")
def selu(x: Tensor, *, alpha: float, gamma: float) -> Tensor:
    """Returns `gamma * x` where x is positive, else `gamma * alpha * (exp(x) - 1)`."""
    return map_tensors("selu", lambda e: select(e < 0, apply("expm1", e) * alpha, e) * gamma, x)


@operator("hard_sigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """Returns `alpha * x + beta`, kept between 0 and 1."""
    return map_tensors("hard_sigmoid", lambda e: minimum(maximum(e * alpha + beta, 0), 1), x)


@operator("gelu")
def gelu(x: Tensor, *, approximate: bool = False) -> Tensor:
    """Returns `x * P(X <= x)` for a standard normal X (Hendrycks and Gimpel, 2016), exactly or by their tanh formula."""

    def exact(e: Expr) -> Expr:
        return e * 0.5 * (apply("erf", e * 0.7071067811865476) + 1)

    def by_tanh(e: Expr) -> Expr:
        return e * 0.5 * (apply("tanh", (e + e * e * e * 0.044715) * 0.7978845608028654) + 1)

    return map_tensors("gelu", by_tanh if approximate else exact, x)


def _fold_clip(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    made = x if low is None else _MAXIMUM.compute(x, low)
    return made if high is None else _MINIMUM.compute(made, high)


@operator("clip", fold=Fold(_fold_clip, on_sizes=True, takes_absent=True))
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Keeps the elements between *low* and *high*, both scalars, either of which may be absent."""
    bounds = [b for b in (low, high) if b is not None]
    if any(b.dtype is not x.dtype for b in bounds):
        raise TypeMismatch("clip takes bounds of the tensor's own type")
    if any(b.rank for b in bounds):
        raise TypeMismatch("clip takes bounds that are scalars")

    def clipped(*i: Expr) -> Expr:
        e = x[i] if low is None else maximum(x[i], at_broadcast(low, i, x.shape))
        return e if high is None else minimum(e, at_broadcast(high, i, x.shape))

    return compute(x.shape, clipped, "clip", dtype=x.dtype)


@operator("prelu")
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """Returns x where it is positive, else `slope * x`; *slope* broadcasts to *x*."""
    return map_tensors("prelu", lambda e, s: select(e < 0, e * s, e), x, slope)


def _fold_where(cond: Array, a: Array, b: Array) -> Array:
    check_spread(cond, a, b)
    return np.where(cond.astype(np.bool_), a, b)


@operator("where", fold=Fold(_fold_where, typed_by=1, on_sizes=True))
def where(cond: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Chooses the elements of *a* where *cond* holds, else those of *b*."""
    _check_same("where", a, b)
    return map_tensors("where", select, cond, a, b, dtype=a.dtype)


@operator("scale_and_shift")
def scale_and_shift(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Returns `x * scale + shift`; *scale* and *shift* broadcast to *x*."""
    return map_tensors("scale_and_shift", lambda e, s, t: e * s + t, x, scale, shift)


@operator("multiply_add")
def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Returns `a * b + c` of floats, rounded once where the target can (FMA), else twice; they broadcast together."""
    return map_tensors("multiply_add", lambda x, y, z: apply("fma", x, y, z), a, b, c)


@operator("batch_norm")
def batch_norm(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """Normalises each channel (dimension 1) by given statistics (Ioffe and Szegedy, 2015)."""

    for what, v in {"scale": scale, "bias": bias, "mean": mean, "variance": var}.items():
        check_shape(f"batch_norm: the {what}", v.shape, x.shape[1:2])

    def normalised(*i: Expr) -> Expr:
        c = i[1]
        return (x[i] - mean[c]) * (scale[c] / apply("sqrt", var[c] + epsilon)) + bias[c]

    return compute(x.shape, normalised, "batch_norm", dtype=x.dtype)
