"""Cases of layers whose sizes are data, of updates and boxes, and of networks inside of loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from tests.frontends.coreml.cases.choices_and_sizes import BOXES, SCORES, suppressed
from tests.frontends.coreml.cases.entering import X, f
from tests.frontends.coreml.cases.entering_layers import LAYERS, layer

layer("fill_static", "fill_static", X, wanted=lambda x: x + 2.5, value=2.5, output_shape=[2, 3, 4])
layer("fill_dynamic", "fill_dynamic", [2, 3], wanted=lambda s: np.full((2, 3), 1.5), value=1.5)
layer("range_static", "range_static", f(4), wanted=lambda x: x + np.arange(1, 9, 2), start=1, end=9, step=2)
layer("range_dynamic", "range_dynamic", [7], wanted=lambda n: np.arange(1, 7, 2), start=1, step=2)
layer(
    "slice_dynamic",
    "slice_dynamic",
    X,
    [0, 1, 0],
    wanted=lambda x, b: x[:, 1:, ::2],
    end_ids=[2, 3, 4],
    strides=[1, 1, 2],
    end_masks=[True, True, True],
)
layer("slice_by_size", "slice_by_size", X, [1], wanted=lambda x, b: x[:, 1:3], axis=1, size=2)
layer(
    "sliding_windows",
    "sliding_windows",
    f(2, 8),
    wanted=lambda x: np.stack([x[:, k : k + 3] for k in (0, 2, 4)], 1),
    axis=1,
    window_size=3,
    step=2,
)
layer(
    "reverse_sequence",
    "reverse_sequence",
    X,
    [1, 3],
    wanted=lambda x, n: np.stack([x[0], x[1, ::-1]]),
    batch_axis=0,
    seq_axis=1,
)


def with_rows(x: Any, at: Any, rows: Any, change: Callable[..., Any]) -> Any:
    made = x.copy()
    for k, place in enumerate(at.astype(int)):
        made[place] = change(made[place], rows[k])
    return made


for _mode, _change in {
    "UPDATE": lambda a, b: b,
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "MAX": np.maximum,
}.items():
    layer(
        f"scatter.{_mode}",
        "scatter",
        f(4, 3),
        [2, 0],
        f(2, 3),
        wanted=lambda x, i, u, c=_change: with_rows(x, i, u, c),
        axis=0,
        mode=_mode,
    )
layer(
    "scatter_nd",
    "scatter_nd",
    f(4, 3),
    [[2, 1], [0, 2]],
    f(2),
    wanted=lambda x, i, u: x + np.array([[0, 0, u[1]], [0, 0, 0], [0, u[0], 0], [0, 0, 0]]),
    mode="ADD",
)
layer(
    "scatter_along_axis",
    "scatter_along_axis",
    f(2, 4),
    [[2, 1], [0, 3]],
    f(2, 2),
    wanted=lambda x, i, u: x + np.array([[0, u[0, 1], u[0, 0], 0], [u[1, 0], 0, 0, u[1, 1]]]),
    axis=1,
    mode="ADD",
)
layer("where_nonzero", "where_nonzero", [[0, 2, 0], [1, 0, 3]], wanted=np.argwhere)
layer(
    "nms",
    "nms",
    BOXES,
    SCORES,
    wanted=suppressed,
    outputs=4,
    iou_threshold=0.5,
    score_threshold=0.1,
    max_boxes=4,
)
layer(
    "crop",
    "crop",
    f(2, 5, 6),
    wanted=lambda x: x[:, 2:-1, 1:-3],
    images=True,
    left=1,
    right=3,
    top=2,
    bottom=1,
    offset=[0, 0],
)
layer(
    "resize_bilinear",
    "resize_bilinear",
    f(2, 3, 4),
    wanted=lambda x: x[:, ::2, ::3],
    images=True,
    target_height=2,
    target_width=2,
    mode="STRICT_ALIGN_ENDPOINTS_MODE",
)
layer(
    "elementwise.DOT",
    "elementwise",
    f(3, 2, 2),
    f(3, 2, 2),
    wanted=lambda x, y: (x * y).sum(0, keepdims=True),
    mode="DOT",
    images=True,
)
layer(
    "elementwise.COS",
    "elementwise",
    f(3, 2, 2),
    f(3, 2, 2),
    wanted=lambda x, y: (x * y).sum(0, keepdims=True) / np.linalg.norm(x, axis=0) / np.linalg.norm(y, axis=0),
    mode="COS",
    images=True,
)


def entered(name: str, build: Callable[[Any], None], *inputs: Any, wanted: Callable[..., Any]) -> None:
    """Enters a network that *build* adds the layers of, from inputs a, b ... to `y0`."""
    given = {chr(97 + k): np.asarray(v, np.float32) for k, v in enumerate(inputs)}
    features = [(k, datatypes.Array(*v.shape)) for k, v in given.items()]
    made = NeuralNetworkBuilder(features, [("y0", None)], disable_rank5_shape_mapping=True)
    build(made)
    LAYERS[name] = (made.spec.SerializeToString(), given, wanted)


def shaped(kind: str) -> Callable[[Any], None]:
    """A layer that takes the shape of the second input."""

    def build(b: Any) -> None:
        b.add_get_shape("shape", "b", "shape")
        getattr(b, f"add_{kind}")("l", ["a", "shape"], "y0")

    return build


def counted(b: Any) -> None:
    """Twice the number, three times."""
    b.add_copy("start", "a", "y0")
    body = NeuralNetworkBuilder(nn_spec=b.add_loop("loop", max_iterations=3).loop.bodyNetwork)
    body.add_elementwise("twice", ["y0"], "twice", "MULTIPLY", alpha=2.0)
    body.add_copy("next", "twice", "y0")


def conditional(b: Any) -> None:
    """Twice the number as long as the sum is below ten."""
    b.add_copy("start", "a", "y0")
    loop = b.add_loop("loop", body_network=None, input_name=None, condition="below").loop
    loop.maxLoopIterations = 0
    asked = NeuralNetworkBuilder(nn_spec=loop.conditionNetwork)
    asked.add_reduce_sum("sum", "y0", "sum", reduce_all=True)
    asked.add_less_than("below", ["sum"], "below", alpha=10.0)
    body = NeuralNetworkBuilder(nn_spec=loop.bodyNetwork)
    body.add_elementwise("twice", ["y0"], "twice", "MULTIPLY", alpha=2.0)
    body.add_copy("next", "twice", "y0")


def doubled(x: Any) -> Any:
    while x.sum() < 10:
        x = x * 2
    return x


def chosen(b: Any) -> None:
    """Twice the numbers if their sum is above zero, else the numbers less one."""
    b.add_reduce_sum("sum", "a", "sum", reduce_all=True)
    b.add_greater_than("above", ["sum"], "above", alpha=0.0)
    branch = b.add_branch("branch", "above").branch
    one, other = (NeuralNetworkBuilder(nn_spec=n) for n in (branch.ifBranch, branch.elseBranch))
    one.add_elementwise("twice", ["a"], "y0", "MULTIPLY", alpha=2.0)
    other.add_elementwise("less", ["a"], "y0", "ADD", alpha=-1.0)


entered("reshape_dynamic", shaped("reshape_dynamic"), X, f(4, 6), wanted=lambda x, y: x.reshape(4, 6))
entered(
    "broadcast_to_dynamic",
    shaped("broadcast_to_dynamic"),
    f(3, 1),
    f(2, 3, 4),
    wanted=lambda x, y: np.broadcast_to(x, (2, 3, 4)),
)
entered("loop.counted", counted, f(3), wanted=lambda x: 8 * x)
entered("loop", conditional, np.abs(f(3)), wanted=doubled)
for _name, _sign in (("branch", 1), ("branch.else", -1)):
    entered(_name, chosen, _sign * np.abs(f(3)), wanted=lambda x: 2 * x if x.sum() > 0 else x - 1)
