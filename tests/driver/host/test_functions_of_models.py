"""Functions that a model brings with it: its host program is the same compiled, replayed from bytes and interpreted."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper
from tests.driver.host.ways import BOOL, F32, Ways, graph, model

DOMAIN = "local"


def with_functions() -> onnx.ModelProto:
    """Returns a model whose two functions call one another: inside of a branch, and for a size that only a run tells."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    nodes = [helper.make_node("ReduceMean", ["a"], ["m"]), helper.make_node("Sub", ["a", "m"], ["b"])]
    centred = helper.make_function(DOMAIN, "Centred", ["a"], ["b"], nodes, opsets)
    nodes = [
        helper.make_node("Compress", ["a", "keep"], ["k"], axis=0),
        helper.make_node("Centred", ["k"], ["c"], domain=DOMAIN),
        helper.make_node("Relu", ["c"], ["b"]),
    ]
    kept = helper.make_function(DOMAIN, "Kept", ["a", "keep"], ["b"], nodes, opsets)
    then = graph([helper.make_node("Kept", ["x", "keep"], ["t"], domain=DOMAIN)], [], [("t", F32, [None, 3])])
    other = graph([helper.make_node("Centred", ["x"], ["e"], domain=DOMAIN)], [], [("e", F32, [4, 3])])
    made = model(
        [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [("x", F32, [4, 3]), ("keep", BOOL, [4]), ("c", BOOL, [])],
        [("y", F32, [None, 3])],
    )
    made.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    made.functions.extend([centred, kept])
    return made


def test_functions_inside_of_branches() -> None:
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    kept = [[True, False, True, True], [False, True, False, False]]
    ways = Ways(with_functions(), rtol=1e-5)
    for c in (True, False):
        for keep in kept:
            rows = x[np.array(keep)] if c else x
            wanted = rows - rows.mean()
            (made,) = ways.run({"x": x, "keep": np.array(keep), "c": np.array(c)})
            np.testing.assert_allclose(made, np.maximum(wanted, 0) if c else wanted, rtol=1e-5, atol=1e-6)
