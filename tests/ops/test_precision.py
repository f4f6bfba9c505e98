"""Every operator in every type of floats, on ordinary values and extremes: exact to its type, whatever it computes on the way."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pytest
from tests.ops.sample_arrays import Sample
from tests.ops.samples import SAMPLES
from tests.support.ulps import ulp, ulps_off

from weft.driver.checking.reference import run_operator
from weft.driver.evaluate import NativeEvaluator
from weft.ops import OPERATORS
from weft.support.dtypes import SCALARS, STORAGE, DType, bf16, f16, f32, f64
from weft.targets import can_run, cpu

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

OWN: Final = 4
"""Units in the last place that float32 may be off by itself, of a result or of the sample's magnitude."""

TERMS: Final = 4
"""Terms that may be added up, one by one, for one unit more."""


COMPUTED: Final = [t.numpy for t in (f16, bf16, f32, f64)]
"""The types of floats that operators compute with; others are held and moved, and stay as they are."""


STORED: Final = [SCALARS[t].numpy for t in STORAGE]


def given(sample: Sample, dtype: DType, computed: DType) -> list[Array | None]:
    """Returns the inputs, floats rounded to *dtype*, as numbers of *computed*."""
    with np.errstate(all="ignore"):
        return [
            a if a is None or a.dtype not in COMPUTED else a.astype(dtype.numpy).astype(computed.numpy)
            for a in sample.inputs
        ]


def run(name: str, sample: Sample, dtype: DType, computed: DType) -> list[Array]:
    with np.errstate(all="ignore"):
        return run_operator(name, given(sample, dtype, computed), **sample.attributes)


IN_MODELS: Final = ("strings_take", "strings_give", "fresh_seed")
"""Operators on addresses, of which there are none in arrays, and one whose results differ: tests of models have them."""

OF_FLOAT32: Final = (
    "round_tf32",
    "split_in_parts",
    "pack_matrix_parts",
    "matmul_in_parts",
    "pack_conv_weight_parts",
    "conv2d_in_parts",
)
"""Operators of float32 alone, and of its parts."""


def test_every_operator_has_samples() -> None:
    missing = OPERATORS.keys() - SAMPLES.keys() - set(IN_MODELS)
    assert not missing, f"add samples of {', '.join(sorted(missing))} to tests/ops/samples.py"


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in (*IN_MODELS, *OF_FLOAT32)])
def test_rounded_once(name: str) -> None:
    """In float32 an operator is as exact as that is; in a narrower type its result is that of float32, rounded."""
    for sample in SAMPLES[name]:
        for dtype in (f16, bf16, f32):
            exact, single, found = (run(name, sample, dtype, t) for t in (f64, f32, dtype))
            for e, s, y in zip(exact, single, found, strict=True):
                check(e, s, y, dtype, sample)


def check(exact: Array, single: Array, found: Array, dtype: DType, sample: Sample) -> None:
    if exact.dtype != np.float64:
        assert_same_bits(found, exact)
        return
    if single.dtype == np.float32:
        assert_close(single, exact, f32, sample)
    with np.errstate(all="ignore"):  # as numbers that NumPy knows the NaN of
        wanted = single.astype(dtype.numpy).astype(np.float64)
    np.testing.assert_array_equal(found.astype(np.float64), wanted)


def assert_same_bits(found: Array, exact: Array) -> None:
    """Checks numbers of a type that NumPy may not know the NaN of."""
    assert (found.dtype, found.shape) == (exact.dtype, exact.shape)
    np.testing.assert_array_equal(np.frombuffer(found.tobytes(), np.uint8), np.frombuffer(exact.tobytes(), np.uint8))


def assert_close(found: Array, exact: Array, dtype: DType, sample: Sample) -> None:
    """Checks that *found* is the float of *dtype* next to *exact* on either side, but for what float32 may be off."""
    rows = [a.shape for a in sample.inputs if a is not None and a.ndim > 1]
    own = OWN + max([n for shape in rows for n in shape], default=0) / TERMS
    rounding = 0 if dtype is f32 else ulp(exact, dtype)
    with np.errstate(invalid="ignore"):
        off = ulps_off(found, exact, dtype) * ulp(exact, dtype)
    size = np.maximum(np.where(np.isfinite(exact), np.abs(exact), 0), sample.magnitude)
    assert (off <= rounding + own * ulp(size, f32)).all()


COMPILED: Final = {
    "avg_pool2d", "batch_norm", "conv2d", "cumsum", "einsum", "gelu", "gemm", "grid_sample", "layer_norm", "log_softmax", "lrn",
    "matmul", "power", "reduce_l2", "reduce_log_sum_exp", "reduce_mean", "reduce_prod", "resample", "rms_norm",
    "scale_and_shift", "scatter_elements", "softmax", "softplus", "softplus_tanh",
}  # fmt: skip
"""Operators that are compiled, too, by default."""


@pytest.fixture(scope="module")
def compiler() -> NativeEvaluator:
    return NativeEvaluator(next(t for t in (cpu("avx512"), cpu("avx2"), cpu("sse4")) if can_run(t)))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name",
    [
        n if n in COMPILED else pytest.param(n, marks=pytest.mark.slow)
        for n in OPERATORS
        if n in SAMPLES and n not in OF_FLOAT32
    ],
)
def test_compiled(name: str, compiler: NativeEvaluator) -> None:
    for sample in SAMPLES[name]:
        for dtype in (f16, bf16):
            exact = run(name, sample, dtype, f64)
            found = compiler.evaluate(OPERATORS[name], given(sample, dtype, dtype), dict(sample.attributes))
            for e, y in zip(exact, found, strict=True):
                if e.dtype == np.float64 and y.dtype == dtype.numpy:
                    assert_close(y, e, dtype, sample)
                elif e.dtype in STORED:
                    assert_same_bits(y, e)
                else:
                    np.testing.assert_allclose(y, e, rtol=1e-5)


def test_there_are_samples_of_operators_alone() -> None:
    assert SAMPLES.keys() <= OPERATORS.keys()
