"""Inputs for every operator of the library, among them extremes: what a generic test tries an operator on.

Arrays of float64 are given to an operator in each type of floats, others as they are. An operator without a sample fails the
tests that go through all operators, so a new one gets its samples here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from tests.ops.sample_arrays import (
    BOOLS,
    ELEMENTS,
    EXTREMES,
    FINITE,
    IMAGE,
    INFINITE,
    INTEGERS,
    LARGE,
    LONG,
    PAIRS,
    ROW,
    ROWS,
    UNPADDED,
    WINDOW,
    Array,
    Sample,
    between,
    few,
    ints,
    numbers,
    parts,
    same,
)

from weft.support.dtypes import SCALARS, STORAGE, bf16, f32, i32, i64, u16


def _divisions() -> list[tuple[float, float]]:
    """Returns the pairs whose quotients are short enough for `fmod` to be exact."""
    return [(a, b) for a, b in zip(*PAIRS, strict=True) if b == 0 or not np.isfinite(a) or abs(a) < abs(b) * 2.0**32]


def _maps() -> dict[str, list[Sample]]:
    """Operators that map the elements of one tensor, with their attributes."""
    plain = (
        "exp log sqrt rsqrt tanh erf sin cos tan asin acos atan sinh cosh asinh acosh atanh floor ceil sigmoid abs round neg "
        "reciprocal relu is_nan is_inf sign softsign softplus softplus_tanh square identity leaky_relu thresholded_relu elu"
    )
    made = {name: [Sample([ELEMENTS])] for name in plain.split()}
    made |= {
        "hard_sigmoid": [Sample([ELEMENTS], magnitude=1.0)],
        "selu": [Sample([ELEMENTS], {"alpha": 1.6732632, "gamma": 1.050701})],
        "gelu": [Sample([ELEMENTS], {"approximate": a}, magnitude=6.0) for a in (False, True)],
        "clip": [Sample([ELEMENTS, same(-2), same(1000)]), Sample([ELEMENTS, None, None])],
        "cast": [Sample([FINITE], {"dtype": i32}), Sample([ELEMENTS], {"dtype": f32})],
        "with_rounded": [Sample([FINITE], {"dtype": bf16})],
        "bit_cast": [Sample([np.arange(6, dtype=np.int16)], {"dtype": u16})],
        "encode": [Sample([ELEMENTS], {"dtype": SCALARS[t]}) for t in STORAGE],
        "decode": [Sample([np.arange(4, dtype=np.uint8).view(SCALARS[t].numpy)], {"dtype": f32}) for t in STORAGE],
        "unpack": [
            Sample([np.arange(256, dtype=np.uint8).reshape(64, 4)], {"dtype": SCALARS[t]})
            for t in STORAGE
            if SCALARS[t].used_bits < SCALARS[t].bits
        ],
        "logical_not": [Sample(BOOLS[:1])],
        "bit_not": [Sample(INTEGERS[:1])],
        "hardmax": [Sample([numbers(3, 7)])],
    }
    for name in ["add", "sub", "mul", "div", "minimum", "maximum", "less", "less_equal", "equal"]:
        made[name] = [Sample(PAIRS), Sample([numbers(3, 1), numbers(4)])]
    made["float_mod"] = made["floor_mod"] = [Sample(tuple([np.array(v) for v in zip(*_divisions(), strict=True)]))]
    made["prelu"] = [Sample(PAIRS)]
    made["power"] = [
        Sample([np.abs(PAIRS[0]), PAIRS[1] / 16]),
        Sample([ELEMENTS, same(3)]),
        Sample([ELEMENTS, np.array(2)]),
    ]
    for name in ("bit_and", "bit_or", "bit_xor", "trunc_mod", "shift_left", "shift_right"):
        made[name] = [Sample(INTEGERS)]
    for name in ("logical_and", "logical_or", "logical_xor"):
        made[name] = [Sample(BOOLS)]
    made["where"] = [Sample([BOOLS[0], numbers(4), EXTREMES[-4:]])]
    made["scale_and_shift"] = [Sample([between(1e3, 6e4, 9), same(2, 9), same(-LARGE, 9)], magnitude=2 * LARGE)]
    made["multiply_add"] = [Sample([between(1e3, 6e4, 9), same(2, 9), same(-LARGE, 9)], magnitude=2 * LARGE)]
    channels = [same(3, 2), same(0.1, 2), same(50000, 2), same(10000, 2)]
    made["batch_norm"] = [Sample([between(5e4, 6e4, 2, 2, 9), *channels])]
    return made


def _movements() -> dict[str, list[Sample]]:
    """Operators that move elements."""
    x, at = numbers(4, 6), ints(3, -1, 0)
    moved: dict[str, tuple[Sequence[Array | None], dict[str, Any]]] = {
        "reshape": ([x], {"shape": (3, 8)}),
        "transpose": ([x], {"perm": (1, 0)}),
        "expand": ([numbers(4, 1)], {"shape": (4, 3)}),
        "concat": ([x, numbers(2, 6)], {"axis": 0}),
        "slice": ([x], {"starts": (1,), "ends": (4,), "axes": (1,)}),
        "split": ([x], {"axis": 1, "sizes": (2, 4)}),
        "gather": ([x, at], {"axis": 0}),
        "gather_elements": ([x, np.array([[3, 0, -1]])], {"axis": 0}),
        "gather_pages": ([numbers(4, 3, 2), np.array([[3, 0], [-1, 1]])], {"rows": 5}),
        "gather_nd": ([x, np.array([[1, 2], [3, 0]])], {}),
        "pad": ([x], {"pads": (1, 0, 0, 2), "value": 0.1}),
        "tile": ([x], {"repeats": (2, 1)}),
        "repeat": ([x], {"axis": 1, "times": 3}),
        "full": ([], {"shape": (3,), "value": 2.5, "dtype": f32}),
        "one_hot": ([at, numbers(2)], {"depth": 4}),
        "range": ([], {"start": 2, "size": 4, "step": 3}),
        "random_bits": ([np.array(7)], {"shape": (2, 3), "stream": 5, "word": 1}),
        "sizes": ([], {"sizes": (2, 3), "shape": (2,)}),
        "size_of": ([x], {"axes": (1,)}),
        "trilu": ([x], {}),
        "write_at": ([x, numbers(4, 2), ints(0, 1, 4, 2)], {"axis": 1}),
        "nonzero_positions": ([np.array([[1.0, 0.0, -2.0], [0.0, np.nan, -0.0]])], {}),
        "unravel_index": ([ints(0, 5, 23)], {"shape": (2, 3, 4)}),
        "count_axes": ([np.array([1, -4, 1])], {"rank": 4}),
        "reshape_checked": ([x], {"shape": (3, 8)}),
        "tie_shape": ([x], {"shape": (4, 6)}),
        "order_rows": ([np.array([[2.0, 1.0], [1.0, 5.0], [2.0, 0.5], [1.0, 5.0]])], {}),
        "element_at": ([x, np.array(2)], {"axis": 1}),
        "nms_selection": (
            [
                np.array([[[0.0, 0, 1, 1], [0, 0.125, 1, 1.125], [0, 10, 1, 11]]]),
                np.array([[[0.75, 0.875, 0.5], [0.25, 0.5, 1.0]]]),
                *[ints(3), np.array([0.5]), np.array([0.375])],
            ],
            {"room": 3},
        ),
        "reverse_sequence": ([x, ints(2, 4, 1, 6)], {"batch_axis": 0, "time_axis": 1}),
        "extremes": ([x, numbers(4, 6, seed=1)], {"axes": (1,)}),
        "argsort": ([x], {}),
        "find_sorted": ([np.array([2.0, 0.5, np.nan, -1.0]), np.array([-1.0, 0.0, 2.0, np.nan])], {}),
        "top_k": ([x], {"k": 2}),
        "argmax": ([x], {"axis": 1}),
        "argmin": ([x], {"axis": 1, "last": True}),
        "pack_channels": ([IMAGE[0]], {"block": 8}),
        "unpack_channels": ([numbers(1, 2, 3, 3, 4)], {"channels": 7}),
        "unpack_groups": ([numbers(1, 4, 3, 3, 4)], {"group": 2, "kept": 5}),
        "pack_vector": ([numbers(7)], {"block": 4}),
        "pack_conv_weight": ([numbers(6, 3, 3, 3)], {"in_block": 2, "out_block": 4}),
        "pack_conv_transpose_weight": ([numbers(3, 6, 3, 3)], {"in_block": 2, "out_block": 4, "strides": (2, 2)}),
        "pack_depthwise_weight": ([numbers(6, 1, 3, 3)], {"block": 4}),
        "pack_matrix": ([x], {"block": 4}),
        "unpack_matrix": ([numbers(2, 3, 4)], {"columns": 7}),
        "split_weight_phases": ([numbers(2, 3, 3, 3)], {"strides": (2, 2)}),
        "phase_weight": ([numbers(3, 2, 4, 4)], {"strides": (2, 2)}),
        "interleave_phases": ([numbers(1, 8, 3, 3)], {"strides": (2, 2), "offsets": (0, 0), "sizes": (6, 6)}),
        "max_pool2d": ([IMAGE[0]], WINDOW),
        "max_pool2d_indices": ([IMAGE[0]], WINDOW),
        "reduce_max": ([x], ROW),
        "reduce_min": ([x], ROW),
    }
    made = {name: [Sample(inputs, attributes)] for name, (inputs, attributes) in moved.items()}
    made["resize"] = [
        Sample([ROWS[3]], {"axis": 1, "size": 7, "mode": mode}, magnitude=2000) for mode in ("nearest", "linear")
    ]
    return made


def _sums() -> dict[str, list[Sample]]:
    """Operators that add up, multiply up, or normalise."""
    rows = [Sample([x], ROW, magnitude=float(np.abs(x).sum(1).max())) for x in ROWS]
    squares = [Sample([x], ROW, magnitude=float(np.square(x).sum(1).max())) for x in ROWS]
    along = [Sample([x], {"axis": 1}, magnitude=4.0) for x in ROWS]
    factors = np.tile([200.0, 300, 0.01, 0.02, 1.5], (2, 8))
    made = dict.fromkeys(("reduce_sum", "reduce_l1"), rows)
    made["reduce_sum_square"] = squares
    made |= {
        "reduce_l2": [Sample([x], ROW) for x in ROWS],
        "reduce_mean": [Sample([x], ROW, magnitude=float(np.abs(x).mean(1).max())) for x in ROWS],
        "reduce_log_sum": [Sample([np.abs(x)], ROW) for x in ROWS],
        "reduce_log_sum_exp": [Sample([x], ROW) for x in (*ROWS, INFINITE)],
        "reduce_prod": [Sample([factors], ROW), Sample([between(0.98, 1.02, 2, LONG)], ROW, magnitude=300.0)],
        "cumsum": [Sample([ROWS[3]], {"axis": 1}), Sample([same(200, 2, 400), numbers(2, 1)], {"axis": 1})],
        "cumprod": [Sample([factors], {"axis": 1}), Sample([factors, between(0.5, 2, len(factors), 1)], {"axis": 1})],
        "softmax": [*along, Sample([INFINITE])],
        "log_softmax": [Sample([x], {"axis": 1}, magnitude=20.0) for x in (*ROWS, INFINITE)],
        "layer_norm": [Sample([x, numbers(x.shape[1]), numbers(x.shape[1])], magnitude=4000.0) for x in ROWS],
        "rms_norm": [Sample([x]) for x in ROWS],
        "lrn": [Sample([x], {"size": 3, "alpha": 0.01}) for x in IMAGE],
        "sum_pool2d": [Sample([x], WINDOW, magnitude=9 * float(x.max())) for x in IMAGE],
        "avg_pool2d": [Sample([x], WINDOW, magnitude=float(x.max())) for x in IMAGE],
        "resample": [Sample([ROWS[3], np.array([[0, 3], [299, 7]]), between(0, 1, 2, 2)], {"axis": 1})],
        "append": [
            Sample([numbers(3, 8), numbers(3, 2, seed=1)], {"axis": 1, "begin": 5}),
            Sample([numbers(4, 3), numbers(4, 3, seed=1)], {"axis": 0, "begin": 0}),
        ],
        "scatter_elements": [
            Sample(
                [numbers(4, 3), np.zeros((90, 3), np.int64), between(-9, 9, 90, 3)], {"reduction": r}, magnitude=900.0
            )
            for r in ("none", "add", "max")
        ],
        "scatter_nd": [
            Sample(
                [numbers(4, 3), np.zeros((90, 1), np.int64), between(-9, 9, 90, 3)], {"reduction": r}, magnitude=900.0
            )
            for r in ("none", "add", "max")
        ]
        + [Sample([numbers(4, 3), np.array([[2], [-1], [4], [0]]), numbers(4, 3)], {"drop": True})],
        "grid_sample": [
            Sample([x, between(-1.2, 1.2, 1, 3, 5, 2)], {"mode": mode}, magnitude=6 * float(np.abs(x).max()))
            for x, mode in product(IMAGE, ("nearest", "linear", "cubic"))
        ],
        "col2im": [
            Sample(
                [numbers(1, 8, 9)], {"image": (4, 4), "block": (2, 2), "strides": (1, 1), **UNPADDED}, magnitude=10.0
            )
        ],
        "deform_columns": [
            Sample(
                [x, between(-1.2, 1.2, 1, 8, 5, 5), between(0, 1, 1, 4, 5, 5)],
                {"kernel": (2, 2), "strides": (1, 1), **UNPADDED},
                magnitude=4 * float(np.abs(x).max()),
            )
            for x in IMAGE
        ]
        + [
            Sample(
                [IMAGE[0], between(-1.2, 1.2, 1, 8, 5, 5)],
                {"kernel": (2, 2), "strides": (1, 1), "padding": "inside", **UNPADDED},
                magnitude=4 * float(np.abs(IMAGE[0]).max()),
            )
        ],
        "roi_align": [
            Sample(
                [x, np.array([[0.5, 1, 4.25, 5], [-2, 0, 1, 9]]), ints(0, 0)],
                {"height": 2, "width": 2, "samples": 2},
                magnitude=4 * float(np.abs(x).max()),
            )
            for x in IMAGE
        ],
        "roi_max_pool": [
            Sample(
                [x, np.array([[0.5, 1, 4.25, 5], [-2, 0, 1, 9], [7, 7, 9, 9]]), ints(0, 0, 0)],
                {"height": 2, "width": 3, "scale": 0.5},
            )
            for x in IMAGE
        ],
        "tree_ensemble": [
            Sample(
                [
                    *[np.array([[0.0, 2.0], [1.0, np.nan], [3.0, 1.0]]), np.array([1.0, 1.5])],
                    *[np.array([[0, 1, 1, -1], [1, 12, -2, -3]], np.int32), np.array([0, 1], np.int32)],
                    *[
                        np.array([0, 1, 2, 4], np.int32),
                        np.array([0, 1, 0, 1], np.int32),
                        np.array([0.25, 1.5, -2.0, 0.5]),
                    ],
                ],
                {"count": 2, "reduce": r},
            )
            for r in ("sum", "min", "max")
        ],
        "running_extreme": [Sample([EXTREMES], {"axis": 0, "largest": largest}) for largest in (True, False)],
    }
    return made


def _factors() -> dict[str, list[Sample]]:
    """Factorisations of matrices, and what is solved by them."""
    square = numbers(2, 5, 5) + 4 * np.eye(5)
    symmetric = square + square.swapaxes(1, 2)
    tall, vectors = numbers(2, 6, 4), np.tril(numbers(2, 6, 4) / 4, -1)
    blocks = np.array([[[1.0, 2, 3, 4], [-2, 1, 5, 6], [0, 0, 7, 8], [0, 0, -2, 7]]])
    real, imaginary = np.array([[1.0, 1, 7, 7]]), np.array([[2.0, -2, 4, -4]])
    return {
        "det": [Sample([square], magnitude=4000.0)],
        "lu": [Sample([square], magnitude=20.0), Sample([square[:, :3]], magnitude=20.0)],
        "exchanged_rows": [Sample([np.array([[3, 1, 2], [0, 2, 2]], np.int32)], {"rows": 4})],
        "cholesky": [Sample([symmetric], magnitude=20.0)],
        "solve_triangular": [
            Sample([square, numbers(2, 5, 3)], {"upper": upper, "unit": unit}, magnitude=500.0)
            for upper in (True, False)
            for unit in (True, False)
        ],
        "householder_qr": [Sample([tall], magnitude=20.0), Sample([tall.swapaxes(1, 2)], magnitude=20.0)],
        "apply_reflectors": [
            Sample([vectors, between(1, 2, 2, 4), numbers(2, 6, 3)], {"transposed": t}, magnitude=50.0)
            for t in (True, False)
        ],
        "jacobi_eigen": [Sample([symmetric], magnitude=50.0)],
        "jacobi_columns": [Sample([tall], magnitude=50.0)],
        "real_schur": [Sample([blocks], magnitude=50.0)],
        "quasi_triangular_vectors": [Sample([blocks, real, imaginary], magnitude=50.0)],
        "ldl": [Sample([symmetric - 8 * np.eye(5)], magnitude=50.0)],
        "ldl_solve": [Sample([square, np.array([[-1, -1, 3, 5, 5]] * 2, np.int32), numbers(2, 5, 3)], magnitude=500.0)],
    }


def _contractions() -> dict[str, list[Sample]]:
    """Products of matrices and convolutions."""
    a, b, large = numbers(3, 700), numbers(700, 5), same(100, 3, 700)
    made = {
        "matmul": [Sample([a, b], magnitude=700.0), Sample([large, same(0.01, 700, 5)])],
        "gemm": [
            Sample([a, b, numbers(5)], {"alpha": 0.1, "beta": 0.3}, magnitude=700.0),
            Sample([large, same(100, 700, 5), None], {"alpha": 0.001}),
        ],
        "matmul_chosen": [Sample([a, numbers(4, 700, 5), np.array([3, 0, 9], np.int64)], magnitude=700.0)],
        "einsum": [Sample([a, b], {"equation": "ij,jk->ki"}, magnitude=700.0)],
        "matmul_rows": [
            Sample([a, numbers(720, 5)], {"rows": 700}, magnitude=700.0),
            Sample([a, numbers(9, 700)], {"rows": 6, "transposed": True}, magnitude=700.0),
        ],
        "matmul_packed": [
            Sample([a, numbers(2, 700, 4), numbers(6)], {"columns": 6, "by_panels": apart}, magnitude=700.0)
            for apart in (False, True)
        ],
    }
    rows, matrix = few(3, 16, unsigned=True), few(16, 20)
    made |= {
        "pack_matrix_groups": [
            Sample([matrix], {"block": 16, "group": 4}),
            Sample([few(5, 18)], {"block": 4, "group": 4, "trans": True}),
        ],
        "matmul_grouped": [
            Sample([rows, few(2, 4, 16, 4)], {"columns": 20}),
            Sample([rows[0], few(2, 4, 16, 4)], {"columns": 32}),
            Sample([few(2, 3, 16, unsigned=True), few(2, 2, 4, 16, 4)], {"columns": 20}),
        ],
        "matmul_summed": [
            Sample([few(2, 3, 16), matrix]),
            Sample([few(3, 16), few(20, 16)], {"trans": True}),
            Sample([few(2, 3, 16), few(2, 16, 5)]),
        ],
        "split_in_parts": [Sample([numbers(3, 40)], {"block": 32})],
        "pack_matrix_parts": [
            Sample([numbers(40, 20)], {"block": 16, "depth": 32}),
            Sample([numbers(20, 40)], {"block": 16, "depth": 32, "trans": True}),
        ],
        "matmul_in_parts": [
            Sample([parts(5, 2, 3, 4), parts(2, 2, 3, 2, 8, 2)], {"columns": 13, **block}, magnitude=40.0)
            for block in ({}, {"block": 1, "blocks": 2})
        ],
        "round_tf32": [Sample([numbers(3, 40)]), Sample([EXTREMES])],
        "matmul_tf32": [Sample([numbers(2, 3, 16).view(np.uint32), numbers(5, 16).view(np.uint32)], magnitude=16.0)],
        "sum_integers": [Sample([matrix], {"axes": (0,)}), Sample([rows], {"axes": (-1,), "keepdims": False})],
    }
    weights, scales = few(5, 2, 6, unsigned=True), between(0.5, 1.5, 5, 2)
    panels, of_panels = few(2, 2, 6, 4, unsigned=True), between(0.5, 1.5, 2, 2, 4)
    made |= {
        "dequantize_weight": [
            Sample([few(5, 6), between(0.5, 1.5, 6)]),
            Sample([few(5, 6), between(0.5, 1.5, 5, 1), np.zeros((), np.int32)]),
        ],
        "pack_bits": [Sample([few(5, 2, 6)], {"block": 4})],
        "matmul_bits": [
            Sample([numbers(3, 24), weights, scales], {"bits": 4}, magnitude=400.0),
            Sample([numbers(2, 3, 12), weights, scales, numbers(5, 2, mean=100)], {"bits": 8}, magnitude=3000.0),
        ],
        "matmul_bits_packed": [
            Sample([numbers(3, 24), panels, of_panels], {"bits": 4, "columns": 7}, magnitude=400.0),
            Sample(
                [numbers(48), panels, of_panels, between(0, 3, 2, 2, 4)], {"bits": 2, "columns": 8}, magnitude=100.0
            ),
        ],
    }
    image, filters, zero = few(1, 4, 6, 6, unsigned=True), few(5, 4, 3, 3), np.array(7, np.uint8)
    made |= {
        "pack_conv_weight_groups": [Sample([filters], {"in_block": 4, "out_block": 16, "group": 4})],
        "pack_conv_weight_parts": [Sample([numbers(5, 4, 3, 3)], {"in_block": 4, "out_block": 16})],
        "conv2d_in_parts": [
            Sample(
                [parts(1, 2, 6, 6, 3, 8), parts(panels, 2, 3, 3, 3, 4, 8, 2)],
                {"pads": (1, 1, 1, 1), "dilations": (1, 2), "panels": panels},
                magnitude=400.0,
            )
            for panels in (1, 2)
        ],
        "conv2d_integer": [Sample([image, filters, zero], {"pads": (1, 1, 1, 1), "strides": (2, 1)})],
        "conv2d_grouped": [
            Sample(
                [few(1, 2, 6, 6, 8, unsigned=True), few(1, 2, 3, 3, 2, 16, 4), zero],
                {"pads": (1, 1, 1, 1), "dilations": (1, 2)},
            ),
            Sample([few(1, 2, 4, 4, 8, unsigned=True), few(4, 2, 1, 1, 2, 4, 4)], {"panels": 2}),
        ],
    }
    x, pads = IMAGE, {"pads": (1, 1, 1, 1)}
    w, bias = numbers(4, 4, 3, 3), numbers(4)
    made |= {
        "conv2d": [Sample([e, w, bias], pads, magnitude=40 * float(np.abs(e).max())) for e in x],
        "conv2d_implicit": [
            Sample(
                [x[0], w.transpose(2, 3, 1, 0).reshape(-1, w.shape[0]), bias],
                {**pads, "kernel": w.shape[2:], **merged},
                magnitude=40.0,
            )
            for merged in ({}, {"merged": True})
        ]
        + [Sample([x[0], numbers(9 * 6, 4), bias], {**pads, "kernel": w.shape[2:], "channels": 6}, magnitude=40.0)],
        "conv_transpose2d": [Sample([x[0], w, bias], {"strides": (2, 2)}, magnitude=40.0)],
        "conv2d_blocked": [
            Sample([numbers(1, 2, 6, 6, 4), numbers(1, 2, 3, 3, 4, 4), numbers(1, 4)], pads, magnitude=80.0)
        ],
        "depthwise_conv2d_blocked": [
            Sample([numbers(1, 2, 6, 6, 4), numbers(2, 3, 3, 4), numbers(2, 4)], pads, magnitude=20.0)
        ],
        "conv_transpose2d_blocked": [
            Sample(
                [numbers(1, 2, 4, 4, 4), numbers(1, 2, 2, 2, 2, 2, 4, 4), numbers(1, 4)],
                {"kernel": (4, 4), "strides": (2, 2), "pads": (1, 1, 1, 1)},
                magnitude=80.0,
            )
        ],
        "pack_winograd_weight": [Sample([w], {"tile": 2, "block": 4}, magnitude=9.0)],
        "pack_winograd_weight_groups": [Sample([few(4, 4, 3, 3)], {"tile": 2, "block": 4, "group": 2})],
        "pack_transposed_winograd_weight": [
            Sample([numbers(4, 4, 4, 4)], {"tile": 2, "taps": 2, "block": 4, "strides": (2, 2)}, magnitude=9.0)
        ],
        "conv2d_winograd": [
            Sample(
                [numbers(1, 2, 6, 6, 4), numbers(4, 4, 1, 8, 4), numbers(1, 4)],
                {"tile": 2, "kernel": (3, 3), "channels": 4, "block": 4, **pads},
                magnitude=100.0,
            ),
            Sample(
                [few(1, 2, 6, 6, 4).astype(np.int16), few(4, 4, 1, 4, 4, 2).astype(np.int16)],
                {"tile": 2, "kernel": (3, 3), "channels": 4, "block": 4, **pads},
            ),
            Sample(
                [numbers(2, 1, 4, 4, 4, 4), numbers(4, 4, 1, 12, 4)],
                {"tile": 2, "kernel": (3, 3, 3), "channels": 4, "block": 4, "patch": (2, 2, 2)}
                | {"strides": (1, 1, 1), "pads": (1,) * 6},
                magnitude=100.0,
            ),
        ],
        "conv_transpose2d_winograd": [
            Sample(
                [numbers(1, 2, 4, 4, 4), numbers(2, 2, 3, 3, 1, 8, 4), numbers(1, 4)],
                {"tile": 2, "kernel": (4, 4), "channels": 4, "strides": (2, 2), "pads": (1, 1, 1, 1)},
                magnitude=100.0,
            )
        ],
    }
    return made


def _strings() -> dict[str, list[Sample]]:
    """Ids of the pool "", "b c", "-1.5"; those of other strings follow in the order in which they are made."""
    texts = [b"", b"b c", b"-1.5"]
    head = np.asarray([len(texts), 0, *np.cumsum([len(t) for t in texts])], np.int32).tobytes()
    pool, x = np.frombuffer(head + b"".join(texts), np.uint8), ints(2, 0, 1)
    any_character = np.asarray([5, 1, 2, 1, 3, 3, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10FFFF], np.int32)
    tokens = np.asarray([len(any_character), *any_character], np.int32)
    return {
        "string_concat": [Sample([x, ints(1, 1, 2), pool])],
        "string_part_counts": [Sample([x, pool], {"delimiter": 0, "most": -1})],
        "string_split": [Sample([x, pool], {"delimiter": 0, "most": -1, "width": 2})],
        "string_case": [Sample([x, pool], {"upper": True})],
        "string_case_ascii": [Sample([x, pool], {"upper": True})],
        "string_hash": [Sample([x, pool], {"key": None}), Sample([x, pool], {"key": (3, -5)})],
        "string_replace": [Sample([x, any_character, pool], {"by": 2, "every": True})],
        "string_match": [Sample([x, any_character, pool])],
        "string_token_counts": [Sample([x, tokens, pool], {"how": (1, 1, 0, -1, -1)})],
        "string_tokens": [Sample([x, tokens, pool], {"how": (1, 1, 0, 1, 2), "width": 6})],
        "string_format": [Sample([ints(-3, 0, 12), pool])],
        "string_parse": [Sample([ints(2, 2), pool], {"dtype": f32}), Sample([ints(2, 1), pool], {"dtype": i64})],
    }


SAMPLES: Final[dict[str, list[Sample]]] = {
    **_movements(),
    **_maps(),
    **_sums(),
    **_contractions(),
    **_factors(),
    **_strings(),
}
