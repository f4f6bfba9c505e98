"""Arithmetic, logic and functions, element by element."""

from __future__ import annotations

import torch
from tests.frontends.torch.cases.tensors import BOOLS, INTS, POSITIVE, A, Case, F, X, Y

CASES: dict[str, Case] = {
    **{
        name: (getattr(torch, name), [X])
        for name in (
            "abs",
            "neg",
            "exp",
            "floor",
            "ceil",
            "round",
            "erf",
            "sign",
            "sin",
            "cos",
            "tanh",
            "sigmoid",
            "relu",
            "isnan",
            "isinf",
            "reciprocal",
        )
    },
    **{name: (getattr(torch, name), [POSITIVE]) for name in ("log", "sqrt", "rsqrt")},
    **{
        name: (getattr(torch, name), [X, Y])
        for name in ("mul", "div", "minimum", "maximum", "eq", "ne", "lt", "le", "gt", "ge")
    },
    "numbers": (
        lambda x: (x * 2.5, x / 3, x > 0.5, x == 0, x != 1, x < 1, x <= 0.5, x >= 0, 1 - x, x - 0.5, x + 2),
        [X],
    ),
    "scalar overloads": (
        lambda x: (
            A.mul.Scalar(x, 2),
            A.div.Scalar(x, 4),
            A.add.Scalar(x, 1, 3),
            A.sub.Scalar(x, 1, 3),
            A.rsub.Tensor(x, x, alpha=2),
        ),
        [X],
    ),
    "alpha": (lambda x, y: (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=0.5), torch.rsub(x, 3, alpha=2)), [X, Y]),
    "promoted": (
        lambda x, n: (x * n, n / 2, n + 1.5, n > 0.5, torch.add(n, n, alpha=3), torch.exp(n)),
        [X[:2, :2], INTS],
    ),
    "pow": (lambda x, y: (x**2, x**0.5, x**y), [POSITIVE, Y]),
    "logic": (
        lambda a, n: (
            ~a,
            a & ~a,
            a | ~a,
            torch.logical_not(a),
            torch.logical_and(a, a),
            torch.logical_or(a, a),
            ~n,
            n & 3 * n,
            n | 2 * n,
            A.bitwise_and.Tensor(n, n),
            A.bitwise_or.Tensor(n, n),
        ),
        [BOOLS, INTS],
    ),
    "where": (lambda a, x, y: (torch.where(a, x, y), x.masked_fill(a, -1.0)), [BOOLS, X, Y]),
    "clamp": (lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), F.hardtanh(x), F.relu6(x * 9)), [X]),
    "activations": (
        lambda x: (
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.silu(x),
            F.mish(x),
            F.hardswish(x),
            F.hardsigmoid(x),
            F.leaky_relu(x, 0.2),
        ),
        [X],
    ),
    **{
        name: (getattr(torch, name), [(X / 4).clamp(-0.9, 0.9)])
        for name in (
            "acos",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "sinh",
            "cosh",
            "tan",
            "square",
            "log1p",
            "expm1",
            "exp2",
            "erfc",
            "trunc",
        )
    },
    "functions of positive numbers": (
        lambda x: (
            torch.acosh(x + 1),
            torch.log2(x),
            torch.log10(x),
            A.special_erfc(x),
            A.fix(x * 9),
            torch.ops.prims.cbrt(-x),
        ),
        [POSITIVE],
    ),
    "logic of numbers": (
        lambda x, n: (
            torch.logical_and(x, x - x),
            torch.logical_or(x, x - x),
            torch.logical_xor(x, x - x),
            torch.logical_not(x),
            n ^ 5,
            n ^ (2 * n),
            A.__and__.Tensor(n, n + 1),
            A.__or__.Scalar(n, 4),
            A.bitwise_xor.Scalar(n, 4),
            A.bitwise_or.Scalar(n, 4),
            A.bitwise_and.Scalar(n, 4),
            A.__and__.Scalar(n, 4),
            A.__or__.Tensor(n, n + 1),
            A.__xor__.Tensor(n, n + 1),
            A.__xor__.Scalar(n, 4),
            A.bitwise_xor.Tensor(n, n + 1),
            torch.signbit(x),
            torch.copysign(x, -x),
            A.copysign.Scalar(x, -1.0),
        ),
        [X[:2, :2], INTS],
    ),
    "divided": (
        lambda x, y, n, m: (
            torch.div(x, y, rounding_mode="floor"),
            torch.div(n, m, rounding_mode="trunc"),
            torch.div(x, y, rounding_mode="trunc"),
            A.div.Scalar_mode(x, 0.3, rounding_mode="floor"),
            torch.floor_divide(n, m),
            A.floor_divide.Scalar(n, 2) if hasattr(A.floor_divide, "Scalar") else n,
            torch.fmod(x, y),
            torch.fmod(n, 2),
            torch.remainder(x, y),
            torch.remainder(n, -2),
            A.remainder.Scalar_Tensor(5, m),
            torch.atan2(x, y),
            torch.hypot(x, y),
            torch.fmax(x, y),
            torch.fmin(n, m),
            A.bitwise_left_shift.Tensor(n, m.abs()),
            A.__lshift__.Tensor(n, m.abs()),
            A.__lshift__.Scalar(n, 2),
        ),
        [X[:2, :2], Y[:2, :2], INTS, torch.tensor([[2, 3], [-2, 5]])],
    ),
    "more functions": (
        lambda x, y: (
            torch.ops.prims.pow(x.abs(), y),
            torch.round(x, decimals=1),
            torch.round(x * 100, decimals=-1),
            torch.angle(x),
            torch.lgamma(x * 3),
            A._cdist_forward(x, y, 2.0, None),
            A._cdist_forward(x, y, 3.0, None),
            A._cdist_forward(x, y, float("inf"), None),
            torch.addbmm(x[:, :3], x[None], y.t()[None], beta=0.5, alpha=2.0),
            torch.searchsorted(x.sort(1)[0], y),
            torch.searchsorted(x.sort(1)[0], x, right=True),
            x.masked_scatter(x > 0, y),
        ),
        [X, Y],
    ),
    "chosen by truth": (
        lambda a, x: (
            A.where.ScalarOther(a, x, 2.0),
            A.where.ScalarSelf(a, 2.0, x),
            A.where.Scalar(a, 2.0, 1.0),
            A.masked_fill.Tensor(x, a, torch.tensor(3.0)),
            a + a,
            a * a,
            torch.maximum(a, ~a),
            torch.minimum(a, ~a),
        ),
        [BOOLS, X],
    ),
    "parts of floats": (
        lambda x, y: (
            *torch.frexp(x),
            *torch.frexp(x.double() * 1e-310),
            torch.nextafter(x, y),
            torch.nextafter(y, x),
            torch.nextafter(x.double(), y.double()),
            *torch.ops.prims.frexp(x),
            torch.ops.prims.nextafter(x, y),
            A.true_divide.Tensor(x, y),
        ),
        [
            torch.tensor([0.0, -0.0, 1.5, -3.0, 1e-45, 3e38, float("inf"), float("nan"), 0.5]),
            torch.tensor([1.0, -1.0, 1.5, 2.0, 0.0, float("inf"), 0.0, 1.0, float("nan")]),
        ],
    ),
}
