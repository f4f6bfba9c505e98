"""Axes that only a call tells: what is compiled, its bytes replayed, and the interpreted program agree."""

from __future__ import annotations

import numpy as np
from onnx.helper import make_node as node
from tests.driver.host.ways import F32, I64, Ways, model


def test_one_program_for_all_axes() -> None:
    """A mean is taken off along an axis, of a tensor of a symbolic size, and what is left is summed up along another."""
    ways = Ways(
        model(
            [
                node("ReduceMean", ["x", "axes"], ["m"]),
                node("Sub", ["x", "m"], ["c"]),
                node("CumSum", ["c", "axis"], ["y"]),
                node("ReduceMax", ["y", "axes"], ["z"], keepdims=0),
                node("Unsqueeze", ["z", "axes"], ["u"]),
            ],
            [("x", F32, ["n", 3, 4]), ("axes", I64, [1]), ("axis", I64, [])],
            [("y", F32, ["n", 3, 4]), ("u", F32, None)],  # type: ignore[list-item]
        ),
        rtol=1e-5,
    )
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    for axis in (0, 2, -2):
        ways.check({"x": x, "axes": np.array([axis]), "axis": np.array(axis + 1 if axis < 2 else 0)})
