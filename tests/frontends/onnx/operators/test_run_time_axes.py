"""Axes, bounds, amounts and scales that are inputs of a model: one graph for all of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from tests.frontends.onnx.nodes import Array, floats, imported, int64s, model_of, node

import weft
from weft.driver.checking.reference import run_graph
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import RuntimeFailure, UnknownValues

X: Final = floats(2, 3, 4)


def of_inputs(
    op: str, x: Array, given: dict[str, Array], outputs: str = "y", opset: int = 20, **attributes: Any
) -> ModelProto:
    """Returns a model of one node whose inputs are *x* and others of the types and shapes of those *given*."""
    kinds = {"x": (int(TensorProto.FLOAT), list(x.shape))}
    kinds |= {
        n: (TensorProto.INT64 if a.dtype.kind == "i" else TensorProto.FLOAT, list(a.shape)) for n, a in given.items()
    }
    names = " ".join(["x", *given])
    return model_of([node(op, names, outputs, **attributes)], kinds, outputs.split(), opset=opset)


def in_numpy(op: str) -> Callable[..., Array]:
    """Returns what NumPy has for a reduction."""
    of: dict[str, Callable[..., Array]] = {
        "ReduceSum": np.sum,
        "ReduceMean": np.mean,
        "ReduceMax": np.max,
        "ReduceProd": np.prod,
        "ReduceSumSquare": lambda x, **how: np.sum(x * x, **how),
        "ReduceLogSumExp": lambda x, **how: np.log(np.sum(np.exp(x), **how)),
    }
    return of[op]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    "op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd", "ReduceSumSquare", "ReduceLogSumExp"]
)
def test_reductions(op: str, keepdims: int) -> None:
    for count in (1, 2, 3):
        graph = from_onnx(of_inputs(op, X, {"axes": int64s(*range(count))}, keepdims=keepdims))
        for axes in combinations(range(3), count):
            for given in (axes, [a - 3 for a in axes]):
                (y,) = run_graph(graph, {"x": X, "axes": int64s(*given)})
                np.testing.assert_allclose(y, in_numpy(op)(X, axis=axes, keepdims=bool(keepdims)), rtol=1e-5)


def test_any_number_of_axes() -> None:
    model = of_inputs("ReduceSum", X, {"axes": int64s(0)}, keepdims=1)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "m"
    graph = from_onnx(model)
    for axes in ((1,), (2, 0), (0, 1, 2), ()):
        np.testing.assert_allclose(
            run_graph(graph, {"x": X, "axes": int64s(*axes)})[0], X.sum(axes or None, keepdims=True), rtol=1e-5
        )
    model.graph.node[0].attribute[0].i = 0
    with pytest.raises(UnknownValues, match="depends on how many axes there are, which only a run tells"):
        from_onnx(model)


def test_no_axes_are_all() -> None:
    none = np.zeros(0, np.int64)
    _, (y,) = imported(of_inputs("ReduceSum", X, {"axes": none}, keepdims=0), {"x": X, "axes": none})
    np.testing.assert_allclose(y, X.sum(), rtol=1e-5)


@pytest.mark.parametrize(("op", "of"), [("CumSum", np.cumsum), ("CumProd", np.cumprod)])
def test_running_sums(op: str, of: Callable[..., Array]) -> None:
    graph = from_onnx(of_inputs(op, X, {"axis": np.array(0)}, opset=26 if op == "CumProd" else 20))
    for axis in range(-3, 3):
        np.testing.assert_allclose(run_graph(graph, {"x": X, "axis": np.array(axis)})[0], of(X, axis), rtol=1e-5)


def test_dimensions_of_one() -> None:
    x = floats(1, 3, 1, 4)
    squeezed = from_onnx(of_inputs("Squeeze", x, {"axes": int64s(0, 2)}))
    for axes in ((0, 2), (-2, 0)):
        np.testing.assert_array_equal(run_graph(squeezed, {"x": x, "axes": int64s(*axes)})[0], x.reshape(3, 4))
    added = from_onnx(of_inputs("Unsqueeze", X, {"axes": int64s(0, 2)}))
    for axes in combinations(range(5), 2):
        for given in (axes, [a - 5 for a in reversed(axes)]):
            (y,) = run_graph(added, {"x": X, "axes": int64s(*given)})
            np.testing.assert_array_equal(y, np.expand_dims(X, axes))


SLICES: Final[Sequence[dict[int, slice]]] = [
    {0: slice(0, 1, 1), 2: slice(1, 4, 2)},
    {2: slice(-1, -9, -1), 1: slice(-2, 99, 1)},
    {1: slice(2, 0, -2), 0: slice(1, 2, 5)},
    {1: slice(2, 1, 1), 2: slice(0, 4, 1)},
]
"""Ranges by the axes that they are along; the last is empty."""


@pytest.mark.parametrize("known", ["", "axes", "steps"])
def test_slices(known: str) -> None:
    for cut in SLICES:
        axes, ranges = list(cut), list(cut.values())
        given = {
            "starts": int64s(*[r.start for r in ranges]),
            "ends": int64s(*[r.stop for r in ranges]),
            "axes": int64s(*axes),
            "steps": int64s(*[r.step for r in ranges]),
        }
        weights = {n: a for n, a in given.items() if n == known}
        inputs = {"x": X, **{n: a for n, a in given.items() if n != known}}
        kinds = {n: (TensorProto.FLOAT if n == "x" else TensorProto.INT64, a.shape) for n, a in inputs.items()}
        model = model_of([node("Slice", "x starts ends axes steps")], kinds, weights=weights)
        wanted = X[tuple([cut.get(d, slice(None)) for d in range(3)])]
        np.testing.assert_array_equal(run_graph(from_onnx(model), inputs)[0], wanted)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pads_along_axes(mode: str) -> None:
    graph = from_onnx(
        of_inputs("Pad", X, {"pads": int64s(0, 0, 0, 0), "v": np.array(2, np.float32), "axes": int64s(0, 0)}, mode=mode)
    )
    for axes, pads in (((2, 1), (1, 0, 2, 1)), ((0, -1), (1, 2, 0, 1))):
        feeds = {"x": X, "pads": int64s(*pads), "v": np.array(2, np.float32), "axes": int64s(*axes)}
        widths = [(0, 0)] * 3
        for k, axis in enumerate(axes):
            widths[axis] = (pads[k], pads[2 + k])
        how: dict[str, Any] = {"constant_values": 2} if mode == "constant" else {}
        np.testing.assert_array_equal(run_graph(graph, feeds)[0], np.pad(X, widths, mode, **how))  # type: ignore[call-overload]


def test_negative_pads_cut_off() -> None:
    graph = from_onnx(of_inputs("Pad", X, {"pads": int64s(0, 0), "v": np.array(0, np.float32), "axes": int64s(0)}))
    feeds = {"x": X, "pads": int64s(-1, 1), "v": np.array(5, np.float32), "axes": int64s(2)}
    np.testing.assert_array_equal(
        run_graph(graph, feeds)[0], np.pad(X[:, :, 1:], [(0, 0), (0, 0), (0, 1)], constant_values=5)
    )


def test_pieces() -> None:
    graph = from_onnx(of_inputs("Split", X, {"sizes": int64s(1, 1, 2)}, "a b c", opset=17, axis=2))
    for sizes in ((1, 1, 2), (3, 0, 1)):
        made = run_graph(graph, {"x": X, "sizes": int64s(*sizes)})
        for a, b in zip(made, np.split(X, np.cumsum(sizes)[:-1], 2), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(upper: int) -> None:
    graph = from_onnx(of_inputs("Trilu", X, {"k": np.array(0)}, upper=upper))
    for k in (-5, -1, 0, 2, 4):
        wanted = np.triu(X, k) if upper else np.tril(X, k)
        np.testing.assert_array_equal(run_graph(graph, {"x": X, "k": np.array(k)})[0], wanted)


HOW: Final[Sequence[dict[str, Any]]] = [
    *[{"mode": "nearest", "nearest_mode": n} for n in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")],
    *[
        {"mode": "linear", "coordinate_transformation_mode": c}
        for c in ("half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
    ],
    {"mode": "cubic", "exclude_outside": 1},
    {"mode": "cubic", "antialias": 1},
    {"mode": "linear", "antialias": 1, "keep_aspect_ratio_policy": "not_larger"},
    {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0},
]


@pytest.mark.parametrize("how", HOW, ids=lambda how: " ".join(map(str, how.values())))
@pytest.mark.parametrize("given", ["scales", "sizes"])
def test_resampling_is_as_by_known_scales(how: dict[str, Any], given: str) -> None:
    """The tables that are computed when a model runs are those that are computed while it is imported."""
    if given == "scales" and "keep_aspect_ratio_policy" in how:
        return
    x = floats(1, 1, 4, 5)
    values = {"scales": np.array([1.7, 0.6], np.float32), "sizes": int64s(7, 3)}[given]
    roi = np.array([0.1, -0.2, 0.9, 1.2], np.float32)
    names = "x roi scales" if given == "scales" else "x roi - sizes"
    kind = TensorProto.FLOAT if given == "scales" else TensorProto.INT64
    nodes = [node("Resize", names, axes=[2, 3], **how)]
    floats_: dict[str, tuple[int, Any]] = {"x": (TensorProto.FLOAT, x.shape), "roi": (TensorProto.FLOAT, roi.shape)}
    late = from_onnx(model_of(nodes, {**floats_, given: (kind, values.shape)}, opset=19))
    known = from_onnx(model_of(nodes, {"x": floats_["x"]}, weights={"roi": roi, given: values}, opset=19))
    (y,) = run_graph(
        late, {"x": x, **({"roi": roi} if any(v.name == "roi" for v in late.inputs) else {}), given: values}
    )
    (wanted,) = run_graph(known, {"x": x})
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)


def test_wrong_axes_are_refused() -> None:
    reduced = weft.compile(of_inputs("ReduceSum", X, {"axes": int64s(0, 1)}))
    np.testing.assert_allclose(np.asarray(reduced(X, int64s(2, 0))), X.sum((0, 2), keepdims=True), rtol=1e-5)
    for axes, told in (
        ((0, 3), "ReduceSum /y: by axes, axis 3 is outside of -3 to 2"),
        ((1, -2), "its 2 axes name only 1 different"),
    ):
        with pytest.raises(RuntimeFailure, match=re.escape(told)):
            reduced(X, int64s(*axes))
    squeezed = weft.compile(of_inputs("Squeeze", X[:1], {"axes": int64s(0)}))
    assert np.asarray(squeezed(X[:1], int64s(-3))).shape == (3, 4)
    with pytest.raises(RuntimeFailure, match="Squeeze /y: a dimension that it drops is not of size one: 12 elements"):
        squeezed(X[:1], int64s(1))


def test_wrong_pieces_and_steps_are_refused() -> None:
    split = weft.compile(of_inputs("Split", X, {"sizes": int64s(1, 1)}, "a b", opset=17, axis=1))
    with pytest.raises(RuntimeFailure, match="Split /a: its pieces have 4 elements, and dimension 1 has 3"):
        split(X, int64s(2, 2))
    one = int64s(0)
    sliced = weft.compile(of_inputs("Slice", X, {"starts": one, "ends": one, "axes": one, "steps": one}))
    with pytest.raises(RuntimeFailure, match="Slice /y: a step of the slice is 0"):
        sliced(X, one, one, one, one)
