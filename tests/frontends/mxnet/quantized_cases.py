"""Cases for `make_cases` of operators on quantised tensors: bytes, and their ranges as two further inputs each."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

RNG = np.random.default_rng(2)
QUANTIZED: dict[str, tuple[Any, dict[str, Any]]] = {}
"""A symbol and its inputs by the name of the case."""
C = mx.sym.contrib
I8, U8 = np.int8, np.uint8


def case(name: str, operator: Any, *inputs: Any, **attributes: Any) -> None:
    """Enters a call of an operator with inputs, which are variables a, b, c ... of their types, and attributes."""
    assert name not in QUANTIZED, name
    given = {chr(97 + k): np.asarray(v) for k, v in enumerate(inputs)}
    variables = [mx.sym.var(n, dtype=v.dtype) for n, v in given.items()]
    QUANTIZED[name] = (operator(*variables, **attributes), given)


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def q(dtype: Any, *shape: int) -> Any:
    """Bytes; signed ones are none below -127."""
    return RNG.integers(-127 if dtype is I8 else 0, 128 if dtype is I8 else 256, shape).astype(dtype)


def ends(*numbers: float) -> list[Any]:
    """Ranges, as vectors of one number each."""
    return [np.array([v], np.float32) for v in numbers]


def plain(operator: Any) -> Any:
    """Returns a layer without a bias."""
    names = ("data", "weight", "min_data", "max_data", "min_weight", "max_weight")
    return lambda *given, **attributes: operator(**dict(zip(names, given)), **attributes)  # noqa: B905 (Python 3.8 runs this)


case("quantize_v2", C.quantize_v2, f(3, 4))
case("quantize_v2.range", C.quantize_v2, f(2, 3, 4, 5), min_calib_range=-1.5, max_calib_range=1.2)
case("quantize_v2.auto", C.quantize_v2, f(3, 4), out_type="auto", min_calib_range=0.0, max_calib_range=1.2)
case("quantize_v2.unsigned", C.quantize_v2, f(3, 4), out_type="uint8")
case("quantize_v2.bytes", C.quantize_v2, q(I8, 3, 4))
case("quantize", C.quantize, f(2, 3, 4, 5), *ends(-1.5, 1.2), out_type="int8")
case("quantize.unsigned", C.quantize, f(3, 4), *ends(-0.5, 1.2))
case("quantize_asym", C.quantize_asym, f(2, 3, 4))
case("quantize_asym.range", C.quantize_asym, f(2, 3, 4), min_calib_range=-3.0, max_calib_range=4.0)
for _type in (I8, U8):
    case(f"dequantize.{_type.__name__}", C.dequantize, q(_type, 3, 4), *ends(-0.3, 1.5))
SUMS = RNG.integers(-30000, 30000, (2, 3, 4, 5)).astype(np.int32)
case("requantize", C.requantize, SUMS, *ends(-9e4, 9e4))
case("requantize.range", C.requantize, SUMS, *ends(-9e4, 9e4), min_calib_range=-0.7, max_calib_range=0.9)
case(
    "requantize.auto",
    C.requantize,
    SUMS,
    *ends(-9e4, 9e4),
    out_type="auto",
    min_calib_range=0.0,
    max_calib_range=0.9,
)

IMAGE, FILTERS, BIAS = q(U8, 2, 3, 6, 5), q(I8, 4, 3, 3, 2), q(I8, 4)
WINDOW = {"kernel": (3, 2), "num_filter": 4, "pad": (1, 0), "stride": (2, 1)}
case("q.conv", C.quantized_conv, IMAGE, FILTERS, BIAS, *ends(0, 2.5, -1, 0.9, -0.2, 0.1), **WINDOW)
case("q.conv.plain", plain(C.quantized_conv), IMAGE, FILTERS, *ends(0, 2.5, -1, 0.9), no_bias=True, **WINDOW)
_ranges = ends(-1.5, 2.5, -1, 0.9, -3, 2)
for _type in (I8, U8):
    _rows = q(_type, 3, 2, 4)
    case(f"q.dense.{_type.__name__}", C.quantized_fully_connected, _rows, q(I8, 5, 8), q(I8, 5), *_ranges, num_hidden=5)
    case(
        f"q.dense.plain.{_type.__name__}",
        plain(C.quantized_fully_connected),
        _rows,
        q(I8, 5, 4),
        *_ranges[:4],
        num_hidden=5,
        no_bias=True,
        flatten=False,
    )
    _pooled = (C.quantized_pooling, q(_type, 2, 3, 7, 6), *ends(-0.3, 1.5))
    case(f"q.pool.{_type.__name__}", *_pooled, kernel=(3, 2), pad=(1, 1), stride=(2, 2), pool_type="max")
    _mean = {"kernel": (3, 2), "pad": (1, 1), "stride": (2, 2), "pool_type": "avg"}
    case(f"q.pool.mean.{_type.__name__}", *_pooled, **_mean)
    case(f"q.pool.inside.{_type.__name__}", *_pooled, count_include_pad=False, **_mean)
    case(f"q.pool.full.{_type.__name__}", *_pooled, pooling_convention="full", **_mean)
    case(f"q.pool.whole.{_type.__name__}", *_pooled, kernel=(1, 1), pool_type="avg", global_pool=True)
    case(f"q.flatten.{_type.__name__}", C.quantized_flatten, q(_type, 2, 3, 4), *ends(-0.3, 1.5))
    _parameters = (f(3), f(3), f(3), np.abs(f(3)) + np.float32(0.5))
    _norm = {"eps": 1e-3, "fix_gamma": False, "min_calib_range": -2.5, "max_calib_range": 3.0}
    case(
        f"q.norm.{_type.__name__}", C.quantized_batch_norm, q(_type, 2, 3, 4, 5), *_parameters, *ends(-1, 1.5), **_norm
    )
    for _other in (I8, U8):
        _name = f"{_type.__name__}.{_other.__name__}"
        _two = (q(_type, 2, 3, 4, 5), q(_other, 2, 3, 4, 5), *ends(-1, 1.5, -0.5, 0.7))
        case(f"q.concat.{_name}", C.quantized_concat, *_two, num_args=2, dim=1)
        case(f"q.add.{_name}", C.quantized_elemwise_add, *_two)
        case(f"q.add.range.{_name}", C.quantized_elemwise_add, *_two, min_calib_range=-1.2, max_calib_range=1.9)
case("q.relu", C.quantized_act, q(I8, 2, 3, 4, 5), *ends(-0.3, 1.5), act_type="relu")
case(
    "q.embedding",
    C.quantized_embedding,
    np.array([[0, 4], [2, 2]], np.float32),
    q(I8, 5, 4),
    *ends(-1, 1),
    input_dim=5,
    output_dim=4,
)
_two = (q(I8, 3, 4), q(I8, 3, 4), *ends(-1, 1.5, -0.5, 0.7))
case("q.mul", C.quantized_elemwise_mul, *_two)
case("q.mul.range", C.quantized_elemwise_mul, *_two, min_calib_range=-1.2, max_calib_range=1.1)
case("q.mul.float", C.quantized_elemwise_mul, *_two, enable_float_output=True)
