"""The benchmark of a decoder with state: what it counts of caches, and that both runtimes say the same."""

from __future__ import annotations

import onnx
import pytest
from benchmarks import decoder_state

from weft.cli.onnx_builder import GraphBuilder
from weft.driver.build import build
from weft.driver.options import check_options
from weft.graph import FusedGraph

SMALL = decoder_state.Size(layers=1, heads=2, width=32, vocabulary=40)
SIZES = {"new": 1, "past_and_one": 8}
ROW = 32 * 4


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return SMALL.model()


def fused(model: onnx.ModelProto, pairs: dict[str, str]) -> FusedGraph:
    options = check_options(state=pairs, capacity={"past_*": 64})
    return build(model.SerializeToString(), options=options).fused


def test_caches_are_read_once_and_nothing_of_them_is_copied(model: onnx.ModelProto) -> None:
    found = decoder_state.cache_traffic(fused(model, decoder_state.PAIRS), SIZES)
    assert (found.read, found.written, found.copied) == (2 * 8 * ROW, 2 * ROW, 0)


def test_a_state_that_a_call_writes_to_a_second_buffer_is_copied() -> None:
    g = GraphBuilder("shifted", 0)
    kept = g.op(
        "Concat", g.op("Slice", g.input("h", (4, 8)), *[g.int64s([n]) for n in (1, 4, 0)]), g.input("x", (1, 8)), axis=0
    )
    g.output(kept, "next_h")
    options = check_options(state={"h": "next_h"})
    found = decoder_state.cache_traffic(build(g.model().SerializeToString(), options=options).fused, {})
    assert found.copied == 4 * 8 * 4  # the kernel of the concatenation writes the new row like the others


def test_both_runtimes_say_the_same(model: onnx.ModelProto) -> None:
    found = decoder_state.measure([decoder_state.Weft(model), decoder_state.Bound(model, SMALL)], 1, 40)
    assert found.tokens[0] == found.tokens[1]
    assert len(found.tokens[0]) == 41
    assert len(found.turns) == 2
