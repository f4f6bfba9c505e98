"""What the page is told: three graphs that know of one another, kernels in the order of their time, and the arena."""

from __future__ import annotations

import json
from itertools import combinations

from tests.models import conv_bn_relu, mlp, tiny_bert_layer, tiny_gpt2_decode
from tests.report.pages import facts_of

from weft.cli.report.graphs import draw_calls, draw_model, draw_optimized
from weft.cli.report.page_data import Timing
from weft.driver.build import Compilation, build
from weft.driver.options import CompileOptions


def test_every_node_is_a_box_and_knows_its_calls(made: Compilation) -> None:
    boxes = [b for b in draw_model(made.source, made.fused).boxes if b.kind not in ("input", "output")]
    assert [b.title for b in boxes] == [n.op for n in made.source.nodes]
    named = {dict(b.facts).get("for", ""): b for b in boxes}
    for step, g in enumerate(made.fused.groups):
        for name in g.source.split(", "):
            assert step in named[name].calls
    assert {step for b in boxes for step in b.calls} == set(range(len(made.fused.groups)))


def test_what_no_call_computes_goes_into_one() -> None:
    """The layer norm is recognized by its last node; those before it are merged into it."""
    made = build(tiny_bert_layer().SerializeToString())
    boxes = facts_of(made)["graphs"]["model"]["boxes"]
    norms = [step for step, g in enumerate(made.fused.groups) if any(n.op == "layer_norm" for n in g.nodes)]
    roots = [b for b in boxes if b["title"] == "sqrt"]
    assert [b["calls"] for b in roots] == [[], []]
    assert [b["into"] for b in roots] == [[n] for n in norms]
    assert all(bool(b["into"]) != bool(b["calls"]) for b in boxes if b["kind"] != "output")


def test_nodes_of_one_call_are_joined_inside(made: Compilation) -> None:
    drawing = draw_optimized(made.fused)
    calls = [b.calls for b in drawing.boxes]
    assert any(a.inside for a in drawing.arrows)
    for a in drawing.arrows:
        assert a.inside == (bool(calls[a.begin]) and calls[a.begin] == calls[a.end])


def test_calls_read_what_other_calls_write(made: Compilation) -> None:
    drawing = draw_calls(made.fused)
    boxes = drawing.boxes
    assert [b.calls for b in boxes if b.calls] == [(n,) for n in range(len(made.fused.groups))]
    read = {n: {a.begin for a in drawing.arrows if a.end == n} for n in range(len(boxes))}
    assert all(read[n] for n, b in enumerate(boxes) if b.kind != "input")
    assert all(a.begin < a.end for a in drawing.arrows)


def test_a_call_that_reads_part_of_a_buffer_depends_on_who_wrote_that_part() -> None:
    """The step of a decoder writes keys and values beside one another; all that it computes is read by a call or by a guard."""
    fused = build(tiny_gpt2_decode().SerializeToString()).fused
    drawing = draw_calls(fused)
    guarded = {v for g in fused.graph.guards for v in (g.least, g.greatest)}
    looked_at = {n for n, g in enumerate(fused.groups) if guarded.issuperset(g.outputs)}
    assert looked_at
    read = {n for n, b in enumerate(drawing.boxes) if b.kind != "output" and looked_at.isdisjoint(b.calls)}
    assert {a.begin for a in drawing.arrows} == read


def test_kernels_come_by_their_time(made: Compilation, timing: Timing) -> None:
    facts = facts_of(made, timing)
    times = [k["timing"]["seconds"] * k["calls"] for k in facts["kernels"]]
    assert times == sorted(times, reverse=True)
    names = [k["name"] for k in facts["kernels"]]
    keys = {key: k.name for key, k in made.kernels.items()}
    assert [names[c["kernel"]] for c in facts["calls"]] == [keys[g.key] for g in made.fused.groups]
    inspected = {n: k.name for n, k in enumerate(made.kernels.values(), 1)}
    assert all(inspected[k["number"]] == k["name"] for k in facts["kernels"])
    assert facts["roofs"]["levels"][-1] == {"name": "DRAM", "bandwidth": 10.0, "capacity": None}


def test_without_times(made: Compilation) -> None:
    facts = facts_of(made)
    assert facts["roofs"] is None
    assert [k["name"] for k in facts["kernels"]] == [k.name for k in made.kernels.values()]
    assert all(k["timing"] is None for k in facts["kernels"])


def test_buffers_that_live_together_are_apart(made: Compilation) -> None:
    memory = facts_of(made)["memory"]
    assert memory["buffers"]
    for b in memory["buffers"]:
        assert 0 <= b["offset"] <= b["offset"] + b["bytes"] <= memory["size"]
        assert 0 <= b["first"] <= b["last"] < len(made.fused.groups)
    for a, b in combinations(memory["buffers"], 2):
        together = a["first"] <= b["last"] and b["first"] <= a["last"]
        assert not together or a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]


def test_what_takes_over_a_buffer_is_told() -> None:
    proto = conv_bn_relu(stride=2)  # in blocks, so that the last map's buffer is not the output
    made = build(proto.SerializeToString(), options=CompileOptions(opt_level=3, without=("fusion",)))
    memory = facts_of(made)["memory"]
    assert {v.name for v in made.plan.in_place} == {name for b in memory["buffers"] for name in b["later"]}
    assert made.plan.in_place


def test_all_of_it_is_json(made: Compilation, timing: Timing) -> None:
    facts = facts_of(made, timing)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_a_small_network_in_full() -> None:
    """Two layers are two calls, each of a product, what is added to it, and its function."""
    made = build(mlp(batch=2, widths=(24, 32, 10)).SerializeToString())
    facts = facts_of(made)
    titles = [b["title"] for b in facts["graphs"]["calls"]["boxes"]]
    assert titles == ["x", "matmul_packed + relu", "matmul_packed", "y"]
    assert [b["kind"] for b in facts["graphs"]["calls"]["boxes"]] == ["input", "contraction", "contraction", "output"]
    assert facts["sizes"]["calls"] == facts["sizes"]["kernels"] == 2
    assert facts["inputs"] == ["x: f32[2, 24]"]
