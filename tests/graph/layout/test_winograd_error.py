"""The sampled error of Winograd's method, and the weights at stride one that it is sampled with."""

from __future__ import annotations

import numpy as np

from weft.graph.layout.winograd_error import phase_weight, sampled_error


def test_the_error_grows_with_the_tile() -> None:
    w = np.random.default_rng(0).standard_normal((16, 32, 3, 3)).astype(np.float32)
    assert sampled_error(w, 2) < sampled_error(w, 4) < 2e-5


def test_small_tiles_at_the_points_of_large_ones() -> None:
    w = np.random.default_rng(0).standard_normal((16, 32, 3, 3)).astype(np.float32)
    assert sampled_error(w, 4, (4, 4)) == sampled_error(w, 4)
    for size in [(3, 3), (3, 4), (4, 2), (1, 2)]:
        assert 0 < sampled_error(w, 4, size) < 2e-5


def test_phases_of_a_weight() -> None:
    w = np.arange(2 * 3 * 3 * 3, dtype=np.float32).reshape(2, 3, 3, 3)
    made = phase_weight(w, (2, 2))
    assert made.shape == (2, 12, 2, 2)
    np.testing.assert_array_equal(made[:, :3], w[:, :, ::2, ::2])
    np.testing.assert_array_equal(made[:, 9:, 0, 0], w[:, :, 1, 1])
    assert not made[:, 9:, 1, 1].any()
