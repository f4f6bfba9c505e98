"""What the default run takes of tests that have many parameters: a few, evenly chosen; `make test-all` takes all.

`@pytest.mark.sampled(6)` above a test leaves six of its parameters, or of the combinations of them, and
has the others be `slow`. The six are far apart, and as different as can be: of tests of all networks at all
levels they are six networks, and each level is as often among them as any other. `@tried(10, 40, ...)` is
the same for properties: ten examples are drawn by default, and forty by the slow run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

GOLDEN_RATIO = 0.6180339887498949


def some(combinations: Sequence[Mapping[str, object]], keep: int) -> list[int]:
    """Returns which *keep* of *combinations*, each of which gives a value to each name, stand for all of them."""
    values = [[(name, _key(value)) for name, value in c.items()] for c in combinations]
    left = sorted(range(len(combinations)), key=lambda i: i * GOLDEN_RATIO % 1)  # the first of these are far apart
    used, kept = Counter[tuple[str, str]](), list[int]()
    while left and len(kept) < keep:
        kept.append(min(left, key=lambda i: sum(used[v] for v in values[i])))
        left.remove(kept[-1])
        used.update(values[kept[-1]])
    return sorted(kept)


def _key(value: object) -> str:
    """Returns what is the same for equal plain values, whatever process collects them, and differs for other objects."""
    return repr(value) if isinstance(value, str | int | float | tuple | list) else str(id(value))


def mark_the_rest(items: Sequence[pytest.Item]) -> None:
    """Has those of the tests marked `sampled` be `slow` that the default run leaves out."""
    many = [i for i in items if isinstance(i, pytest.Function) and i.get_closest_marker("sampled")]
    for _, of_one in groupby((i for i in many if not i.get_closest_marker("slow")), lambda i: (i.path, i.originalname)):
        tests = list(of_one)
        mark = tests[0].get_closest_marker("sampled")
        assert mark is not None
        kept = {tests[k].nodeid for k in some([t.callspec.params for t in tests], *mark.args)}
        for test in tests:
            if test.nodeid not in kept:
                test.add_marker(pytest.mark.slow)


def tried(
    few: int, many: int, *strategies: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a test of a property, which is given examples of *strategies*: *few* of them by default, *many* in the slow run."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.sampled(1)  # which is the first
        @pytest.mark.parametrize("count", [few, many])
        def test(count: int) -> None:
            settings(max_examples=count, derandomize=True, deadline=None)(given(*strategies)(check))()

        for name in ("__doc__", "__module__", "__name__", "__qualname__"):
            setattr(test, name, getattr(check, name))
        return test

    return decorate
