"""Sums over windows of channels, against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from weft.driver.checking.reference import run_operator


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 10, 2**40])
def test_lrn_of_any_size(size: int) -> None:
    """Channels further apart than there are add nothing, and cost nothing."""
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    before, after = (size - 1) // 2, size // 2
    sums = [np.square(x[:, max(0, c - before) : c + after + 1]).sum(axis=1) for c in range(5)]
    wanted = x / (2.0 + 0.5 / size * np.stack(sums, axis=1)) ** 0.75
    (got,) = run_operator("lrn", [x], size=size, alpha=0.5, beta=0.75, bias=2.0)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_log_sum_exp_of_infinities() -> None:
    x = np.array([[np.inf, 1, -np.inf], [-np.inf] * 3, [-np.inf, 2, 2], [np.nan, np.inf, 1]], np.float32)
    (got,) = run_operator("reduce_log_sum_exp", [x], axes=(1,), keepdims=False)
    np.testing.assert_allclose(got, [np.inf, -np.inf, 2 + np.log(2), np.nan], rtol=1e-6)
