"""Choices at the least cost: exact where the graph reduces, allowed everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, isfinite

import numpy as np
import pytest

from weft.graph.layout.pbqp import Edge, solve

Problem = tuple[list[list[float]], dict[Edge, list[list[float]]]]


def problem(seed: int, nodes: int, edges: list[Edge], forbidden: float = 0.0) -> Problem:
    """Random costs of up to four alternatives; the first is always allowed."""
    made = np.random.default_rng(seed)
    sizes = made.integers(1, 5, nodes)
    costs = [[float(x) for x in made.integers(0, 20, n)] for n in sizes]
    for c in costs:
        c[1:] = [inf if made.random() < forbidden else x for x in c[1:]]
    return costs, {(a, b): made.integers(0, 20, (sizes[a], sizes[b])).astype(float).tolist() for a, b in edges}


def cost(costs: list[list[float]], edges: dict[Edge, list[list[float]]], chosen: Sequence[int]) -> float:
    """What a choice costs."""
    own = sum(c[k] for c, k in zip(costs, chosen, strict=True))
    return own + sum(m[chosen[a]][chosen[b]] for (a, b), m in edges.items())


def least(costs: list[list[float]], edges: dict[Edge, list[list[float]]]) -> float:
    return min(cost(costs, edges, choice) for choice in product(*[range(len(c)) for c in costs]))


SHAPES: dict[str, tuple[int, list[Edge]]] = {
    "one node": (1, []),
    "apart": (3, []),
    "a chain": (6, [(n, n + 1) for n in range(5)]),
    "a tree": (7, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]),
    "a ring": (6, [(n, (n + 1) % 6) for n in range(6)]),
    "residual blocks": (7, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4), (4, 5), (5, 6), (4, 6)]),
    "two edges between the same": (2, [(0, 1), (1, 0)]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(8))
def test_what_reduces_is_optimal(shape: str, seed: int) -> None:
    costs, edges = problem(seed, *SHAPES[shape], forbidden=0.3 if seed % 2 else 0.0)
    chosen = solve(costs, edges)
    assert cost(costs, edges, chosen) == least(costs, edges)


def test_dense_graphs_come_close() -> None:
    far = []
    for seed in range(30):
        costs, edges = problem(seed, 6, [(a, b) for b in range(6) for a in range(b)], forbidden=0.2)
        got = cost(costs, edges, solve(costs, edges))
        assert isfinite(got)
        far.append(got / least(costs, edges))
    assert np.median(far) <= 1.1
    assert max(far) <= 1.6


def test_ties_go_to_the_first() -> None:
    assert solve([[1.0, 1.0], [2.0, 2.0, 2.0]], {(0, 1): [[0.0] * 3, [0.0] * 3]}) == [0, 0]


def test_long_chains_take_no_recursion() -> None:
    n = 5000
    same = [[0.0, 1.0], [1.0, 0.0]]
    assert solve([[1.0, 0.0], *[[0.0, 0.0]] * (n - 1)], {(k, k + 1): same for k in range(n - 1)}) == [1] * n
