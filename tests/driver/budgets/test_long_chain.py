"""Importing takes time in proportion to the number of nodes: 3 seconds for 20,000 of them."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
from onnx import ModelProto, NodeProto, helper
from tests.driver.budgets.bombs import chain

from weft.frontends.onnx.importer import from_onnx

MOST_CALLS = 250
"""Calls of Python functions for each node; an operator of two inputs takes some 190."""


def link(a: str, b: str) -> list[NodeProto]:
    return [helper.make_node("Sigmoid", [a], [f"{b}s"]), helper.make_node("Add", [f"{b}s", a], [b])]


def calls(model: ModelProto) -> int:
    """Returns how many calls of functions importing *model* takes."""
    count = 0

    def noted(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    data = model.SerializeToString()
    sys.setprofile(noted)
    try:
        from_onnx(data)
    finally:
        sys.setprofile(None)
    return count


def test_the_work_is_in_proportion_to_the_nodes() -> None:
    _ = calls(chain(1, link))  # what is done once
    short, long = calls(chain(100, link)), calls(chain(1_000, link))
    assert long < short * 10.5
    assert long < 2_000 * MOST_CALLS


@pytest.mark.timed
def test_twenty_thousand_nodes_take_three_seconds() -> None:
    data = chain(10_000, link).SerializeToString()
    start = time.process_time()
    graph = from_onnx(data)
    assert time.process_time() - start < 3
    assert len(graph.nodes) == 20_000
