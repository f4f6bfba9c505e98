"""Caches in pages are read where they lie by products of one row, and no copy is made of the pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from benchmarks.decoder_state import cache_traffic
from onnx import TensorProto
from tests.graph.checks import apply_pass, ops

import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.driver.build import build
from weft.driver.options import check_options
from weft.graph import Graph, Value, fuse
from weft.graph.passes.states.read_pages import read_pages
from weft.support.dtypes import f32, i64

COUNT, PAGE, HEADS, DEPTH = 5, 4, 2, 8
TABLES: dict[str, tuple[int, ...]] = {"one": (3,), "a batch": (2, 3)}


def keys(g: Graph, layout: str, table: Sequence[int], *, cut: bool = False) -> Value:
    """Returns the keys [*batch, heads, depth, rows] that a table chooses among pages of a *layout*."""
    shape = {"rows": (PAGE, HEADS, DEPTH), "heads": (HEADS, PAGE, DEPTH), "flat": (PAGE, HEADS * DEPTH)}[layout]
    x = g.add("gather", [g.input("pages", (COUNT, *shape), f32), g.input("table", table, i64)], axis=0)
    lead = len(table)
    if layout == "heads":
        x = g.add("transpose", [x], perm=(*range(lead), lead + 1, lead, lead + 2))
    x = g.add("reshape", [x], shape=(*table[:-1], table[-1] * PAGE, HEADS, DEPTH))
    if cut:
        x = g.add("slice", [x], starts=(0,), ends=(table[-1] * PAGE - 3,), axes=(lead - 1,), steps=(1,))
    return g.add("transpose", [x], perm=(*range(lead - 1), lead, lead + 1, lead - 1))


def product(right: Value, g: Graph, rows: int = 1) -> Graph:
    query = g.input("q", (*right.shape[:-2], rows, DEPTH), f32)
    g.output(g.add("matmul", [query, right]), "y")
    return g


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("layout", ["rows", "heads", "flat"])
def test_pages_are_looked_up(layout: str, table: tuple[int, ...], cut: bool) -> None:
    g = Graph()
    made = apply_pass(product(keys(g, layout, table, cut=cut), g), read_pages, exact=True)
    first = ["reshape"] if layout == "flat" else []
    assert ops(made) == [*first, "gather_pages", "transpose", "matmul"]
    whole = fuse(made, read_once=True)
    assert ["+".join(n.op for n in group.nodes) for group in whole.groups] == ["gather_pages+transpose+matmul"]


def test_of_more_rows_the_pages_are_gathered() -> None:
    g = Graph()
    graph = product(keys(g, "rows", (3,)), g, rows=2)
    assert apply_pass(graph, read_pages) is graph


@pytest.mark.parametrize("perm", [(0, 3, 2, 1), (2, 1, 0, 3), (1, 0, 2, 3)])
def test_rows_in_another_order_are_gathered(perm: tuple[int, ...]) -> None:
    g = Graph()
    pages, table = g.input("pages", (COUNT, 3, HEADS, DEPTH), f32), g.input("table", (3,), i64)
    turned = g.add("transpose", [g.add("gather", [pages, table], axis=0)], perm=perm)
    rows = g.add("reshape", [turned], shape=(9, HEADS, DEPTH))
    graph = product(g.add("transpose", [rows], perm=(1, 2, 0)), g)
    assert "gather" in ops(apply_pass(graph, read_pages))


def test_what_vectors_run_along_stays() -> None:
    """A matrix whose neighbours in memory neither the sum nor the columns run along is copied first."""
    for perm, wanted in (((2, 0, 1), 1), ((0, 2, 1), 1), ((2, 1, 0), 1), ((1, 2, 0), 1), ((0, 1, 2), 1)):
        g = Graph()
        x = g.add("transpose", [g.input("x", (3, 4, 5), f32)], perm=perm)
        y = g.add("matmul", [g.input("q", (x.shape[0], 1, x.shape[1]), f32), x])
        g.output(y, "y")
        apart = perm[0] == 2
        assert len(fuse(g, read_once=True).groups) == wanted + apart
        assert len(fuse(g).groups) >= wanted + apart


def decoder(*, heads_first: bool) -> bytes:
    """Returns a step of a decoder, whose keys and values are in pages: it puts a row, and attends to all of a table's."""
    g = GraphBuilder("paged", 0)
    q, length = g.input("q", (HEADS, 1, DEPTH)), g.input("length", (1,), TensorProto.INT64)
    table, where = g.input("table", ("n",), TensorProto.INT64), g.input("where", (1, 2), TensorProto.INT64)

    def rows(name: str) -> str:
        shape = (COUNT, HEADS, PAGE, DEPTH) if heads_first else (COUNT, PAGE, HEADS, DEPTH)
        past = g.input(f"past_{name}", shape)
        row = g.input(f"{name}_row", (1, HEADS, DEPTH))
        if heads_first:
            turned = g.op("Transpose", past, perm=(0, 2, 1, 3))
            present = g.op("Transpose", g.op("ScatterND", turned, where, row), perm=(0, 2, 1, 3))
            chosen = g.op("Transpose", g.op("Gather", present, table), perm=(0, 2, 1, 3))
        else:
            present = g.op("ScatterND", past, where, row)
            chosen = g.op("Gather", present, table)
        g.output(present, f"present_{name}")
        whole = g.op("Reshape", chosen, g.int64s([-1, HEADS, DEPTH]))
        return g.op("Slice", whole, g.int64s([0]), length, g.int64s([0]))

    k, v = rows("k"), rows("v")
    scores = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=(1, 2, 0))), axis=-1)
    g.output(g.op("MatMul", scores, g.op("Transpose", v, perm=(1, 0, 2))), "y")
    made: bytes = g.model().SerializeToString()
    return made


@pytest.mark.parametrize("heads_first", [False, True])
def test_a_decoder_copies_no_page(heads_first: bool) -> None:
    pairs = {"past_*": "present_*"}
    made = decoder(heads_first=heads_first)
    compiled = build(made, options=check_options(state=pairs))
    traffic = cache_traffic(compiled.fused, {"n": 3, "length": 9, "length_1": 9})
    row = HEADS * DEPTH * 4
    assert (traffic.read, traffic.written, traffic.copied) == (2 * 9 * row, 2 * row, 0)
    model, rng = weft.compile(made, state=pairs, threads=1), np.random.default_rng(0)
    state, table = model.new_state(), [4, 1, -3]
    kept: dict[str, list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]] = {"k": [], "v": []}
    for step in range(3 * PAGE):
        page, slot = table[step // PAGE], step % PAGE
        given = {f"{n}_row": rng.standard_normal((1, HEADS, DEPTH)).astype(np.float32) for n in kept}
        for n, rows in kept.items():
            rows.append(given[f"{n}_row"][0])
        q = rng.standard_normal((HEADS, 1, DEPTH)).astype(np.float32)
        numbers = {"table": table[: step // PAGE + 1], "where": [[page, slot]], "length": [step + 1]}
        every = {"q": q, **given, **{n: np.array(v) for n, v in numbers.items()}}
        (y,) = model.run([every[s.name] for s in model.inputs], state=state)
        k, v = (np.stack(rows).transpose(1, 0, 2) for rows in kept.values())
        scores = np.exp(q @ k.transpose(0, 2, 1))
        np.testing.assert_allclose(y, scores / scores.sum(-1, keepdims=True) @ v, rtol=1e-5, atol=1e-5)
    every["table"] = np.array([0, 5])
    with pytest.raises(weft.RuntimeFailure, match="index 5 is outside of -5 to 4"):
        model.run([every[s.name] for s in model.inputs], state=model.new_state())
