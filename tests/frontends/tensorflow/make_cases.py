"""Makes a small model of each of TensorFlow's operators, with inputs and the outputs that TensorFlow computes.

    python tests/frontends/tensorflow/make_cases.py FOLDER

Needs TensorFlow 2.21. The folder gets small, a saved model, and archives of arrays, each compressed as a whole: graphs0 and
graphs1 with `NAME.graph`, `NAME.input0` ... and `NAME.output0` ... for each case, and lite with `NAME.model` for those that
TensorFlow Lite's converter takes without TensorFlow's own operators.
"""

from __future__ import annotations

import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

R = tf.raw_ops
RNG = np.random.default_rng(0)
CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {}


def case(name: str, function: Callable[..., Any], *inputs: Any) -> None:
    assert name not in CASES, name
    CASES[name] = (function, [np.asarray(i) for i in inputs])


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def u(*shape: int) -> Any:
    return RNG.uniform(0.1, 0.9, shape).astype(np.float32)


def n(*shape: int, low: int = -9, high: int = 10) -> Any:
    return RNG.integers(low, high, shape).astype(np.int32)


def b(*shape: int) -> Any:
    return RNG.integers(0, 2, shape).astype(bool)


def op(name: str, **attributes: Any) -> Callable[..., Any]:
    """Returns the operator *name* as a function of its tensors in order."""
    made = getattr(R, name)
    names = [a for a in made.__signature__.parameters if a not in attributes and a != "name"]
    return lambda *given: made(**dict(zip(names, given, strict=False)), **attributes)


for name in [
    "Abs",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Expm1",
    "Floor",
    "Neg",
    "Relu",
    "Relu6",
    "Elu",
    "Selu",
    "Rint",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Square",
    "Tan",
    "Tanh",
    "Atan",
    "Asinh",
    "Erfc",
    "IsFinite",
    "IsInf",
    "IsNan",
    "Softmax",
    "LogSoftmax",
    "ZerosLike",
    "OnesLike",
    "Rank",
    "Size",
    "Shape",
    "Identity",
    "StopGradient",
    "LeakyRelu",
]:
    case(name, op(name), f(3, 4))
for name in ["Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Acos", "Asin", "Atanh"]:
    case(name, op(name), u(3, 4))
case("Acosh", op("Acosh"), u(3, 4) + 1)
for name in [
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "RealDiv",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "Equal",
    "NotEqual",
    "Atan2",
    "FloorMod",
    "TruncateMod",
    "FloorDiv",
    "DivNoNan",
]:
    case(name, op(name), f(2, 3, 4) + 0.01, f(4))
case("ApproximateEqual", op("ApproximateEqual", tolerance=1.0), f(3, 4), f(3, 4))
case("Pow", op("Pow"), u(3, 4), f(3, 4))
case("Xlogy", op("Xlogy"), u(3, 4), u(3, 4))
for name in ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
    case(f"{name}.int", op(name), n(3, 4), n(3, 4, low=1))
for name in ["LeftShift", "RightShift"]:
    case(name, op(name), n(3, 4), n(3, 4, low=0, high=5))
case("Invert", op("Invert"), n(3, 4))
for name in ["LogicalAnd", "LogicalOr"]:
    case(name, op(name), b(3, 4), b(3, 4))
case("LogicalNot", op("LogicalNot"), b(3, 4))
case("AddN", lambda *v: R.AddN(inputs=list(v)), f(3), f(3), f(3))
case("ClipByValue", op("ClipByValue"), f(3, 4), np.float32(-0.5), np.float32(0.5))
case("Select", op("Select"), b(3), f(3, 4), f(3, 4))
case("SelectV2", op("SelectV2"), b(3, 1), f(3, 4), f(4))
case("Cast", lambda x: tf.cast(x, tf.int32), f(3, 4) * 5)
case("Cast.bool", lambda x: tf.cast(x, tf.float32), b(3, 4))
case("Bitcast", lambda x: tf.bitcast(x, tf.int32), f(3))
case("BiasAdd", op("BiasAdd"), f(2, 3, 3, 4), f(4))
case("BiasAdd.first", op("BiasAdd", data_format="NCHW"), f(2, 4, 3, 3), f(4))
case("LRN", op("LRN", depth_radius=2, bias=1.5, alpha=0.3, beta=0.6), f(1, 3, 3, 8))
W4 = f(3, 3, 4, 6)
case("Conv2D", lambda x: tf.nn.conv2d(x, W4, 1, "SAME"), f(1, 6, 7, 4))
case("Conv2D.strides", lambda x: tf.nn.conv2d(x, W4, 2, "SAME"), f(1, 6, 7, 4))
case("Conv2D.valid", lambda x: tf.nn.conv2d(x, W4, [1, 2, 1, 1], "VALID"), f(1, 6, 7, 4))
case("Conv2D.dilated", lambda x: tf.nn.conv2d(x, W4, 1, "SAME", dilations=2), f(1, 8, 8, 4))
case("Conv2D.explicit", lambda x: tf.nn.conv2d(x, W4, 1, [[0, 0], [1, 0], [2, 1], [0, 0]]), f(1, 6, 7, 4))
case("Conv2D.groups", lambda x: tf.nn.conv2d(x, W4, 1, "SAME"), f(1, 6, 6, 8))
case("DepthwiseConv2dNative", lambda x: tf.nn.depthwise_conv2d(x, W4[..., :2], [1, 2, 2, 1], "SAME"), f(1, 6, 7, 4))
W3 = f(2, 3, 3, 2, 4)
case("Conv3D", lambda x: tf.nn.conv3d(x, W3, [1, 1, 2, 1, 1], "SAME"), f(1, 4, 5, 5, 2))
case(
    "Conv3DBackpropInputV2",
    lambda x: tf.nn.conv3d_transpose(x, W3, [1, 4, 6, 6, 2], [1, 2, 2, 2, 1], "SAME"),
    f(1, 2, 3, 3, 4),
)
case("Conv2DBackpropInput", lambda x: tf.nn.conv2d_transpose(x, W4, [1, 8, 10, 4], 2, "SAME"), f(1, 4, 5, 6))
case("Conv2DBackpropInput.odd", lambda x: tf.nn.conv2d_transpose(x, W4, [1, 7, 9, 4], 2, "SAME"), f(1, 4, 5, 6))
case("Conv2DBackpropInput.valid", lambda x: tf.nn.conv2d_transpose(x, W4, [1, 10, 12, 4], 2, "VALID"), f(1, 4, 5, 6))
case(
    "Conv2DBackpropInput.explicit",
    lambda x: tf.nn.conv2d_transpose(x, W4, [1, 8, 9, 4], 2, [[0, 0], [1, 0], [0, 2], [0, 0]]),
    f(1, 4, 5, 6),
)
case(
    "Conv2DBackpropInput.explicit rest",
    lambda x: tf.nn.conv2d_transpose(x, W4, [1, 7, 10, 4], 3, [[0, 0], [0, 2], [2, 1], [0, 0]]),
    f(1, 3, 4, 6),
)
case("MaxPool", lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), f(1, 6, 7, 4))
case("AvgPool", lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), f(1, 6, 7, 4))
case("AvgPool.valid", lambda x: tf.nn.avg_pool2d(x, 2, 1, "VALID"), f(1, 6, 7, 4))
case("MaxPool3D", lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"), f(1, 5, 5, 5, 2))
case("AvgPool3D", lambda x: tf.nn.avg_pool3d(x, 2, 2, "VALID"), f(1, 5, 5, 5, 2))
case(
    "Dilation2D", op("Dilation2D", strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"), f(1, 5, 5, 3), f(2, 2, 3)
)
for k in (False, True):
    case(
        f"FusedBatchNormV3.{k}",
        lambda *v, k=k: R.FusedBatchNormV3(
            x=v[0], scale=v[1], offset=v[2], mean=v[3] if not k else [], variance=v[4] if not k else [], is_training=k
        )[0],
        f(2, 3, 3, 4),
        f(4),
        f(4),
        f(4),
        u(4),
    )
case("MatMul", op("MatMul", transpose_b=True), f(3, 4), f(5, 4))
case("BatchMatMulV2", op("BatchMatMulV2", adj_x=True), f(2, 4, 3), f(2, 4, 5))
case("Einsum", lambda x, y: tf.einsum("bij,bkj->bik", x, y), f(2, 3, 4), f(2, 5, 4))
case("Cross", op("Cross"), f(4, 3), f(4, 3))
case("MatrixDeterminant", op("MatrixDeterminant"), f(2, 3, 3))
for name in ["Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"]:
    case(name, op(name, axis=[1]), f(3, 4, 2))
    case(f"{name}.keep", op(name, axis=[-1, 0], keep_dims=True), f(3, 4, 2))
case("Mean.image", lambda x: tf.reduce_mean(tf.nn.conv2d(x, W4, 1, "SAME"), [1, 2]), f(1, 5, 5, 4))
case("All", op("All", axis=[1]), b(3, 4))
case("Any", op("Any", axis=[0], keep_dims=True), b(3, 4))
case("ArgMax", op("ArgMax", dimension=1), f(3, 4))
case("ArgMin", op("ArgMin", dimension=0, output_type=tf.int32), f(3, 4))
case("Cumsum", op("Cumsum", axis=1, exclusive=True), f(3, 4))
case("Cumprod", op("Cumprod", axis=0, reverse=True), f(3, 4))
case("TopKV2", lambda x: tuple(R.TopKV2(input=x, k=3)), f(2, 7))
case("InTopKV2", op("InTopKV2", k=2), f(4, 5), n(4, low=0, high=5))
case("SegmentSum", lambda x: R.SegmentSum(data=x, segment_ids=[0, 0, 1, 2]), f(4, 3))
for name in ["Sum", "Max", "Min", "Prod"]:
    case(
        f"UnsortedSegment{name}",
        lambda x, name=name: getattr(R, f"UnsortedSegment{name}")(data=x, segment_ids=[2, 0, 1, 2], num_segments=3),
        f(4, 3),
    )
case("Reshape", lambda x: tf.reshape(x, [2, -1]), f(3, 4))
case("Reshape.symbolic", lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, -1]), f(3, 4))
case("Squeeze", lambda x: tf.squeeze(x, [1]), f(3, 1, 4, 1))
case("ExpandDims", lambda x: tf.expand_dims(x, -2), f(3, 4))
case("Transpose", lambda x: tf.transpose(x, [2, 0, 1]), f(2, 3, 4))
case("ConcatV2", lambda x, y: tf.concat([x, y], -1), f(2, 3), f(2, 4))
case("ConcatV2.image", lambda x: tf.concat([tf.nn.conv2d(x, W4, 1, "SAME"), tf.nn.relu(x)], 3), f(1, 5, 5, 4))
case("Pack", lambda x, y: tf.stack([x, y], 1), f(2, 3), f(2, 3))
case("Unpack", lambda x: tuple(tf.unstack(x, axis=1)), f(2, 3))
case("Split", lambda x: tuple(tf.split(x, 3, axis=1)), f(2, 6))
case("SplitV", lambda x: tuple(tf.split(x, [1, -1, 2], axis=1)), f(2, 6))
case("Split.image", lambda x: tuple(tf.split(tf.nn.conv2d(x, W4, 1, "SAME"), 2, axis=3)), f(1, 5, 5, 4))
case("Pad", lambda x: tf.pad(x, [[0, 1], [2, 0]]), f(2, 3))
case("PadV2", lambda x: tf.pad(x, [[0, 1], [2, 0]], constant_values=1.5), f(2, 3))
case("Pad.image", lambda x: tf.pad(tf.nn.conv2d(x, W4, 1, "SAME"), [[0, 0], [1, 2], [0, 1], [1, 0]]), f(1, 5, 5, 4))
case("MirrorPad.reflect", lambda x: tf.pad(x, [[1, 1], [2, 0]], "REFLECT"), f(3, 4))
case("MirrorPad.symmetric", lambda x: tf.pad(x, [[1, 1], [2, 0]], "SYMMETRIC"), f(3, 4))
case("Tile", lambda x: tf.tile(x, [2, 3]), f(2, 3))
case("BroadcastTo", lambda x: tf.broadcast_to(x, [4, 2, 3]), f(2, 1))
case("BroadcastArgs", lambda x: R.BroadcastTo(input=x, shape=R.BroadcastArgs(s0=[1, 3], s1=[4, 2, 1])), f(2, 3))
case("ReverseV2", lambda x: tf.reverse(x, [1]), f(2, 3))
case("ReverseSequence", lambda x: tf.reverse_sequence(x, [2, 3], seq_axis=1, batch_axis=0), f(2, 4, 3))
case("Roll", lambda x: tf.roll(x, [1, -2], [0, 1]), f(3, 4))
case("DepthToSpace", lambda x: tf.nn.depth_to_space(x, 2), f(1, 3, 2, 8))
case("SpaceToDepth", lambda x: tf.nn.space_to_depth(x, 2), f(1, 4, 6, 3))
case("SpaceToBatchND", lambda x: tf.space_to_batch(x, [2, 3], [[0, 1], [2, 0]]), f(1, 5, 4, 3))
case("BatchToSpaceND", lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]]), f(4, 3, 4, 3))
case("Slice", lambda x: tf.slice(x, [0, 1, 2], [-1, 2, 1]), f(2, 4, 5))
case("StridedSlice", lambda x: x[1:, ::2, -1], f(3, 5, 4))
case("StridedSlice.new", lambda x: x[..., tf.newaxis, 1:3], f(3, 5, 4))
case("StridedSlice.back", lambda x: x[::-1, 3:0:-2], f(3, 5))
case("StridedSlice.middle", lambda x: x[:, tf.newaxis, 2, ..., 1], f(3, 5, 4, 2))
case("Gather", lambda x, i: tf.gather(x, i, axis=1), f(3, 5), n(2, 2, low=0, high=5))
case("GatherV2.batch", lambda x, i: tf.gather(x, i, axis=2, batch_dims=1), f(2, 3, 5), n(2, 4, low=0, high=5))
case("GatherNd", tf.gather_nd, f(3, 4, 2), n(5, 2, low=0, high=3))
case("ScatterNd", lambda x: tf.scatter_nd([[1], [3], [1]], x, [5, 2]), f(3, 2))
for name in ["Update", "Add", "Sub", "Max", "Min"]:
    case(
        f"TensorScatter{name}",
        lambda x, y, name=name: getattr(R, f"TensorScatter{name}")(tensor=x, indices=[[0], [2]], updates=y),
        f(4, 3),
        f(2, 3),
    )
case("OneHot", lambda i: tf.one_hot(i, 5, 2.0, -1.0, axis=0), n(4, low=0, high=5))
case("Where", tf.where, b(3, 4))
case("Unique", lambda x: tuple(tf.unique(x)), n(9, low=0, high=4))
case("UniqueWithCounts", lambda x: tuple(tf.unique_with_counts(x)), n(9, low=0, high=4))
case("InvertPermutation", op("InvertPermutation"), np.array([2, 0, 3, 1], np.int32))
case("UnravelIndex", lambda i: tf.unravel_index(i, [3, 4]), n(5, low=0, high=12))
case("UpperBound", lambda x: R.UpperBound(sorted_inputs=np.arange(6.0, dtype=np.float32)[None], values=x), u(1, 5) * 6)
case("LowerBound", lambda x: R.LowerBound(sorted_inputs=np.arange(6.0, dtype=np.float32)[None], values=x), u(1, 5) * 6)
BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0.1, 2, 1, 3.1]], np.float32)
case("NonMaxSuppressionV3", lambda s: tf.image.non_max_suppression(BOXES, s, 3, 0.5, 0.2), u(4))
case(
    "NonMaxSuppressionV4",
    lambda s: tuple(
        R.NonMaxSuppressionV4(
            boxes=BOXES,
            scores=s,
            max_output_size=4,
            iou_threshold=0.5,
            score_threshold=0.2,
            pad_to_max_output_size=True,
        )
    ),
    u(4),
)
case("Fill", lambda x: tf.fill([2, 3], x), np.float32(1.5))
case("Range", lambda x: x + tf.range(2.0, 8.0, 1.5), f(4))
case("LinSpace", lambda x: x + tf.linspace(0.0, 1.0, 5), f(5))
case("Range.symbolic", lambda x: tf.range(tf.shape(x)[0]), f(4, 2))
case("MatrixBandPart", lambda x: tf.linalg.band_part(x, 1, 0), f(2, 4, 4))
case("MatrixDiagV3", tf.linalg.diag, f(2, 3))
case("MatrixDiagPartV3", tf.linalg.diag_part, f(2, 3, 3))
case("MatrixSetDiagV3", tf.linalg.set_diag, f(2, 3, 3), f(2, 3))
for how in ("half", "corners", "plain"):
    given = {"half_pixel_centers": how == "half", "align_corners": how == "corners"}
    for name in ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"]:
        case(f"{name}.{how}", op(name, size=[7, 4], **given), f(1, 4, 6, 2))
case(
    "CropAndResize",
    lambda x: tf.image.crop_and_resize(
        x, [[0.1, 0.2, 0.9, 0.8], [-0.2, 0, 1.2, 1], [0.5, 0.9, 0.1, 0.3]], [0, 1, 0], [3, 4], extrapolation_value=2.0
    ),
    f(2, 6, 5, 3),
)
case("IdentityN", lambda x, y: tuple(tf.identity_n([x, y])), f(2), f(3))
case("EnsureShape", lambda x: tf.ensure_shape(x, [3, None]), f(3, 4))
case("CheckNumerics", op("CheckNumerics", message="m"), f(3))
case("PartitionedCall", lambda x: tf.function(lambda v: v * 2.0)(x) + 1.0, f(3))
case("If", lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0), f(3))
case("While", lambda x: tf.while_loop(lambda i, v: i < 30, lambda i, v: (i + 1, tf.tanh(v + 0.1)), [0, x])[1], f(3))
case(
    "While.late",
    lambda x: tf.while_loop(lambda v: tf.reduce_sum(v) < 100.0, lambda v: v * 1.5 + 1.0, [tf.abs(x)])[0],
    f(3),
)
case("TensorList", lambda x: tf.map_fn(lambda v: tf.cumsum(v) * 2.0, x), f(20, 3))
case("gelu", tf.nn.gelu, f(3, 4))
case("hard_swish", lambda x: x * tf.nn.relu6(x + 3.0) / 6.0, f(3, 4))
case("prelu", lambda x: tf.nn.relu(x) - 0.3 * tf.nn.relu(-x), f(3, 4))
case("l2_normalize", lambda x: tf.nn.l2_normalize(x, -1), f(3, 4))
case("dense", lambda x: tf.nn.relu(tf.matmul(x, f(4, 5)) + 1.0), f(3, 4))


INDICES = np.array([[0, 1], [2, 0], [2, 3]], np.int64)
case(
    "SparseToDense",
    lambda v: R.SparseToDense(sparse_indices=INDICES, output_shape=[3, 4], sparse_values=v, default_value=0.5),
    f(3),
)
case(
    "SparseToDense.row",
    lambda v: R.SparseToDense(sparse_indices=[1, 3], output_shape=[5], sparse_values=v, default_value=0.0),
    f(2),
)
case(
    "SparseTensorDenseAdd",
    lambda v, x: R.SparseTensorDenseAdd(a_indices=INDICES, a_values=v, a_shape=[3, 4], b=x),
    f(3),
    f(3, 4),
)
for _turned in (False, True):
    case(
        f"SparseTensorDenseMatMul.{_turned}",
        lambda v, x, t=_turned: R.SparseTensorDenseMatMul(
            a_indices=INDICES, a_values=v, a_shape=[3, 4], b=x, adjoint_a=t, adjoint_b=t
        ),
        f(3),
        f(2, 3) if _turned else f(4, 2),
    )
for _how in ("Sum", "Mean", "SqrtN"):
    case(f"SparseSegment{_how}", op(f"SparseSegment{_how}", indices=[0, 2, 1, 1], segment_ids=[0, 0, 2, 2]), f(3, 4))
    _counted = {"indices": [0, 2, 1], "segment_ids": [0, 0, 1], "num_segments": 4}
    case(f"SparseSegment{_how}WithNumSegments", op(f"SparseSegment{_how}WithNumSegments", **_counted), f(3, 4))
case("UnsortedSegmentSum.negative", op("UnsortedSegmentSum", segment_ids=[1, -1, 0, 1], num_segments=3), f(4, 2))
case("UnsortedSegmentMax.negative", op("UnsortedSegmentMax", segment_ids=[-1, -1, 0, 1], num_segments=2), f(4, 2))
for _padded in (False, True):
    case(
        f"NonMaxSuppressionV5.{_padded}",
        lambda s, p=_padded: tuple(
            R.NonMaxSuppressionV5(
                boxes=BOXES,
                scores=s,
                max_output_size=4,
                iou_threshold=0.5,
                score_threshold=0.2,
                soft_nms_sigma=0.0,
                pad_to_max_output_size=p,
            )
        ),
        u(4),
    )


case("FakeQuantWithMinMaxArgs", op("FakeQuantWithMinMaxArgs", min=-1.3, max=0.9, num_bits=5), f(3, 40))
case("FakeQuantWithMinMaxArgs.narrow", op("FakeQuantWithMinMaxArgs", min=0.2, max=1.9, narrow_range=True), f(3, 40))
case("FakeQuantWithMinMaxVars", lambda x: R.FakeQuantWithMinMaxVars(inputs=x, min=-0.7, max=1.1, num_bits=4), f(3, 40))
case(
    "FakeQuantWithMinMaxVarsPerChannel",
    lambda x: R.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=[-0.7, -1.0, 0.0], max=[1.1, 0.4, 2.0], num_bits=4),
    f(40, 3),
)


OTHERWISE = ("NonMaxSuppressionV3", "NonMaxSuppressionV5.False", "FakeQuant")
"""Beginnings of cases that TensorFlow Lite computes otherwise: with results filled up, and without ranges of few bits."""


def lite_of(function: Any) -> bytes | None:
    """Returns the model that TensorFlow Lite's converter makes; None where it does not."""
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    try:
        return bytes(converter.convert())
    except Exception:
        return None


class Small(tf.Module):  # type: ignore[misc]
    """Two layers with variables."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = [tf.Variable(f(4, 6)), tf.Variable(f(6, 3))]
        self.bias = tf.Variable(f(3))

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32, name="x")])  # type: ignore[untyped-decorator]
    def __call__(self, x: Any) -> Any:
        return tf.matmul(tf.nn.relu(tf.matmul(x, self.weights[0])), self.weights[1]) + self.bias


def save_small(folder: Path) -> None:
    module = Small()
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.__call__})
    (folder / "fingerprint.pb").unlink(missing_ok=True)
    (folder / "assets").rmdir()
    np.save(folder / "wanted.npy", module(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)).numpy())


def main(folder: Path) -> None:
    save_small(folder / "small")
    graphs: dict[str, Any] = {}
    lite: dict[str, Any] = {}
    for name, (function, inputs) in CASES.items():
        print(name, flush=True)
        made = tf.function(function).get_concrete_function(*[tf.TensorSpec(i.shape, i.dtype) for i in inputs])
        outputs = tf.nest.flatten(made(*map(tf.constant, inputs)))
        graphs[f"{name}.graph"] = np.frombuffer(made.graph.as_graph_def().SerializeToString(), np.uint8)
        graphs |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        graphs |= {f"{name}.output{k}": v.numpy() for k, v in enumerate(outputs)}
        model = lite_of(made)
        if model is not None and not name.startswith(OTHERWISE):
            lite[f"{name}.model"] = np.frombuffer(model, np.uint8)
    half = len(CASES) // 2
    first = {f"{name}." for name in list(CASES)[:half]}
    for k in range(2):
        chosen = {n: v for n, v in graphs.items() if (n.rpartition(".")[0] + "." in first) == (k == 0)}
        pack(folder / f"graphs{k}.npz.xz", chosen)
    pack(folder / "lite.npz.xz", lite)


def pack(path: Path, arrays: dict[str, Any]) -> None:
    whole = io.BytesIO()
    np.savez(whole, **arrays)
    path.write_bytes(lzma.compress(whole.getvalue(), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
