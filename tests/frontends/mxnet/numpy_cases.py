"""Cases for `make_cases` of operators of `mxnet.np`, and of others that are named as few networks have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.frontends.mxnet.named_cases import named

RNG = np.random.default_rng(4)
ODD = [np.nan, np.inf, -np.inf, 1.5, -2.5, 0.0]


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def u(*shape: int) -> Any:
    return RNG.uniform(0.1, 0.9, shape)


for _name in ("cbrt", "expm1", "log1p", "log2", "log10", "arccos", "arcsin", "arctan", "arctanh", "arcsinh"):
    named(f"_npi_{_name}", u(3, 4))
named("_npi_arccosh", u(3, 4) + 1)
for _name in ("rint", "fix", "trunc"):
    named(f"_npi_{_name}", [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1.2, -1.7])
for _name in ("degrees", "radians", "_npi_degrees", "_npi_radians", "_contrib_sign_ste", "_contrib_round_ste"):
    named(_name, f(3, 4) * 2)
named("_npi_around", [0.5, 1.5, 2.5, -0.5, -1.5, 1.2, -1.7], decimals=0)
named("_npi_around.decimals", f(3, 4), decimals=1)
for _name in ("isnan", "isinf", "isposinf", "isneginf", "isfinite", "logical_not"):
    named(f"_npi_{_name}", ODD)
named("_npi_nan_to_num", ODD, copy=True)
named("_npi_nan_to_num.given", ODD, copy=True, nan=2.0, posinf=7.0, neginf=-8.0)
for _name in ("arctan2", "copysign", "hypot", "ldexp"):
    named(f"_npi_{_name}", f(3, 4), f(1, 4))
for _name in ("arctan2", "copysign", "ldexp"):
    named(f"_npi_{_name}_scalar", f(3, 4), scalar=-0.7)
    named(f"_npi_r{_name}_scalar", f(3, 4), scalar=-0.7)
named("broadcast_hypot", f(3, 4), f(1, 4))
named("_hypot", f(3, 4), f(3, 4))
named("_hypot_scalar", f(3, 4), scalar=1.5)
for _name in ("and", "or", "xor"):
    named(f"_logical_{_name}_scalar", [0, 1, 2, 0], scalar=2.0)
for _name in ("argmax", "argmin"):
    named(f"_npi_{_name}", f(3, 4), axis=1)
    named(f"_npi_{_name}.kept", f(3, 4), axis=0, keepdims=True)
for _name in ("var", "std"):
    named(f"_npi_{_name}", f(3, 4, 2), axis=(0, 2))
    named(f"_npi_{_name}.ddof", f(3, 4, 2), axis=1, ddof=1, keepdims=True)
for _name in ("any", "all"):
    named(f"_np_{_name}", [[0, 1, 0], [0, 0, 0], [1, 2, 3]], axis=1)
named("nansum", [[np.nan, 2, 3], [1, 2, np.nan]], axis=1)
named("nanprod", [[np.nan, 2, 3], [1, 2, np.nan]])
named("moments", f(3, 4, 2), outputs=2, axes=(0, 2))
named("moments.kept", f(3, 4, 2), outputs=2, axes=(1,), keepdims=True)
named("gamma", [0.3, 1.0, 2.5, 6.2, -0.5, -1.5, -2.3])
named("gammaln", [0.3, 1.0, 2.5, 6.2, 20.0])
named("_contrib_quadratic", f(3, 4), a=1.5, b=-0.5, c=2.0)
named("softmax_cross_entropy", f(3, 4), [0, 3, 1])
named("_contrib_BatchNormWithReLU", f(2, 8, 3, 4), f(8), f(8), f(8), u(8), fix_gamma=False)

named("_npi_matmul", f(2, 1, 3, 4), f(5, 4, 2))
named("_npi_matmul.vector", f(2, 3, 4), f(4))
named("_np_dot", f(2, 3, 4), f(5, 4, 2))
named("_np_dot.vector", f(2, 3, 4), f(4))
named("_npi_tensordot", f(2, 3, 4), f(4, 5, 3), a_axes_summed=(1, 2), b_axes_summed=(2, 0))
named("_npi_tensordot_int_axes", f(2, 3, 4), f(3, 4, 5), axes=2)
named("_npi_einsum", f(2, 3, 4), f(2, 5, 4), num_args=2, subscripts="bij,bkj->bik")
named("_npi_flip", f(2, 3, 4), axis=(0, 2))
named("_npi_flip.all", f(2, 3), axis=None)
named("_np_roll", f(3, 4), shift=(1, -2), axis=(0, 1))
named("_np_roll.flat", f(3, 4), shift=5)
named("_np_moveaxis", f(2, 3, 4, 5), source=(0, 3), destination=(2, 0))
for _name in ("vstack", "hstack", "dstack", "column_stack"):
    named(f"_npi_{_name}", f(2, 3), f(2, 3), num_args=2)
    named(f"_npi_{_name}.vectors", f(3), f(3), num_args=2)
for _name in ("1d", "2d", "3d"):
    named(f"_np_atleast_{_name}", f(3), f(2, 3), outputs=2, num_args=2)
named("_npi_tril", f(2, 3, 4), k=-1)
named("_npi_eye", N=3, M=4, k=1)
named("_eye", N=3, M=0, k=-1)
named("_npi_identity", shape=(3, 3))
named("_npi_zeros", shape=(2, 3))
named("_npi_ones", shape=(2, 3))
named("_npi_arange", start=1, stop=8, step=2.5)
named("_npi_full_like", f(2, 3), fill_value=2.5)
named("_linspace", start=1, stop=3, num=5)
named("_linspace.open", start=1, stop=3, num=5, endpoint=False)
named("_np_diag", f(3, 4), k=1)
named("_np_diag.vector", f(3), k=-1)
named("diag", f(3, 4), k=-1)
named("diag.axes", f(2, 3, 4), axis1=0, axis2=2)
named("diag.vector", f(3))
named("_np_diagflat", f(2, 2), k=1)
named("_np_diagonal", f(2, 3, 4), offset=1, axis1=1, axis2=2)
named("_np_trace", f(3, 3, 2))
named("_npi_diff", f(3, 5), n=2, axis=1)
named("scatter_nd", f(2), [[1, 0], [0, 2]], shape=(2, 3))
named("_ravel_multi_index", [[1, 0, 1], [2, 1, 0]], shape=(2, 3))
named("MakeLoss", f(3, 4))
named("_identity_with_attr_like_rhs", f(3, 4), f(3, 4))
