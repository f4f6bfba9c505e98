"""What the default run takes of tests that have many parameters."""

from __future__ import annotations

from itertools import pairwise, product

from tests.support.sampling import some


def test_of_one_parameter_values_that_are_far_apart() -> None:
    kept = some([{"name": n} for n in range(40)], 5)
    assert len(kept) == 5
    assert min(b - a for a, b in pairwise(kept)) >= 5


def test_of_combinations_all_values_as_often() -> None:
    all_of_them = [{"name": n, "level": k} for n, k in product(range(8), range(3))]
    kept = [all_of_them[i] for i in some(all_of_them, 6)]
    assert len({c["name"] for c in kept}) == 6
    assert sorted(c["level"] for c in kept) == [0, 0, 1, 1, 2, 2]


def test_of_few_all() -> None:
    assert some([{"name": n} for n in range(3)], 9) == [0, 1, 2]
