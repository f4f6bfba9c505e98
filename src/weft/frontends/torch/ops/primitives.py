"""Operators of `aten` under other names: primitives of PyTorch's decompositions (`prims`), and layers kept whole (`weft`)."""

from __future__ import annotations

from typing import Final

_SAME: Final = (
    *(
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "cosh",
        "erfc",
        "exp2",
        "expm1",
        "fmax",
        "fmin",
    ),
    *("hypot", "lgamma", "log10", "log1p", "log2", "round", "signbit", "sinh", "tan", "trunc"),
)
_SAME_OF_TENSORS: Final = ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or")
RECURRENT: Final = ("rnn_relu", "rnn_tanh", "gru", "lstm")
"""Recurrent layers, on sequences of one length."""

AS_ATEN: Final = {
    **{f"prims.{name}.default": f"aten.{name}.default" for name in _SAME},
    **{f"prims.{name}.default": f"aten.{name}.Tensor" for name in _SAME_OF_TENSORS},
    **{f"weft.{name}.default": f"aten.{name}.input" for name in RECURRENT},
}
"""Operators that compute the same as these of `aten`, by arguments of the same names."""
