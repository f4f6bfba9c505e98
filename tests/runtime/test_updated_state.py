"""States of one shape of which a call changes some rows: caches for a fixed number of tokens, as exporters write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from benchmarks.decoder_state import cache_traffic
from onnx import TensorProto, helper

import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.driver.build import build
from weft.driver.host_model import replay_model
from weft.driver.options import check_options
from weft.runtime import Model

Array = npt.NDArray[Any]
HEADS, ROOM, DEPTH = 2, 6, 8
PAIRS = {"past": "present"}


def by_tuples(g: GraphBuilder, past: str, rows: str, at: str) -> str:
    """Puts rows at index tuples of all dimensions but the last."""
    heads = np.arange(HEADS).reshape(1, HEADS, 1, 1)
    zeros = g.op("Mul", g.op("Reshape", at, g.int64s([1, 1, 1, 1])), g.int64s(0))
    parts = [zeros, g.op("Add", g.constant(heads), zeros), g.op("Reshape", at, g.int64s([1, 1, 1, 1]))]
    tuples = g.op("Concat", *[g.op("Expand", p, g.int64s([1, HEADS, 1, 1])) for p in parts], axis=3)
    return g.op("ScatterND", past, tuples, rows)


def by_index_put(g: GraphBuilder, past: str, rows: str, at: str) -> str:
    """Puts rows as torch's `cache[:, :, at] = rows` is exported: the dimension of the index is brought to the front."""
    turned = g.op("Transpose", past, perm=(2, 0, 1, 3))
    made = g.op("ScatterND", turned, g.op("Unsqueeze", at, g.int64s([1])), g.op("Transpose", rows, perm=(2, 0, 1, 3)))
    return g.op("Transpose", made, perm=(1, 2, 0, 3))


def by_elements(g: GraphBuilder, past: str, rows: str, at: str) -> str:
    """Puts rows as torch's `scatter` does: an index for each element."""
    index = g.op("Expand", g.op("Reshape", at, g.int64s([1, 1, 1, 1])), g.int64s([1, HEADS, 1, DEPTH]))
    return g.op("ScatterElements", past, index, rows, axis=2)


def decoder(update: Callable[..., str]) -> onnx.ModelProto:
    """Returns an attention of one row to a cache with that row put at `at`."""
    g = GraphBuilder("static_cache", 0)
    row, at = g.input("row", (1, HEADS, 1, DEPTH)), g.input("at", (1,), TensorProto.INT64)
    past = g.input("past", (1, HEADS, ROOM, DEPTH))
    present = update(g, past, row, at)
    g.output(present, "present")
    scores = g.op("Softmax", g.op("MatMul", row, g.op("Transpose", present, perm=(0, 1, 3, 2))), axis=-1)
    g.output(g.op("MatMul", scores, present), "y")
    return g.model()


def tensor_scatter() -> onnx.ModelProto:
    """Returns the same by TensorScatter, of a newer ONNX."""
    made = decoder(lambda g, past, rows, at: g.op("Add", past, rows))
    (node,) = [n for n in made.graph.node if n.op_type == "Add"]
    node.CopyFrom(helper.make_node("TensorScatter", [*node.input, "at"], node.output, axis=2))
    made.opset_import[0].version = 24
    return made


MODELS = {
    "tuples": lambda: decoder(by_tuples),
    "index_put": lambda: decoder(by_index_put),
    "elements": lambda: decoder(by_elements),
    "TensorScatter": tensor_scatter,
}


def expected(cache: Array, row: Array) -> Array:
    scores = row @ cache.transpose(0, 1, 3, 2)
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(exp / exp.sum(-1, keepdims=True) @ cache)


@pytest.mark.parametrize("how", MODELS)
def test_rows_are_put_where_the_state_is_and_nothing_is_copied(how: str) -> None:
    made = MODELS[how]().SerializeToString()
    compiled = build(made, options=check_options(state=PAIRS))
    assert [s.in_place for s in compiled.package.states] == [True]
    traffic = cache_traffic(compiled.fused, {})
    assert (traffic.written, traffic.copied) == (HEADS * DEPTH * 4, 0)
    model = weft.compile(made, state=PAIRS, threads=1)
    state, cache, rng = model.new_state(), np.zeros((1, HEADS, ROOM, DEPTH), np.float32), np.random.default_rng(0)
    for at in (0, 1, 2, 1, 5):
        row = rng.standard_normal((1, HEADS, 1, DEPTH)).astype(np.float32)
        cache[:, :, at] = row[:, :, 0]
        (y,) = model.run([row, np.array([at])], state=state)
        np.testing.assert_allclose(y, expected(cache, row), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(state["past"], cache)


PAGES, PAGE = 6, 4


def paged() -> onnx.ModelProto:
    """Returns an attention to a cache in pages: `table` has those of a conversation, `where` the place of its next row."""
    g = GraphBuilder("paged_cache", 0)
    row, table = g.input("row", (1, DEPTH)), g.input("table", ("pages",), TensorProto.INT64)
    where, past = g.input("where", (1, 2), TensorProto.INT64), g.input("past", (PAGES, PAGE, DEPTH))
    present = g.op("ScatterND", past, where, row)
    g.output(present, "present")
    keys = g.op("Reshape", g.op("Gather", present, table), g.int64s([-1, DEPTH]))
    length = g.input("length", (1,), TensorProto.INT64)
    kept = g.op("Slice", keys, g.int64s([0]), length, g.int64s([0]))
    scores = g.op("Softmax", g.op("MatMul", row, g.op("Transpose", kept, perm=(1, 0))), axis=-1)
    g.output(g.op("MatMul", scores, kept), "y")
    return g.model()


def test_pages_are_chosen_by_a_table_and_written_where_they_are() -> None:
    made = paged().SerializeToString()
    compiled = build(made, options=check_options(state=PAIRS))
    assert [s.in_place for s in compiled.package.states] == [True]
    for pages in (1, 3):  # a call reads the rows of what its table names, for scores and for their sum, and moves none
        length = pages * PAGE - 1
        traffic = cache_traffic(compiled.fused, {"pages": pages, "length": length})
        assert (traffic.written, traffic.copied, traffic.read) == (DEPTH * 4, 0, 2 * length * DEPTH * 4)
    model, rng = weft.compile(made, state=PAIRS, threads=1), np.random.default_rng(0)
    state, tables = model.new_state(), ([4, 1, 3], [2, 0])  # two conversations in one memory
    rows: list[list[Array]] = [[], []]
    for step in range(14):
        who, at = step % 2, step // 2
        table = np.array(tables[who][: at // PAGE + 1])
        row = rng.standard_normal((1, DEPTH)).astype(np.float32)
        rows[who].append(row)
        given = {"row": row, "table": table, "where": np.array([[table[-1], at % PAGE]]), "length": np.array([at + 1])}
        (y,) = model.run([given[s.name] for s in model.inputs], state=state)
        np.testing.assert_allclose(
            y, expected(np.concatenate(rows[who])[None, None], row[None, None])[0, 0], rtol=1e-5, atol=1e-5
        )


def test_a_state_that_is_read_before_its_update_is_read_as_it_was() -> None:
    g = GraphBuilder("differences", 0)
    row, at = g.input("row", (1, DEPTH)), g.input("at", (1, 1), TensorProto.INT64)
    past = g.input("past", (ROOM, DEPTH))
    present = g.op("ScatterND", past, at, row)
    g.output(present, "present")
    g.output(
        g.op("Sub", g.op("ReduceSum", present, g.int64s([0]), keepdims=0), g.op("Gather", past, g.int64s([1]))), "y"
    )
    model = weft.compile(g.model().SerializeToString(), state=PAIRS, threads=1)
    cache = np.arange(ROOM * DEPTH, dtype=np.float32).reshape(ROOM, DEPTH)
    state = model.new_state(initial={"past": cache})
    for k in (1, 2, 1):
        before, row_k = cache.copy(), np.full((1, DEPTH), k, np.float32)
        cache[k] = k
        (y,) = model.run([row_k, np.array([[k]])], state=state)
        np.testing.assert_allclose(y, (cache.sum(0) - before[1])[None])
        np.testing.assert_array_equal(state["past"], cache)


def test_a_row_outside_of_the_state_is_refused() -> None:
    model = weft.compile(MODELS["index_put"]().SerializeToString(), state=PAIRS, threads=1)
    state = model.new_state()
    with pytest.raises(weft.RuntimeFailure, match="index 6 is outside"):
        model.run([np.zeros((1, HEADS, 1, DEPTH), np.float32), np.array([ROOM])], state=state)


def test_a_state_whose_transpose_is_read_too_is_read_as_it_was() -> None:
    g = GraphBuilder("changed", 0)
    row, at = g.input("row", (1, HEADS, DEPTH)), g.input("at", (1, 1), TensorProto.INT64)
    turned = g.op("Transpose", g.input("past", (HEADS, ROOM, DEPTH)), perm=(1, 0, 2))
    g.output(g.op("Transpose", g.op("ScatterND", turned, at, row), perm=(1, 0, 2)), "present")
    g.output(g.op("ReduceSum", turned, g.int64s([0]), keepdims=0), "before")
    model = weft.compile(g.model().SerializeToString(), state=PAIRS, threads=1)
    state, ones = model.new_state(), np.ones((1, HEADS, DEPTH), np.float32)
    for k in range(3):
        (before,) = model.run([ones, np.array([[k]])], state=state)
        np.testing.assert_array_equal(before, np.full((HEADS, DEPTH), k, np.float32))
    np.testing.assert_array_equal(state["past"][:, :, 0], [[1, 1, 1, 0, 0, 0]] * HEADS)


def test_a_state_that_is_read_as_it_was_keeps_a_second_buffer() -> None:
    g = GraphBuilder("changed", 0)
    row, at = g.input("row", (1, DEPTH)), g.input("at", (1, 1), TensorProto.INT64)
    past = g.input("past", (ROOM, DEPTH))
    present = g.op("ScatterND", past, at, row)
    g.output(present, "present")
    g.output(g.op("MatMul", present, g.op("Transpose", past, perm=(1, 0))), "y")
    model = weft.compile(g.model().SerializeToString(), state=PAIRS, threads=1)
    assert [s.in_place for s in model.package.states] == [False]
    state, ones = model.new_state(), np.ones((1, DEPTH), np.float32)
    for k, total in enumerate((0, DEPTH)):
        (y,) = model.run([ones, np.array([[k]])], state=state)
        assert y.sum() == total * (k + 1)


def test_several_updates_one_after_another_are_in_one_buffer() -> None:
    """A row is put, another is added to, and elements of a third are put, all in the memory of the state."""
    g = GraphBuilder("updates", 0)
    row, at = g.input("row", (1, DEPTH)), g.input("at", (3, 1, 1), TensorProto.INT64)
    places = [g.op("Squeeze", p, g.int64s([0])) for p in g.split(at, [1, 1, 1], axis=0)]
    made = g.op("ScatterND", g.input("past", (ROOM, DEPTH)), places[0], row)
    made = g.op("ScatterND", made, places[1], row, reduction="add")
    made = g.op("ScatterElements", made, g.op("Expand", places[2], g.int64s([1, DEPTH])), g.op("Neg", row), axis=0)
    g.output(made, "present")
    g.output(g.op("ReduceSum", made, g.int64s([0]), keepdims=0), "y")
    compiled = build(g.model().SerializeToString(), options=check_options(state=PAIRS))
    assert [s.in_place for s in compiled.package.states] == [True]
    assert cache_traffic(compiled.fused, {}).copied == 0
    for package in (compiled.package, replay_model(compiled)):
        model = Model(package, threads=1)
        state, cache, rng = model.new_state(), np.zeros((ROOM, DEPTH), np.float32), np.random.default_rng(0)
        for a, b, c in ((0, 0, 1), (5, 3, 3), (2, 5, 5)):
            row_ = rng.standard_normal((1, DEPTH)).astype(np.float32)
            cache[a] = row_
            cache[b] += row_[0]
            cache[c] = -row_
            (y,) = model.run([row_, np.array([a, b, c]).reshape(3, 1, 1)], state=state)
            np.testing.assert_array_equal(state["past"], cache)
            np.testing.assert_allclose(y, cache.sum(0), rtol=1e-5, atol=1e-6)
