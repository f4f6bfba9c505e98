"""Cases of branches and loops, and of weights that are held in less space."""

from __future__ import annotations

from typing import Any

import numpy as np
from coremltools.converters.mil.mil import Builder
from coremltools.converters.mil.mil import types as mil_types
from tests.frontends.coreml.cases.entering import RNG, W, case, f, u

for _name, _sign, _wanted in (("cond", 1, lambda x: x * 2), ("cond.else", -1, lambda x: x - 1)):
    case(
        _name,
        lambda a: Builder.cond(
            pred=Builder.greater(x=Builder.reduce_sum(x=a), y=0.0),
            _true_fn=lambda: Builder.mul(x=a, y=2.0),
            _false_fn=lambda: Builder.sub(x=a, y=1.0),
        ),
        _sign * np.abs(f(3)),
        wanted=_wanted,
    )


def doubled(x: Any, k: Any) -> Any:
    while k < 5:
        x, k = x * 2, k + 1
    return x, k


case(
    "while_loop",
    lambda a, b: Builder.while_loop(
        _cond=lambda x, k: Builder.less(x=Builder.squeeze(x=k), y=5),
        _body=lambda x, k: (Builder.mul(x=x, y=2.0), Builder.add(x=k, y=1)),
        loop_vars=(a, b),
    ),
    f(3),
    np.array([2]),
    wanted=doubled,
)

SMALL_INTS = RNG.integers(-128, 128, (3, 4)).astype(np.int8)
case(
    "constexpr_affine_dequantize",
    lambda a: Builder.linear(
        x=a,
        weight=Builder.constexpr_affine_dequantize(
            quantized_data=SMALL_INTS,
            zero_point=np.array([1, -2, 3], np.int8),
            scale=np.array([0.1, 0.2, 0.3], np.float32),
            axis=0,
        ),
    ),
    f(2, 4),
    version=16,
    wanted=lambda x: x @ ((SMALL_INTS.astype(np.float32) - [[1], [-2], [3]]) * [[0.1], [0.2], [0.3]]).T,
)
case(
    "constexpr_cast",
    lambda a: Builder.linear(x=a, weight=Builder.constexpr_cast(source_val=W.astype(np.float16), output_dtype="fp32")),
    f(2, 4),
    version=16,
    wanted=lambda x: x @ W.astype(np.float16).astype(np.float32).T,
)
PLACES, TABLE = RNG.integers(0, 4, (3, 4)), np.array([-1, 0.5, 2, 3], np.float32)
BITS = ((PLACES.reshape(-1, 1) >> np.arange(2)) & 1).astype(np.uint8).reshape(-1)
case(
    "constexpr_lut_to_dense",
    lambda a: Builder.linear(
        x=a,
        weight=Builder.constexpr_lut_to_dense(
            lut=TABLE, indices=np.packbits(BITS, bitorder="little"), shape=np.array([3, 4], np.uint32)
        ),
    ),
    f(2, 4),
    version=16,
    wanted=lambda x: x @ TABLE[PLACES].T,
)
UINT2 = mil_types.nptype_from_builtin(mil_types.string_to_builtin("uint2"))
TABLES = f(3, 1, 4, 1)
case(
    "constexpr_lut_to_dense.groups",
    lambda a: Builder.linear(x=a, weight=Builder.constexpr_lut_to_dense(indices=PLACES.astype(UINT2), lut=TABLES)),
    f(2, 4),
    version=18,
    wanted=lambda x: x @ np.take_along_axis(TABLES[:, 0, :, 0], PLACES, 1).T,
)
UINT4 = mil_types.nptype_from_builtin(mil_types.string_to_builtin("uint4"))
QUANTA, SCALES = RNG.integers(0, 16, (3, 4)), u(3, 2)
case(
    "constexpr_blockwise_shift_scale",
    lambda a: Builder.linear(
        x=a,
        weight=Builder.constexpr_blockwise_shift_scale(
            data=QUANTA.astype(UINT4), scale=SCALES, offset=np.full((3, 2), 8).astype(UINT4)
        ),
    ),
    f(2, 4),
    version=18,
    wanted=lambda x: x @ ((QUANTA - 8) * SCALES.repeat(2, 1)).T,
)
KEPT = RNG.random((3, 4)) < 0.5
NONZERO = f(int(KEPT.sum()))


def thinned(x: Any) -> Any:
    dense = np.zeros((3, 4), np.float32)
    dense[KEPT] = NONZERO
    return x @ dense.T


case(
    "constexpr_sparse_to_dense",
    lambda a: Builder.linear(
        x=a,
        weight=Builder.constexpr_sparse_to_dense(
            nonzero_data=NONZERO,
            mask=np.packbits(KEPT.reshape(-1), bitorder="little"),
            shape=np.array([3, 4], np.uint32),
        ),
    ),
    f(2, 4),
    version=16,
    wanted=thinned,
)
UINT1 = mil_types.nptype_from_builtin(mil_types.string_to_builtin("uint1"))
case(
    "constexpr_sparse_to_dense.mask",
    lambda a: Builder.linear(
        x=a, weight=Builder.constexpr_sparse_to_dense(nonzero_data=NONZERO, mask=KEPT.astype(UINT1))
    ),
    f(2, 4),
    version=18,
    wanted=thinned,
)

ENTRIES = f(1, 1, 4, 2)
case(
    "constexpr_lut_to_dense.vectors",
    lambda a: Builder.linear(
        x=a,
        weight=Builder.constexpr_lut_to_dense(
            indices=PLACES[:, :2].astype(UINT2), lut=ENTRIES, vector_axis=np.int32(1)
        ),
    ),
    f(2, 4),
    version=18,
    wanted=lambda x: x @ ENTRIES[0, 0][PLACES[:, :2]].reshape(3, 4).T,
)


def of_kept(values: Any) -> Any:
    """Returns the weights of which *values* are those that are kept."""
    dense = np.zeros((3, 4), np.float32)
    dense[KEPT] = values
    return dense


def sparse(made: Any) -> Any:
    mask, values = made
    return Builder.constexpr_sparse_to_dense(nonzero_data=values, mask=mask)


case(
    "constexpr_lut_to_sparse",
    lambda a: Builder.linear(
        x=a,
        weight=sparse(
            Builder.constexpr_lut_to_sparse(
                indices_mask=KEPT.astype(UINT1), indices_nonzero_data=PLACES[KEPT].astype(UINT2), lut=TABLES
            )
        ),
    ),
    f(2, 4),
    version=18,
    wanted=lambda x: x @ of_kept(np.take_along_axis(TABLES[:, 0, :, 0], PLACES, 1)[KEPT]).T,
)
case(
    "constexpr_sparse_blockwise_shift_scale",
    lambda a: Builder.linear(
        x=a,
        weight=sparse(
            Builder.constexpr_sparse_blockwise_shift_scale(
                data_mask=KEPT.astype(UINT1),
                nonzero_data=SMALL_INTS[KEPT],
                scale=SCALES,
                offset=np.full((3, 2), 3, np.int8),
            )
        ),
    ),
    f(2, 4),
    version=18,
    wanted=lambda x: x @ of_kept(((SMALL_INTS.astype(np.float32) - 3) * SCALES.repeat(2, 1))[KEPT]).T,
)
SCALE, ZERO = np.array([0.1, 0.2, 0.05], np.float32), np.array([1, -2, 3], np.int8)


def quantized(x: Any) -> Any:
    made = np.round(x / SCALE[:, None]) + ZERO[:, None].astype(np.float32)
    return np.clip(made, -128, 127)


case(
    "quantize",
    lambda a: Builder.cast(
        x=Builder.quantize(input=a, scale=SCALE, zero_point=ZERO, axis=0, output_dtype="int8"), dtype="fp32"
    ),
    f(3, 40) * 10,
    version=17,
    wanted=quantized,
)
case(
    "dequantize",
    lambda a: Builder.dequantize(
        input=Builder.quantize(input=a, scale=np.float32(0.1), output_dtype="uint8"), scale=np.float32(0.1)
    ),
    f(3, 4) * 10,
    version=17,
    wanted=lambda x: np.clip(np.round(x / np.float32(0.1)), 0, 255) * np.float32(0.1),
)
