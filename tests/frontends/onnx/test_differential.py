"""Random single-operator models against ONNX Runtime: shapes, attributes and values drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto
from tests.frontends.onnx.nodes import Array, check_like_runtime, int64s, model_of, node, single

Draw = Callable[[st.SearchStrategy[Any]], Any]

few = settings(max_examples=40, derandomize=True, deadline=None)
small = st.integers(1, 4)


@st.composite
def arrays(draw: Draw, shape: tuple[int, ...], low: float = -3, high: float = 3) -> Array:
    """Floats from a seeded generator: shrinking the numbers themselves would teach nothing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    return rng.uniform(low, high, shape).astype(np.float32)


@st.composite
def broadcastable(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    full = draw(st.lists(small, max_size=4))
    shapes = []
    for _ in range(2):
        cut = draw(st.integers(0, len(full)))
        shapes.append(tuple(s if draw(st.booleans()) else 1 for s in full[cut:]))
    return shapes[0], shapes[1]


@few
@given(
    st.data(),
    broadcastable(),
    st.sampled_from(["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "GreaterOrEqual", "PRelu"]),
)
def test_binary(data: st.DataObject, shapes: tuple[tuple[int, ...], tuple[int, ...]], op: str) -> None:
    a, b = (data.draw(arrays(s)) for s in shapes)
    if op == "PRelu":
        b = b[tuple([slice(0, 1)] * b.ndim)] if b.ndim <= a.ndim else b.reshape(-1)[:1].reshape(())
    feeds = {"a": a, "b": np.asarray(b)}
    check_like_runtime(single(op, feeds), feeds)


@few
@given(st.data(), st.sampled_from(["Div", "Mod", "Mul", "Sub", "Pow"]), st.sampled_from([np.int32, np.int64]))
def test_integers(data: st.DataObject, op: str, dtype: type) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    a: Array = rng.integers(-9, 9, (3, 4)).astype(dtype)
    b: Array = rng.integers(1, 5, (4,)).astype(dtype) * np.array(1 if op == "Pow" else rng.choice([-1, 1], 4), dtype)
    fmod = {"fmod": data.draw(st.integers(0, 1))} if op == "Mod" else {}
    feeds = {"a": a, "b": b.astype(dtype)}
    check_like_runtime(single(op, feeds, None, 17, **fmod), feeds)


UNARY: dict[str, dict[str, Any]] = {
    "Relu": {}, "Sigmoid": {}, "Tanh": {}, "Exp": {}, "Erf": {}, "Sqrt": {}, "Floor": {}, "Ceil": {}, "Round": {}, "Sign": {},
    "Softplus": {}, "Softsign": {}, "HardSwish": {}, "Mish": {}, "Neg": {}, "Abs": {}, "Reciprocal": {}, "Sin": {}, "Atan": {},
    "LeakyRelu": {"alpha": 0.3}, "Elu": {"alpha": 1.5}, "Selu": {}, "HardSigmoid": {"alpha": 0.3}, "Celu": {"alpha": 0.7},
    "ThresholdedRelu": {"alpha": 0.4}, "Gelu": {}, "Shrink": {"lambd": 0.4, "bias": 0.1}, "IsNaN": {}, "Not": {},
}  # fmt: skip


@few
@given(st.data(), st.sampled_from(sorted(UNARY)))
def test_unary(data: st.DataObject, op: str) -> None:
    shape = tuple(data.draw(st.lists(small, max_size=3)))
    x = data.draw(arrays(shape, *((0.1, 3) if op == "Sqrt" else (-3, 3))))
    feeds: dict[str, Array] = {"x": np.asarray(x > 0) if op == "Not" else np.asarray(x)}
    check_like_runtime(single(op, feeds, opset=20 if op == "Gelu" else 18, **UNARY[op]), feeds, rtol=2e-5)


@st.composite
def convolutions(draw: Draw) -> tuple[ModelProto, dict[str, Array]]:
    n = draw(st.integers(1, 3))
    group = draw(st.sampled_from([1, 1, 2, 3]))
    kernel = [draw(st.integers(1, 3)) for _ in range(n)]
    dilations = [draw(st.integers(1, 2)) for _ in range(n)]
    strides = [draw(st.integers(1, 3)) for _ in range(n)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [r + draw(st.integers(0, 4)) for r in reach]
    auto = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto.startswith("SAME"):
        dilations = [1] * n
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": group, "auto_pad": auto}
    if auto == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, 2)) for _ in range(2 * n)]
    x = draw(arrays((draw(st.integers(1, 2)), 2 * group, *sizes)))
    weights = {"w": draw(arrays((3 * group, 2, *kernel)))}
    if draw(st.booleans()):
        weights["b"] = draw(arrays((3 * group,)))
    return single("Conv", {"x": x}, weights, **attributes), {"x": x}


@few
@given(convolutions())
def test_convolution(case: tuple[ModelProto, dict[str, Array]]) -> None:
    check_like_runtime(*case, rtol=1e-4, atol=1e-4)


@st.composite
def transposed(draw: Draw) -> tuple[ModelProto, dict[str, Array]]:
    n = draw(st.integers(1, 2))
    group = draw(st.sampled_from([1, 2]))
    kernel = [draw(st.integers(1, 4)) for _ in range(n)]
    strides = [draw(st.integers(1, 3)) for _ in range(n)]
    dilations = [draw(st.integers(1, 2)) for _ in range(n)]
    sizes = [draw(st.integers(2, 4)) for _ in range(n)]
    pads = [draw(st.integers(0, min(1, k - 1))) for k in kernel] * 2
    extra = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(strides, dilations, strict=True)]
    x = draw(arrays((1, 2 * group, *sizes)))
    attributes = {"strides": strides, "dilations": dilations, "group": group, "pads": pads, "output_padding": extra}
    return single("ConvTranspose", {"x": x}, {"w": draw(arrays((2 * group, 3, *kernel)))}, 17, **attributes), {"x": x}


@few
@given(transposed())
def test_transposed_convolution(case: tuple[ModelProto, dict[str, Array]]) -> None:
    check_like_runtime(*case, rtol=1e-4, atol=1e-4)


@st.composite
def pools(draw: Draw) -> tuple[ModelProto, dict[str, Array]]:
    n = draw(st.integers(1, 3))
    op = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    kernel = [draw(st.integers(1, 3)) for _ in range(n)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [draw(st.integers(1, 3)) for _ in range(n)],
        "pads": [draw(st.integers(0, k // 2)) for k in kernel] * 2,
        "ceil_mode": draw(st.integers(0, 1)),
    }
    if op == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    x = draw(arrays((1, 2, *[k + draw(st.integers(0, 4)) for k in kernel])))
    return single(op, {"x": x}, opset=19, **attributes), {"x": x}


@few
@given(pools())
def test_pools(case: tuple[ModelProto, dict[str, Array]]) -> None:
    check_like_runtime(*case)


@few
@given(st.data())
def test_matmul(data: st.DataObject) -> None:
    k = data.draw(small)
    batch = data.draw(broadcastable())
    a = data.draw(arrays((*batch[0], data.draw(small), k)))
    b = data.draw(arrays((*batch[1], k, data.draw(small))))
    feeds = {"a": a, "b": b}
    check_like_runtime(single("MatMul", feeds), feeds, rtol=1e-4)


@few
@given(
    st.data(), st.sampled_from(["Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "CumSum", "LpNormalization"])
)
def test_along_an_axis(data: st.DataObject, op: str) -> None:
    shape = tuple(data.draw(st.lists(small, min_size=1, max_size=4)))
    x, axis = data.draw(arrays(shape)), data.draw(st.integers(-len(shape), len(shape) - 1))
    if op == "CumSum":
        flags = {"exclusive": data.draw(st.integers(0, 1)), "reverse": data.draw(st.integers(0, 1))}
        model = single(op, {"x": x}, {"axis": np.array(axis)}, 17, **flags)
    else:
        model = single(op, {"x": x}, None, 17, axis=axis)
    check_like_runtime(model, {"x": x})


@few
@given(
    st.data(),
    st.sampled_from(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceLogSumExp", "ReduceL1", "ReduceSumSquare"]),
)
def test_reductions(data: st.DataObject, op: str) -> None:
    shape = tuple(data.draw(st.lists(small, min_size=1, max_size=4)))
    x = data.draw(arrays(shape))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    model = single(op, {"x": x}, {"axes": int64s(*axes)}, 18, keepdims=data.draw(st.integers(0, 1)))
    check_like_runtime(model, {"x": x}, rtol=1e-4)


@few
@given(st.data())
def test_movement(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(small, min_size=2, max_size=4)))
    x, rank = data.draw(arrays(shape)), len(shape)
    axis = data.draw(st.integers(-rank, rank - 1))
    op = data.draw(
        st.sampled_from(["Transpose", "Gather", "GatherElements", "Slice", "Tile", "Flatten", "Trilu", "Concat"])
    )
    feeds: dict[str, Array] = {"x": x}
    size = shape[axis]
    if op == "Transpose":
        model = single(op, feeds, perm=data.draw(st.permutations(range(rank))))
    elif op == "Gather":
        at = np.array(data.draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=4)), np.int64)
        model = single(op, feeds, {"i": at if data.draw(st.booleans()) else at[0]}, 17, axis=axis)
    elif op == "GatherElements":
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        model = single(op, feeds, {"i": rng.integers(-size, size, shape)}, 17, axis=axis)
    elif op == "Slice":
        step = data.draw(st.sampled_from([-2, -1, 1, 2]))
        start, end = (0, size) if step > 0 else (size - 1, -(2**40))
        model = single(op, feeds, {k: int64s(v) for k, v in zip("seat", (start, end, axis, step), strict=True)})
    elif op == "Tile":
        model = single(op, feeds, {"r": int64s(*[data.draw(st.integers(1, 3)) for _ in shape])})
    elif op == "Concat":
        feeds["z"] = data.draw(arrays(shape))
        model = single(op, feeds, axis=axis)
    elif op == "Trilu":
        model = single(
            op, feeds, {"k": np.array(data.draw(st.integers(-3, 3)))}, 17, upper=data.draw(st.integers(0, 1))
        )
    else:
        model = single(op, feeds, axis=axis)
    check_like_runtime(model, feeds)


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "ij,kj", "i,i->", "i,j->ij", "bij,bij->b", "ij->ji", "ii->i",
             "ij->", "...ij,...jk->...ik", "ijk,il->ljk", "bi,bi->bi", "ij,jk,kl->il"]  # fmt: skip


@few
@given(st.data(), st.sampled_from(EQUATIONS))
def test_einsum(data: st.DataObject, equation: str) -> None:
    sizes = {k: data.draw(small) for k in "bdhijkl."}
    terms = equation.partition("->")[0].split(",")
    feeds = {f"x{n}": data.draw(arrays(tuple(sizes[k] for k in t.replace("...", ".")))) for n, t in enumerate(terms)}
    check_like_runtime(single("Einsum", feeds, equation=equation), feeds, rtol=1e-4, atol=1e-5)


RESIZE_MODES = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]


@few
@given(st.data(), st.sampled_from(["nearest", "linear", "cubic"]), st.sampled_from(RESIZE_MODES))
def test_resize(data: st.DataObject, mode: str, coordinates: str) -> None:
    x = data.draw(arrays((1, 1, data.draw(st.integers(2, 5)), data.draw(st.integers(2, 5)))))
    sizes = int64s(1, 1, data.draw(st.integers(2, 9)), data.draw(st.integers(2, 9)))
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = data.draw(
            st.sampled_from(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
        )
    made = node("Resize", "x - - sizes", **attributes)
    model = model_of([made], {"x": (TensorProto.FLOAT, x.shape)}, weights={"sizes": sizes}, opset=19)
    check_like_runtime(model, {"x": x}, rtol=1e-4, atol=1e-4)


@few
@given(st.data(), st.sampled_from(["LSTM", "GRU", "RNN"]), st.sampled_from(["forward", "reverse", "bidirectional"]))
def test_recurrent(data: st.DataObject, op: str, direction: str) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    time, batch, features, hidden = (data.draw(st.integers(1, 3)) for _ in range(4))
    both = 2 if direction == "bidirectional" else 1
    x = data.draw(arrays((time, batch, features)))
    weights = {
        "w": data.draw(arrays((both, gates * hidden, features))),
        "r": data.draw(arrays((both, gates * hidden, hidden))),
        "b": data.draw(arrays((both, 2 * gates * hidden))),
        "lengths": np.array([data.draw(st.integers(1, time)) for _ in range(batch)], np.int32),
        "h": data.draw(arrays((both, batch, hidden))),
    }
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = data.draw(st.integers(0, 1))
    outputs = ["y", "last", "cell"] if op == "LSTM" else ["y", "last"]
    made = node(op, "x w r b lengths h", " ".join(outputs), **attributes)
    model = model_of([made], {"x": (TensorProto.FLOAT, x.shape)}, outputs, weights, 17)
    check_like_runtime(model, {"x": x}, rtol=1e-4, atol=1e-5)
