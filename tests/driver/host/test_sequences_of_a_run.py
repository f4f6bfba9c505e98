"""Sequences of which only a run tells the lengths: compiled, replayed from bytes and interpreted, against ONNX's evaluator."""

from __future__ import annotations

import numpy as np
from onnx import helper
from tests.driver.host.ways import BOOL, F32, I64, Ways, infos, model

SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, None))


def test_pieces_that_a_loop_takes_and_lays_in_turned_order() -> None:
    """The loop ends early where a piece is all zeros; what it made by then is joined again."""
    node = helper.make_node
    body = helper.make_graph(
        [
            node("SequenceAt", ["pieces", "k"], ["piece"]),
            node("SequenceInsert", ["before", "piece", "first"], ["after"]),
            node("ReduceMax", ["piece"], ["most"], keepdims=0),
            node("Cast", ["most"], ["on"], to=BOOL),
        ],
        "body",
        [*infos([("k", I64, []), ("go", BOOL, [])]), helper.make_value_info("before", SEQUENCE)],
        [*infos([("on", BOOL, [])]), helper.make_value_info("after", SEQUENCE)],
    )
    made = model(
        [
            node("SplitToSequence", ["x", "n"], ["pieces"], axis=1),
            node("SequenceLength", ["pieces"], ["count"]),
            node("SequenceEmpty", [], ["empty"]),
            node("Loop", ["count", "yes", "empty"], ["turned"], body=body),
            node("ConcatFromSequence", ["turned"], ["y"], axis=1),
            node("SequenceLength", ["turned"], ["z"]),
        ],
        [("x", F32, [2, "columns"]), ("n", I64, [])],
        [("y", F32, [2, None]), ("z", I64, [])],
        {"first": np.array(0), "yes": np.array(True)},
    )
    ways = Ways(made)
    x = np.abs(np.random.default_rng(0).standard_normal((2, 7)).astype(np.float32)) + 1
    ending = np.concatenate([x[:, :4], np.zeros((2, 4), np.float32)], 1)
    for given, n, wanted in (
        (x, 3, np.concatenate([x[:, 6:], x[:, 3:6], x[:, :3]], 1)),
        (x, 9, x),
        (ending, 2, np.concatenate([ending[:, 4:6], x[:, 2:4], x[:, :2]], 1)),
    ):
        ways.check({"x": given, "n": np.array(n)}, wanted=[[wanted, np.array(-(-wanted.shape[1] // n))]])
