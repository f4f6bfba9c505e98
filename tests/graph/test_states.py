"""States in graphs: how they are declared, printed and saved, and what of them a call touches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks.decoder_state import cache_traffic
from tests.decoders import grouped_decoder, growing_decoder

import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.driver.build import build
from weft.driver.options import check_options
from weft.frontends import to_graph
from weft.graph import Graph, declare_states, print_graph, verify_graph
from weft.graph.core.saved_graph import load_graph, save_graph

PAIRS = {"past_*": "present_*"}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """A decoder of one layer, as it is imported."""
    return to_graph(growing_decoder(layers=1).SerializeToString())


def test_states_come_last_and_are_printed(graph: Graph) -> None:
    made = declare_states(graph, PAIRS, {"past_*": 48})
    verify_graph(made)
    assert [v.name for v in made.inputs] == ["ids", "past_k0", "past_v0"]
    assert made.output_names == ["logits", "present_k0", "present_v0"]
    text = print_graph(made)
    assert "  state past_k0 becomes present_k0_memory, grows along 2 from (past_and_one" in text
    assert " - 1) of 48\n" in text
    assert [s.name for s in graph.states] == []


def test_graphs_with_states_are_files(graph: Graph, tmp_path: Path) -> None:
    made = declare_states(graph, PAIRS, {"past_*": 48})
    save_graph(made, tmp_path / "graph.npz", {})
    assert print_graph(load_graph(tmp_path / "graph.npz")[0]) == print_graph(made)


def test_a_call_reads_a_cache_where_it_is_and_writes_new_rows_alone() -> None:
    """Of the memory of a state, only products read, and only the append writes: nothing copies it."""
    options = check_options(state=PAIRS, capacity={"past_*": 48})
    fused = build(growing_decoder().SerializeToString(), options=options).fused
    caches = {*fused.graph.inputs[1:], *fused.graph.outputs[1:]}
    assert len(caches) == 8
    used = {n.op for g in fused.groups for n in g.nodes if caches.intersection(v for v in n.inputs if v is not None)}
    assert used == {"append", "matmul_rows"}
    appends = [n for g in fused.groups for n in g.nodes if n.op == "append"]
    assert len(appends) == 4
    for n in appends:
        assert n.attribute("in_place")
        rows = n.inputs[1]
        assert rows is not None
        assert rows.shape[2] is fused.graph.dims["new"]


def test_heads_that_queries_share_are_not_copied_for_each() -> None:
    options = check_options(state=PAIRS, capacity={"past_*": 48})
    fused = build(grouped_decoder().SerializeToString(), options=options).fused
    traffic = cache_traffic(fused, {"new": 1, "past_and_one": 9})
    assert (traffic.read, traffic.copied) == (2 * 2 * 9 * 8 * 4, 0)


@pytest.mark.parametrize(
    ("pairs", "capacity", "message"),
    [
        ({"cache_*": "present_*"}, {}, "no input is called cache_*, which is to be a state"),
        (
            {"past_*": "next_*"},
            {},
            "the input past_k0 is to become the output next_k0, which there is not\n"
            "  hint: the model's outputs are present_k0, present_v0, logits",
        ),
        ({"past_*": "present"}, {}, "past_* and present have different numbers of *"),
        ({**PAIRS, "past_k0": "present_v0"}, {}, "the input past_k0 is matched twice, at last by past_k0"),
        ({"past_k0": "present_k0", "past_v0": "present_k0"}, {}, "both past_k0 and past_v0 are to become the output"),
        (
            PAIRS,
            {},
            "the state past_k0 grows along axis 2\n  hint: give the most rows that it may ever have: capacity=",
        ),
        (PAIRS, {"past_*": 8, "other": 8}, "capacity names other, which is no state that grows"),
        ({"ids": "logits"}, {}, "ids is i64[1, new], and logits, which it is to become, is f32[1, 40]"),
        (
            {"past_k0": "present_v0"},
            {},
            "past_k0 is f32[1, 2, past, 16], and present_v0, which it is to become, is f32[1, 2, (new + past), 16], but not as",
        ),
    ],
)
def test_states_that_can_not_be_are_refused(
    graph: Graph, pairs: Mapping[str, str], capacity: Mapping[str, int], message: str
) -> None:
    with pytest.raises(weft.ModelError) as refused:
        declare_states(graph, pairs, capacity)
    assert message in str(refused.value)


def test_hidden_states_of_a_step_of_an_lstm_are_never_copied() -> None:
    g = GraphBuilder("cell", 0)
    x, h, c = g.input("x", (1, 8)), g.input("h", (1, 8)), g.input("c", (1, 8))
    made = g.op("Add", g.op("MatMul", x, g.normal((8, 8), 0.3)), g.op("MatMul", h, g.normal((8, 8), 0.3)))
    gate = g.op("Sigmoid", made)
    cell = g.op("Add", g.op("Mul", gate, c), g.op("Tanh", made))
    g.output(cell, "next_c")
    g.output(g.op("Tanh", cell), "next_h")
    options = check_options(state={"h": "next_h", "c": "next_c"})
    compiled = build(g.model().SerializeToString(), options=options)
    assert [(s.axis, s.in_place) for s in compiled.package.states] == [(None, True), (None, True)]


def test_the_kernel_that_writes_a_state_where_it_is_knows_it_of_a_reshaped_one() -> None:
    g = GraphBuilder("mean", 0)
    x, mean = g.input("x", (4,)), g.input("mean", (2, 2))
    made = g.op("Add", g.op("Mul", g.op("Reshape", mean, g.int64s([4])), g.scalar(0.5)), x)
    g.output(g.op("Reshape", made, g.int64s([2, 2])), "next_mean")
    compiled = build(g.model().SerializeToString(), options=check_options(state={"mean": "next_mean"}))
    assert [s.in_place for s in compiled.package.states] == [True]
    assert [r.may_alias for r in compiled.requests.values()] == [True]
