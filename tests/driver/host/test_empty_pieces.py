"""Concatenations of pieces whose sizes only a run tells: any of them may have no elements, as experts without tokens have."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from onnx.helper import make_node as node
from tests.driver.host.ways import BOOL, F32, Info, Ways, model

from weft.support.errors import RuntimeFailure

COUNT = 3
ROWS, COLUMNS = 5, 4
PATTERNS = list(product([False, True], repeat=COUNT))
"""Which of the pieces have elements."""

BEHIND: dict[str, tuple[list[onnx.NodeProto], list[int | None]]] = {
    "concat": ([node("Relu", ["joined"], ["y"])], [None, COLUMNS]),
    "sum": ([node("ReduceSum", ["joined", "first"], ["y"], keepdims=0)], [COLUMNS]),
    "softmax": ([node("Softmax", ["joined"], ["y"], axis=0)], [None, COLUMNS]),
    "product": ([node("MatMul", ["joined", "w"], ["y"])], [None, 2]),
    "prefix": ([node("CumSum", ["joined", "axis"], ["y"])], [None, COLUMNS]),
    "tile": ([node("Tile", ["joined", "often"], ["y"])], [None, 2 * COLUMNS]),
    "reversed": (
        [node("Slice", ["joined", "last", "least", "first", "back"], ["y"])],
        [None, COLUMNS],
    ),
}
CONSTANTS = {
    "first": np.array([0]),
    "axis": np.array(0),
    "w": np.arange(8, dtype=np.float32).reshape(COLUMNS, 2) - 3,
    "often": np.array([1, 2]),
    "last": np.array([-1]),
    "least": np.array([-(2**63)]),
    "back": np.array([-1]),
}


@pytest.mark.parametrize("behind", BEHIND)
def test_any_pieces_are_empty(behind: str) -> None:
    nodes, shape = BEHIND[behind]
    pieces = [node("Compress", ["x", f"m{k}"], [f"p{k}"], axis=0) for k in range(COUNT)]
    join = node("Concat", [f"p{k}" for k in range(COUNT)], ["joined"], axis=0)
    inputs: list[Info] = [("x", F32, [ROWS, COLUMNS]), *[(f"m{k}", BOOL, [ROWS]) for k in range(COUNT)]]
    used = {name for n in nodes for name in n.input}
    constants = {name: v for name, v in CONSTANTS.items() if name in used}
    ways = Ways(model([*pieces, join, *nodes], inputs, [("y", F32, shape)], constants), rtol=1e-5, atol=1e-6)
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) / 8
    masks = [(np.arange(ROWS) + k) % 2 == 0 for k in range(COUNT)]
    ways.check(*[{"x": x, **{f"m{k}": masks[k] & p[k] for k in range(COUNT)}} for p in PATTERNS])


def test_one_kernel_serves_all_that_are_empty() -> None:
    """Not one for each set of them, or for each piece."""
    count = 8
    pieces = [node("Compress", ["x", f"m{k}"], [f"p{k}"], axis=0) for k in range(count)]
    join = node("Concat", [f"p{k}" for k in range(count)], ["y"], axis=0)
    inputs: list[Info] = [("x", F32, [ROWS, 2]), *[(f"m{k}", BOOL, [ROWS]) for k in range(count)]]
    ways = Ways(model([*pieces, join], inputs, [("y", F32, [None, 2])]))
    assert [len(v) for v in ways.made.fused.versions.values()] == [1]
    x = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2)
    for live in ({0}, {7}, {2, 5}, set(range(count)), set[int]()):
        ways.check({"x": x, **{f"m{k}": np.full(ROWS, k in live) for k in range(count)}})


def test_an_element_of_nothing_is_refused() -> None:
    """The first element of pieces of which none has one: the message tells the node and the sizes."""
    pieces = [node("Compress", ["x", f"m{k}"], [f"p{k}"], axis=0) for k in range(2)]
    nodes = [
        *pieces,
        node("Concat", ["p0", "p1"], ["joined"], axis=0),
        node("Gather", ["joined", "first"], ["y"], axis=0),
    ]
    inputs: list[Info] = [("x", F32, [3]), ("m0", BOOL, [3]), ("m1", BOOL, [3])]
    ways = Ways(model(nodes, inputs, [("y", F32, [1])], {"first": np.array([0])}))
    x, none, some = np.arange(3, dtype=np.float32), np.zeros(3, np.bool_), np.array([False, True, True])
    ways.check(*[{"x": x, "m0": a, "m1": b} for a, b in ((none, some), (some, none), (some, some))])
    with pytest.raises(RuntimeFailure, match="Gather y: "):
        ways.run({"x": x, "m0": none, "m1": none})


@pytest.mark.parametrize("columns", [1, 16])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_prefixes_of_a_slice_without_elements(columns: int, exclusive: int) -> None:
    """The first of them is written where there is one."""
    nodes = [
        node("Slice", ["x", "one", "end"], ["s"]),
        node("CumSum", ["s", "axis"], ["y"], exclusive=exclusive, reverse=exclusive),
    ]
    constants = {"one": np.array([1]), "end": np.array([2**62]), "axis": np.array(0)}
    ways = Ways(model(nodes, [("x", F32, ["n", columns])], [("y", F32, [None, columns])], constants))
    ways.check(*[{"x": np.arange(n * columns, dtype=np.float32).reshape(n, columns)} for n in (3, 2, 1)])
