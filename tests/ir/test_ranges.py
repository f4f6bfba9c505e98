"""Ranges with symbolic ends, and intervals where only some variables move."""

from __future__ import annotations

from weft.ir import INDEX, Bounds, RangesOrZero, Var, const, hull, select

N, K = Var("n", INDEX), Var("i", INDEX)


def test_the_hull_of_two_ranges() -> None:
    bounds = Bounds().bind(N, 1, None)
    assert hull((N, N + 3), (N + 1, N + 7), bounds) == (N, N + 7)
    assert hull((N, N + 3), None, bounds) is None


def test_no_hull_where_no_end_is_known_to_be_the_first() -> None:
    bounds = Bounds().bind(N, 1, None).bind(K, 0, None)
    assert hull((N, N + 3), (K, K + 3), bounds) is None


def test_what_does_not_move_is_zero() -> None:
    moving = RangesOrZero({K: (0, 7)})
    assert moving.ends_of(K * 3 + N) == (0, 21)
    assert moving.ends_of(K // 2 - 1) == (-1, 2)
    assert moving.ends_of(N % 4) == (0, 0)
    assert moving.ends_of(select(N < 0, K, const(5, INDEX))) == (5, 5)
