"""Sizes that only a run tells, from models to results: compiled, replayed and interpreted, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.helper import make_node as node
from tests.driver.host.ways import BOOL, F32, I64, Array, Info, Values, Ways, model

from weft.driver.build import build
from weft.driver.host_model import replay_model
from weft.graph import print_graph
from weft.runtime import Model, load
from weft.support.errors import InputError, ModelError, RuntimeFailure

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.array([[1, 0, 2], [0, 0, 3]], np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


Case = tuple[Sequence[onnx.NodeProto], Sequence[Info], Sequence[Info], dict[str, object], Sequence[Values]]

CASES: dict[str, Case] = {
    "nonzero": (
        [node("NonZero", ["x"], ["y"])],
        [("x", F32, [2, 3])],
        [("y", I64, [2, None])],
        {},
        [{"x": ROW}, {"x": ROW * 0}, {"x": ROW + 1}],
    ),
    "compress": (
        [node("Compress", ["x", "c"], ["y"], axis=1), node("Mul", ["y", "y"], ["z"]), node("Relu", ["z"], ["w"])],
        [("x", F32, ["b", 3]), ("c", BOOL, [3])],
        [("w", F32, ["b", None])],
        {},
        [{"x": ROW, "c": np.array(c)} for c in ([True, False, True], [True] * 3, [False] * 3)],
    ),
    "reshape": (
        [node("Reshape", ["x", "s"], ["y"])],
        [("x", F32, [2, 3, 4]), ("s", I64, [2])],
        [("y", F32, [None, None])],
        {},
        [{"x": X, "s": ints(*s)} for s in ([4, 6], [-1, 3], [0, 12])],
    ),
    "expand": (
        [node("Expand", ["x", "s"], ["y"])],
        [("x", F32, [3, 1]), ("s", I64, [3])],
        [("y", F32, [None, None, None])],
        {},
        [{"x": X[0, :, :1].copy(), "s": ints(*s)} for s in ([2, 3, 4], [1, 1, 1])],
    ),
    "slice": (
        [node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
        [("x", F32, [2, 3, 4]), ("s", I64, [2]), ("e", I64, [2])],
        [("y", F32, [None, None, None])],
        {"a": ints(1, 2), "t": ints(1, 2)},
        [
            {"x": X, "s": ints(*s), "e": ints(*e)}
            for s, e in (([0, 0], [2, 3]), ([1, 0], [99, 99]), ([-2, -3], [-1, 4]))
        ],
    ),
    "slice_backwards": (
        [node("Slice", ["x", "s", "e", "a", "t"], ["y"]), node("Relu", ["y"], ["z"])],
        [("x", F32, [2, 3, 4]), ("s", I64, [2]), ("e", I64, [2])],
        [("z", F32, [None, None, None])],
        {"a": ints(1, 2), "t": ints(-1, -2)},
        [{"x": X, "s": ints(*s), "e": ints(*e)} for s, e in (([2, 3], [0, 0]), ([9, 3], [-99, 0]), ([0, 0], [2, 3]))],
    ),
    "range": (
        [node("Range", ["a", "b", "c"], ["y"])],
        [("a", I64, []), ("b", I64, []), ("c", I64, [])],
        [("y", I64, [None])],
        {},
        [dict(zip("abc", map(np.array, v), strict=True)) for v in ((0, 10, 3), (5, -5, -2), (3, 3, 1), (4, 1, 1))],
    ),
    "tile": (
        [node("Tile", ["x", "r"], ["y"])],
        [("x", F32, [2, 3]), ("r", I64, [2])],
        [("y", F32, [None, None])],
        {},
        [{"x": ROW, "r": ints(*r)} for r in ([1, 1], [2, 3])],
    ),
    "pad": (
        [node("Pad", ["x", "p"], ["y"]), node("Pad", ["x", "p"], ["z"], mode="reflect")],
        [("x", F32, [3, 4]), ("p", I64, [4])],
        [("y", F32, [None, None]), ("z", F32, [None, None])],
        {},
        [{"x": X[0], "p": ints(*p)} for p in ([1, 2, 0, 1], [0, 0, 0, 0])],
    ),
    "constant_of_shape": (
        [node("ConstantOfShape", ["s"], ["y"]), node("Exp", ["y"], ["z"])],
        [("s", I64, [2])],
        [("z", F32, [None, None])],
        {},
        [{"s": ints(*s)} for s in ([1, 2], [3, 5], [0, 4])],
    ),
    "top_k": (
        [node("TopK", ["x", "k"], ["v", "i"])],
        [("x", F32, [3, 4]), ("k", I64, [1])],
        [("v", F32, [3, None]), ("i", I64, [3, None])],
        {},
        [{"x": X[0] % 5, "k": ints(k)} for k in (1, 4)],
    ),
    "one_hot": (
        [node("OneHot", ["x", "d", "v"], ["y"])],
        [("x", I64, [3]), ("d", I64, []), ("v", F32, [2])],
        [("y", F32, [3, None])],
        {},
        [{"x": ints(0, 2, 1), "d": np.array(d), "v": np.array([0, 1], np.float32)} for d in (3, 5)],
    ),
    "unique": (
        [node("Unique", ["x"], ["y", "i", "w", "n"])],
        [("x", F32, [6])],
        [("y", F32, [None]), ("i", I64, [None]), ("w", I64, [None]), ("n", I64, [None])],
        {},
        [{"x": np.array(v, np.float32)} for v in ([2, 1, 1, 3, 4, 3], [5] * 6)],
    ),
    "unique_rows": (
        [node("Unique", ["x"], ["y", "i", "w", "n"], axis=0, sorted=0)],
        [("x", F32, [4, 2])],
        [("y", F32, [None, 2]), ("i", I64, [None]), ("w", I64, [None]), ("n", I64, [None])],
        {},
        [{"x": np.array([[1, 0], [0, 3], [1, 0], [0, 2]], np.float32)}],
    ),
    "a_sum_of_nothing": (
        [
            node("NonZero", ["x"], ["at"]),
            node("Transpose", ["at"], ["t"]),
            node("GatherND", ["w", "t"], ["g"]),
            node("Softmax", ["g"], ["y"]),
            node("ReduceSum", ["g"], ["r"], keepdims=0),
        ],
        [("x", F32, [2, 3]), ("w", F32, [2, 3])],
        [("y", F32, [None]), ("r", F32, [])],
        {},
        [{"x": v, "w": X[0, :2, :3].copy()} for v in (ROW, ROW + 1, ROW * 0)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_against_the_reference(name: str) -> None:
    nodes, inputs, outputs, constants, feeds = CASES[name]
    Ways(model(nodes, inputs, outputs, constants)).check(*feeds)


@pytest.mark.parametrize("name", ["compress"])
def test_compiled_as_c(name: str) -> None:
    nodes, inputs, outputs, constants, feeds = CASES[name]
    Ways(model(nodes, inputs, outputs, constants), "c").check(*feeds)


def test_boxes_that_are_left() -> None:
    """The corners of a box may be given in any order, and the first of equal scores is the best."""
    nodes = [node("NonMaxSuppression", ["b", "s", "m", "o", "t"], ["y"])]
    inputs: list[Info] = [("b", F32, [1, 3, 4]), ("s", F32, [1, 2, 3]), ("m", I64, [1])]
    ways = Ways(
        model(
            nodes, inputs, [("y", I64, [None, 3])], {"o": np.array([0.5], np.float32), "t": np.array([0.1], np.float32)}
        )
    )
    boxes = np.array([[[0, 0, 1, 1], [1, 1.125, 0, 0.125], [0, 10, 1, 11]]], np.float32)
    scores = np.array([[[0.75, 0.75, 0.5], [0.05, 0.05, 0.0625]]], np.float32)
    feeds = [{"b": boxes, "s": scores, "m": ints(m)} for m in (3, 1, 0)]
    wanted = [[np.array(rows, np.int64).reshape(-1, 3)] for rows in ([[0, 0, 0], [0, 0, 2]], [[0, 0, 0]], [])]
    ways.check(*feeds, wanted=wanted)


def test_a_saved_model_tells_which_sizes_are_late(tmp_path: Path) -> None:
    nodes, inputs, outputs, constants, feeds = CASES["compress"]
    made = build(model(nodes, inputs, outputs, constants))
    Model(made.package).save(tmp_path / "late.weft")
    again = load(tmp_path / "late.weft", threads=1)
    assert [(s.shape, s.late) for s in again.outputs] == [(("b", "found"), True)]
    assert not any(s.late for s in again.inputs)
    np.testing.assert_array_equal(again(**feeds[0]), (ROW * ROW)[:, [0, 2]])


def test_graph_text() -> None:
    nodes, inputs, outputs, constants, _ = CASES["compress"]
    text = print_graph(build(model(nodes, inputs, outputs, constants)).source)
    assert "  late size found = nonzero_positions_1[0]  # Compress y\n" in text


def test_sizes_that_are_none_are_refused() -> None:
    """What the model computes may be no size: the message names the node, and what the size is."""
    nodes, inputs, outputs, constants, _ = CASES["reshape"]
    reshape = Model(build(model(nodes, inputs, outputs, constants)).package)
    with pytest.raises(RuntimeFailure, match="Reshape y: a size of the new shape is -3, which is no size"):
        reshape(X, ints(-3, 5))
    with pytest.raises(RuntimeFailure, match="Reshape y: 24 elements do not fill the 25 of its new shape"):
        reshape(X, ints(5, 5))
    nodes, inputs, outputs, constants, _ = CASES["top_k"]
    top = Model(build(model(nodes, inputs, outputs, constants)).package)
    with pytest.raises(RuntimeFailure, match="TopK v: takes 5 elements of dimension 1, which has 4"):
        top(X[0], ints(5))


@pytest.mark.parametrize("is_kernel_between", [False, True])
@pytest.mark.parametrize("shape", [(2**61, 1), (2**32, 2**32), (2**31, 2**33 + 1), (2**62, 4)])
def test_sizes_whose_bytes_overflow_are_refused(shape: tuple[int, int], is_kernel_between: bool) -> None:
    """Their number of bytes, as far as an i64 tells, is small: kernels would write past the end of that memory."""
    nodes = [node("ConstantOfShape", ["s"], ["y"])]
    if is_kernel_between:
        nodes = [node("ConstantOfShape", ["s"], ["o"]), node("CumSum", ["o", "axis"], ["p"])]
        nodes += [node("CumSum", ["p", "axis"], ["q"]), node("ReduceMax", ["q"], ["y"], keepdims=0)]
    dims = [] if is_kernel_between else [None, None]
    made = build(model(nodes, [("s", I64, [2])], [("y", F32, dims)], {"axis": ints(0)}))
    for m in (Model(made.package), Model(replay_model(made))):
        with pytest.raises(RuntimeFailure, match=r"ConstantOfShape [oy]: .* for which no memory is large enough"):
            m(ints(*shape))


def test_more_sizes_than_a_tensor_has_are_refused() -> None:
    """A vector of a billion sizes is not walked through."""
    nodes, _, outputs, constants, _ = CASES["constant_of_shape"]
    with pytest.raises(ModelError, match=r"ConstantOfShape y: a size of the shape is one of 1000000000; a tensor has"):
        build(model(nodes, [("s", I64, [10**9])], outputs, constants))


def test_a_range_of_more_elements_than_memory_has_is_refused() -> None:
    nodes, inputs, outputs, constants, _ = CASES["range"]
    m = Model(build(model(nodes, inputs, outputs, constants)).package)
    with pytest.raises(RuntimeFailure, match=r"Range y: .* for which no memory is large enough"):
        m(np.array(0), np.array(2**63 - 1), np.array(1))


def test_an_empty_input_is_refused_where_only_a_run_tells() -> None:
    made = Model(build(model([node("NonZero", ["x"], ["y"])], [("x", F32, ["n", 3])], [("y", I64, [2, None])])).package)
    with pytest.raises(InputError, match="where n is 0, the output y can't be computed"):
        made(np.zeros((0, 3), np.float32))


def test_a_late_size_of_all_threads_and_of_a_second_call() -> None:
    """Memory of late sizes grows from call to call, whatever the order."""
    made = Model(build(model(*CASES["nonzero"][:1], [("x", F32, ["n", 3])], [("y", I64, [2, None])])).package)
    for n in (1, 4000, 3):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3) % 2
        np.testing.assert_array_equal(made(x), np.nonzero(x))
