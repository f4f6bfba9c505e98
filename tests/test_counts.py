"""The structure of the sources stays as it was made: folders, files and functions of a size to be read."""

from __future__ import annotations

import ast

import pytest
from tests.counts import Count, complexity, counts


@pytest.mark.parametrize("count", counts(), ids=lambda c: c.name)
def test_there_are_no_more_than(count: Count) -> None:
    assert len(count.places) <= count.limit, "\n".join(count.places)


def test_what_counts_as_a_branch() -> None:
    text = "def f(a, b):\n    for x in a:\n        if x and b or not x:\n            return [y for y in b if y]\n    return 1\n"
    assert complexity(ast.parse(text).body[0]) == 1 + 1 + 1 + 2 + 1
