"""Sequences whose type tells no number of dimensions: it is that of what was put in, or of the declared result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from tests.frontends.onnx.nodes import Array, floats, node
from tests.frontends.onnx.operators.held_feeds import run_held
from tests.frontends.onnx.operators.test_late_sequences import NUMBER, assert_like, body, sequence_model, sequence_type

from weft.frontends.onnx.importer import from_onnx
from weft.graph import eliminate_dead_code
from weft.support.errors import InputError, ModelError, UnknownValues

X = floats(2, 3)
PAIR = [X, floats(1, 3, seed=1)]
ANY_FLOATS = (TensorProto.FLOAT, [2, 3])


def declared(model: ModelProto, *values: ValueInfoProto) -> ModelProto:
    """Returns *model* with the types of values inside of it."""
    model.graph.value_info.extend(values)
    return model


def of_any_rank(nodes: Sequence[NodeProto], **inputs: Any) -> ModelProto:
    return sequence_model(nodes, dims=None, **inputs)


def tensor(name: str, *sizes: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)


def test_the_rank_that_the_result_declares() -> None:
    model = declared(of_any_rank([node("SequenceAt", "s p", "e"), node("Neg", "e")], p=NUMBER), tensor("e", "a", "b"))
    graph = from_onnx(model)
    given = [floats(4), *PAIR]  # those that are not read may have others
    for p in (1, -1):
        assert_like(run_held(graph, {"s": given, "p": np.array(p)}, ["y"])[0], -given[p])
    with pytest.raises(InputError, match="SequenceAt /e: its tensor has 1 dimensions, and the model declares 2"):
        run_held(graph, {"s": given, "p": np.array(0)}, ["y"])


@pytest.mark.parametrize("new", [0, 1])
def test_the_rank_of_all_that_are_put_together(new: int) -> None:
    made = node("ConcatFromSequence", "s", "e", axis=0, new_axis=new)
    graph = from_onnx(declared(of_any_rank([made, node("Neg", "e")]), tensor("e", *"abc"[: 2 + new])))
    given = [X, X + 1] if new else PAIR
    wanted = np.stack(given) if new else np.concatenate(given)
    assert_like(run_held(graph, {"s": given}, ["y"])[0], -wanted)
    with pytest.raises(InputError, match="its sequence has tensors of another rank than 2, which the model declares"):
        run_held(graph, {"s": [X, X[0]]}, ["y"])


def test_what_was_put_in_last() -> None:
    nodes = [
        node("Constant", "", "last", value_int=-1),
        node("Constant", "", "one_before", value_int=-2),
        node("SequenceInsert", "s x", "longer"),
        node("SequenceInsert", "longer z", "both"),
        node("SequenceErase", "both last", "again"),
        node("SequenceAt", "both one_before", "e"),
        node("SequenceAt", "again last", "f"),
        node("Add", "e f"),
    ]
    graph = from_onnx(of_any_rank(nodes, x=ANY_FLOATS, z=(TensorProto.FLOAT, [])))
    found = run_held(graph, {"s": [X[0]], "x": X, "z": np.array(3, np.float32)}, ["y"])[0]
    assert_like(found, X + X)
    assert not [n for n in eliminate_dead_code(graph).nodes if n.op == "concat"]  # nothing is copied to be read


def loop_from_nothing(nodes: Sequence[NodeProto]) -> ModelProto:
    """Returns a loop of 20 iterations whose state is an empty sequence at first."""
    made: GraphProto = body(nodes, sequence_type(None))
    outer = [
        *[node("Constant", "", name, value_int=k) for name, k in (("zero", 0), ("last", -1), ("count", 20))],
        node("SequenceEmpty", "", "empty"),
        node("Loop", "count - empty", "all", body=made),
        node("ConcatFromSequence", "all", axis=0),
    ]
    model = sequence_model(outer, dims=("n", "m"), x=ANY_FLOATS)
    del model.graph.input[0]
    return model


def guarded(then: Sequence[NodeProto], *names: str) -> NodeProto:
    """Returns *then* where it is not the first iteration, else *x*."""
    of_then, of_other = (helper.make_empty_tensor_value_info(n) for n in names)
    first = helper.make_graph([node("Identity", "x", names[1])], "other", [], [of_other])
    return node("If", "later", "v", then_branch=helper.make_graph(then, "then", [], [of_then]), else_branch=first)


def test_a_sequence_that_is_empty_at_first_is_read_in_later_iterations() -> None:
    nodes = [
        node("Greater", "k zero", "later"),
        guarded([node("SequenceAt", "before last", "p"), node("Add", "p x", "t")], "t", "e"),
        node("SequenceInsert", "before v", "after"),
    ]
    model = loop_from_nothing(nodes)
    wanted = np.concatenate([X * np.float32(k) for k in range(1, 21)])
    np.testing.assert_allclose(run_held(from_onnx(model), {"x": X}, ["y"])[0], wanted, rtol=1e-5)
    assert_like(_by_onnxruntime(model).shape, wanted.shape)


def _by_onnxruntime(model: ModelProto) -> Array:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": X})[0])


def test_a_body_that_fits_no_rank_is_refused_for_what_it_does_first() -> None:
    nodes = [
        node("SequenceAt", "before last", "p"),
        node("Unsqueeze", "p zeros", "q"),
        node("Constant", "", "zeros", value_ints=[0]),
        node("SequenceInsert", "before q", "after"),
    ]
    with pytest.raises(ModelError, match="SequenceAt /p: its position is -1, and there are 0"):
        from_onnx(loop_from_nothing([nodes[2], nodes[0], nodes[1], nodes[3]]))


def test_a_rank_that_nothing_tells_is_asked_for() -> None:
    with pytest.raises(UnknownValues) as refused:
        from_onnx(of_any_rank([node("SequenceAt", "s p")], p=NUMBER))
    assert "the number of dimensions of its result is that of the tensors of a sequence" in str(refused.value)
    assert "declare the rank of the sequence's tensors, or of the result in the model's value_info" in str(
        refused.value
    )
