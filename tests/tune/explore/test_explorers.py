"""Explorers: they propose what is valid and was not measured, and do the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.tune.explore import (
    Annealing,
    AnnealingOptions,
    Explorer,
    Genetic,
    GridSearch,
    History,
    KnobSpace,
    RandomSearch,
    SearchSpace,
    alike,
    beside,
    change_knobs,
    choose_diverse,
)
from weft.tune.features import Bools, Doubles, Ints

SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=5).map(tuple)


class Sparse(KnobSpace):
    """A space in which two of three points are no plans."""

    def is_valid(self, points: Ints) -> Bools:
        return np.asarray(points.sum(axis=1) % 3 == 0, np.bool_)


def hill(points: Ints) -> Doubles:
    """A score with one top, at index 2 of each knob."""
    return np.asarray(-np.abs(points - 2).sum(axis=1), np.float64)


def annealing(space: SearchSpace, seed: int) -> Explorer:
    return Annealing(space, hill, seed, AnnealingOptions(chains=16, steps=10))


EXPLORERS: dict[str, Callable[[SearchSpace, int], Explorer]] = {
    "annealing": annealing,
    "genetic": Genetic,
    "random": RandomSearch,
    "grid": GridSearch,
}


def rounds(space: SearchSpace, explorer: Explorer, batches: list[int]) -> list[Ints]:
    history, found = History(len(space.sizes)), []
    for n in batches:
        points = explorer.propose(n, history)
        history.add(points, np.exp(hill(points)))
        explorer.observe(points, np.exp(hill(points)))
        found.append(points)
    return found


@pytest.mark.parametrize("name", sorted(EXPLORERS))
@settings(max_examples=20, deadline=None)
@given(sizes=SIZES, batches=st.lists(st.integers(1, 20), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_points_are_valid_new_and_the_same_for_a_seed(
    name: str, sizes: tuple[int, ...], batches: list[int], seed: int
) -> None:
    space = Sparse(sizes)
    found = rounds(space, EXPLORERS[name](space, seed), batches)
    points = np.concatenate(found)
    assert points.shape[1] == len(sizes)
    assert space.is_valid(points).all()
    assert ((points >= 0) & (points < sizes)).all()
    assert len(np.unique(points, axis=0)) == len(points)
    grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes))
    assert len(points) == min(sum(batches), int(space.is_valid(grid).sum())), "all points are found before it gives up"
    again = rounds(space, EXPLORERS[name](space, seed), batches)
    assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_huge_spaces_are_no_trouble(name: str) -> None:
    space = KnobSpace((1000,) * 30)
    assert [len(p) for p in rounds(space, EXPLORERS[name](space, 1), [10, 10])] == [10, 10]


def test_the_grid_is_in_order() -> None:
    space = KnobSpace((2, 3))
    first, second, third = rounds(space, GridSearch(space), [2, 3, 9])
    assert np.concatenate([first, second, third]).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


@given(SIZES, st.integers(0, 1000))
def test_a_neighbour_differs_in_one_or_two_knobs(sizes: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = KnobSpace(sizes).sample(rng, 30)
    before = points.copy()
    changed = change_knobs(points, KnobSpace(sizes).near, rng)
    assert np.array_equal(points, before)
    assert ((changed >= 0) & (changed < sizes)).all()
    differing = (changed != points).sum(axis=1)
    assert (differing <= 2).all()
    if max(sizes) > 1:
        assert differing.max() >= 1


def test_alternatives_of_one_number_have_those_beside_them_near() -> None:
    assert beside(1).tolist() == [[0, 0]]
    assert beside(3).tolist() == [[1, 1], [0, 2], [1, 1]]


def test_alternatives_of_several_numbers_are_near_by_ratios() -> None:
    tiles = np.array([(1, 1), (1, 2), (2, 1), (2, 2), (16, 16), (16, 24)])
    near = alike(tiles, 2)
    assert set(near[0]) == {1, 2}
    assert near[4][0] == 5
    assert alike(tiles[:2], 4).tolist() == [[1], [0]]


def test_annealing_finds_the_top_of_a_hill() -> None:
    space = KnobSpace((9,) * 8)
    options = AnnealingOptions(chains=128, steps=50, random=0, random_first=0, diversity=0)
    explorer = Annealing(space, hill, 1, options)
    history = History(8)
    for _ in range(3):
        points = explorer.propose(8, history)
        history.add(points, np.exp(hill(points)))
    assert history.best(1).tolist() == [[2] * 8]


def test_a_diverse_batch_covers_more() -> None:
    rng = np.random.default_rng(0)
    points = rng.integers(0, 8, (200, 5))
    scores = hill(points)
    covered = []
    for diversity in (0.0, 5.0):
        rows = choose_diverse(points, scores, 8, diversity)
        assert len(set(rows.tolist())) == 8
        covered.append(sum(len(np.unique(points[rows, k])) for k in range(5)))
    assert covered[1] > covered[0]
    assert sorted(scores[choose_diverse(points, scores, 8, 0.0)]) == sorted(np.sort(scores)[-8:])
    assert choose_diverse(points[:0], scores[:0], 8, 1.0).tolist() == []


def test_a_history_knows_what_was_measured() -> None:
    history = History(2)
    history.add(np.array([[1, 2], [0, 1]]), np.array([0.5, 0.9]))
    assert history.contains(np.array([[0, 1], [1, 1]])).tolist() == [True, False]
    assert history.unseen(np.array([[1, 1], [1, 2], [1, 1]])).tolist() == [[1, 1]]
    assert history.best(1).tolist() == [[0, 1]]
    assert len(history) == 2
