"""Random numbers are of their distributions, the same for the same seed, and others for another seed or stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import weft
from weft.driver.checking.reference import run_graph
from weft.graph import Graph
from weft.graph.builder import Builder, PartialEvaluator
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.numerics import random_numbers
from weft.graph.composites.numerics.random_numbers import RandomStream
from weft.support.dtypes import DType, bf16, f16, f32, f64, i64

Draw = Callable[[Builder, RandomStream], Operand]
COUNT = 20000


def graph_of(draw: Draw, stream: int = 1) -> Graph:
    graph = Graph()
    source = RandomStream(graph.input("seed", (), i64), stream)
    b = Builder(PartialEvaluator(graph), "random numbers")
    graph.output(b.evaluator.value(draw(b, source), "random numbers"), "drawn")
    return graph


def drawn(draw: Draw, seed: int = 0, stream: int = 1) -> Any:
    return weft.compile(graph_of(draw, stream), threads=1)(np.int64(seed))


def check_distribution(found: Any, share_below: Callable[[float], float]) -> None:
    """Compares the shares of numbers below each with those wanted (Kolmogorov and Smirnov), at a level of 1e-6."""
    ordered = np.sort(found.astype(np.float64))
    wanted = np.array([share_below(v) for v in ordered])
    ranks = np.arange(1, len(ordered) + 1) / len(ordered)
    assert np.abs(ranks - wanted).max() < math.sqrt(math.log(2 / 1e-6) / 2 / len(ordered))


DISTRIBUTIONS: dict[str, tuple[Draw, Callable[[float], float]]] = {
    "uniform": (lambda b, s: random_numbers.uniform(b, s, [COUNT], f32), lambda v: v),
    "uniform of f64": (lambda b, s: random_numbers.uniform(b, s, [COUNT], f64), lambda v: v),
    "normal": (lambda b, s: random_numbers.normal(b, s, [COUNT], f32), NormalDist().cdf),
    "normal of f64": (lambda b, s: random_numbers.normal(b, s, [COUNT], f64), NormalDist().cdf),
    "exponential": (lambda b, s: random_numbers.exponential(b, s, [COUNT], f32), lambda v: 1 - math.exp(-v)),
    "integers": (lambda b, s: random_numbers.integers(b, s, [COUNT], -(2**40), 2**40), lambda v: 0.5 + v / 2**41),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("draw", "share_below"), DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_distribution(draw: Draw, share_below: Callable[[float], float]) -> None:
    check_distribution(drawn(draw), share_below)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_narrow_floats(dtype: DType) -> None:
    uniform = drawn(lambda b, s: b.cast(random_numbers.uniform(b, s, [COUNT], dtype), f32))
    normal = drawn(lambda b, s: b.cast(random_numbers.normal(b, s, [COUNT], dtype), f32))
    exponential = drawn(lambda b, s: b.cast(random_numbers.exponential(b, s, [COUNT], dtype), f32))
    assert 0 <= uniform.min() < 0.01
    assert 0.99 < uniform.max() < 1
    assert exponential.min() >= 0
    assert 6 < exponential.max() < 20
    assert 3 < np.abs(normal).max() < 7
    assert abs(normal.std() - 1) < 0.05


def test_seeds_and_streams() -> None:
    draw = DISTRIBUTIONS["uniform of f64"][0]
    first = drawn(draw, seed=3)
    np.testing.assert_array_equal(drawn(draw, seed=3), first)
    for other in (drawn(draw, seed=4), drawn(draw, seed=3 + 2**32), drawn(draw, seed=3, stream=2)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 6 / math.sqrt(COUNT)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 6 / math.sqrt(COUNT)


def test_permutation() -> None:
    def draw(b: Builder, s: RandomStream) -> Operand:
        return random_numbers.permutation(b, s, 500)

    found = drawn(draw)
    assert sorted(found) == list(range(500))
    assert (found == np.arange(500)).sum() < 20
    assert found.tolist() != drawn(draw, seed=1).tolist()


@pytest.mark.parametrize("again", [True, False])
def test_places_by_weights(again: bool) -> None:
    weights = np.array([0.0, 1.0, 2.0, 5.0, 0.0], np.float32)
    rows = np.tile(weights, (4000, 1))

    def draw(b: Builder, s: RandomStream) -> Operand:
        held = b.add("expand", b.evaluator.graph.constant(weights), shape=rows.shape)
        return random_numbers.chosen(b, s, held, 3, again=again)

    found = drawn(draw)
    assert found.shape == (4000, 3)
    assert set(found.reshape(-1)) == {1, 2, 3}
    first = np.bincount(found[:, 0], minlength=5) / 4000
    np.testing.assert_allclose(first, weights / weights.sum(), atol=0.05)
    assert again or all(sorted(row) == [1, 2, 3] for row in found)


@pytest.mark.parametrize(
    ("seed", "words"),
    [(0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])],
)
def test_published_words(seed: int, words: list[int]) -> None:
    """The first counter of the published test vectors (Random123, kat_vectors)."""
    graph = Graph()
    key = graph.input("seed", (), i64)
    for word in range(4):
        graph.output(graph.add("random_bits", [key], shape=(1,), stream=0, word=word), f"word {word}")
    assert [v.item() for v in run_graph(graph, {"seed": np.array(seed)})] == words
