"""The derivative of a scalar expression: one row for each operator and each intrinsic.

    derivative(x[i] * exp(x[i]), x[i], seed)       is       seed * exp(x[i]) + x[i] * (seed * exp(x[i]))

A row takes the expression and the tangents of its operands, of which None stands for zero, and returns its tangent. Where a
function has no derivative, as `abs` at zero, it is that of one side, or zero. Operands that are no floats, and functions that
round, have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from weft import ir
from weft.ir import Expr, Node, apply, cast, const, eq, select
from weft.support.errors import GradientError

Tangent: TypeAlias = "Expr | None"
Row: TypeAlias = Callable[..., Tangent]


def derivative(root: Expr, of: Expr, seed: Expr) -> Tangent:
    """Returns how *root* changes when *of*, an expression in it, changes by *seed*; None if it does not."""
    tangents: dict[Node, Tangent] = {of: seed}
    stack: list[Expr] = [root]
    while stack:
        e = stack[-1]
        if e in tangents:
            stack.pop()
            continue
        operands = [k for k in e.children() if isinstance(k, Expr)] if _is_smooth(e) else []
        if todo := [k for k in operands if k not in tangents]:
            stack += todo
            continue
        stack.pop()
        tangents[e] = _tangent(e, [tangents[k] for k in operands])
    return tangents[root]


def _is_smooth(e: Expr) -> bool:
    """Tells whether the value of *e* may change continuously with the values of its operands."""
    return e.dtype.is_float and not isinstance(e, _LEAVES)


def _tangent(e: Expr, operands: list[Tangent]) -> Tangent:
    if all(t is None for t in operands):
        return None
    if isinstance(e, ir.Apply):
        row = INTRINSIC_ROWS.get(e.fn)
        arguments: tuple[Expr, ...] = e.args
    else:
        row, arguments = OPERATOR_ROWS.get(type(e)), ()
    if row is None:
        name = e.fn if isinstance(e, ir.Apply) else type(e).__name__
        raise GradientError(f"there is no derivative of {name}", hint="give it a row in te/derivatives.py")
    return row(e, *arguments, *operands)


# Tangents: None is zero


def plus(a: Tangent, b: Tangent) -> Tangent:
    """Returns `a + b`."""
    if a is None or b is None:
        return a if b is None else b
    return a + b


def minus(a: Tangent, b: Tangent) -> Tangent:
    """Returns `a - b`."""
    if a is None or b is None:
        return a if b is None else -b
    return a - b


def times(t: Tangent, factor: Expr | float) -> Tangent:
    """Returns `t * factor`."""
    return None if t is None else t * factor


def over(t: Tangent, divisor: Expr) -> Tangent:
    """Returns `t / divisor`."""
    return None if t is None else t / divisor


def choose(cond: Expr, a: Tangent, b: Tangent) -> Tangent:
    """Returns *a* where *cond* holds, else *b*."""
    if a is None and b is None:
        return None
    like = b if a is None else a
    zero = const(0, like.dtype) if like is not None else None
    return select(cond, zero if a is None else a, zero if b is None else b)  # type: ignore[arg-type]


def _power(e: Expr, a: Expr, b: Expr, da: Tangent, db: Tangent) -> Tangent:
    """b a**(b - 1) da + log(a) a**b db; where b is zero, or a is not positive, the term that has no value is left out."""
    base = None if da is None else da * b * apply("pow", a, b - 1.0)
    if not isinstance(b, ir.Const):
        base = choose(eq(b, 0.0), None, base)
    return plus(base, choose(a > 0.0, times(db, apply("log", a) * e), None))


def _root_of(e: Expr) -> Expr:
    return apply("sqrt", e)


def _sign(x: Expr) -> Expr:
    return apply("copysign", const(1.0, x.dtype), x)


OPERATOR_ROWS: Final[dict[type[Expr], Row]] = {
    ir.Add: lambda e, a, b: plus(a, b),
    ir.Sub: lambda e, a, b: minus(a, b),
    ir.Mul: lambda e, a, b: plus(times(a, e.b), times(b, e.a)),
    ir.Div: lambda e, a, b: minus(over(a, e.b), over(times(b, e), e.b)),
    ir.Max: lambda e, a, b: choose(e.b < e.a, a, b),
    ir.Min: lambda e, a, b: choose(e.a < e.b, a, b),
    ir.Neg: lambda e, a: minus(None, a),
    ir.Cast: lambda e, a: cast(a, e.dtype),
    ir.Select: lambda e, _, a, b: choose(e.cond, a, b),
}

_LOG2: Final = math.log(2.0)
INTRINSIC_ROWS: Final[dict[str, Row]] = {
    "exp": lambda e, x, t: t * e,
    "exp_flushed": lambda e, x, t: t * e,
    "exp2": lambda e, x, t: t * (e * _LOG2),
    "exp2_flushed": lambda e, x, t: t * (e * _LOG2),
    "expm1": lambda e, x, t: t * apply("exp", x),
    "log": lambda e, x, t: t / x,
    "log2": lambda e, x, t: t / (x * _LOG2),
    "log1p": lambda e, x, t: t / (x + 1.0),
    "sqrt": lambda e, x, t: t * 0.5 / e,
    "rsqrt": lambda e, x, t: t * -0.5 * e / x,
    "sin": lambda e, x, t: t * apply("cos", x),
    "cos": lambda e, x, t: -(t * apply("sin", x)),
    "tan": lambda e, x, t: t * (e * e + 1.0),
    "asin": lambda e, x, t: t / _root_of(1.0 - x * x),
    "acos": lambda e, x, t: -(t / _root_of(1.0 - x * x)),
    "atan": lambda e, x, t: t / (x * x + 1.0),
    "sinh": lambda e, x, t: t * apply("cosh", x),
    "cosh": lambda e, x, t: t * apply("sinh", x),
    "tanh": lambda e, x, t: t * (1.0 - e * e),
    "asinh": lambda e, x, t: t / _root_of(x * x + 1.0),
    "acosh": lambda e, x, t: t / _root_of(x * x - 1.0),
    "atanh": lambda e, x, t: t / (1.0 - x * x),
    "sigmoid": lambda e, x, t: t * (e * (1.0 - e)),
    "erf": lambda e, x, t: t * (apply("exp", -(x * x)) * (2.0 / math.sqrt(math.pi))),
    "abs": lambda e, x, t: choose(x < 0.0, -t, choose(x > 0.0, t, None)),
    "copysign": lambda e, a, b, da, db: times(da, _sign(a) * _sign(b)),
    "pow": _power,
    "fma": lambda e, a, b, c, da, db, dc: plus(plus(times(da, b), times(db, a)), dc),
    "ldexp": lambda e, x, n, dx, dn: None if dx is None else apply("ldexp", dx, n),
    "rounded": lambda e, x, t: t,
    "max_number": lambda e, a, b, da, db: choose(b < a, da, db),
    "fmod": lambda e, a, b, da, db: minus(da, times(db, apply("trunc", a / b))),
    **dict.fromkeys(("floor", "ceil", "trunc", "round_even", "round_away", "round_tf32"), lambda e, x, t: None),
}

_LEAVES: Final = (ir.Const, ir.Var)
