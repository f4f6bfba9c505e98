"""Cases of operations on each element, of reductions, and of those that move elements."""

from __future__ import annotations

import numpy as np
import torch
from coremltools.converters.mil.mil import Builder
from tests.frontends.coreml.cases.entering import X, by_torch, case, f, n, u

F = torch.nn.functional
for _name in ("abs", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "floor", "identity", "relu", "relu6"):
    case(
        _name,
        lambda a, op=_name: getattr(Builder, op)(x=a),
        X * 3,
        wanted=(lambda x: x) if _name == "identity" else None,
    )
for _name in ("round", "sigmoid", "sign", "sin", "sinh", "softplus", "softsign", "square", "tan", "tanh"):
    case(_name, lambda a, op=_name: getattr(Builder, op)(x=a), X * 3)
for _name in ("acos", "asin", "atanh", "sqrt"):
    case(_name, lambda a, op=_name: getattr(Builder, op)(x=a), u(3, 4))
case("silu", lambda a: Builder.silu(x=a), X, wanted=by_torch(F.silu))
case("round.halves", lambda a: Builder.round(x=a), [0.5, 1.5, 2.5, -0.5, -1.5, 0.3])
for _name in ("rsqrt", "inverse", "log"):
    case(_name, lambda a, op=_name: getattr(Builder, op)(x=a), u(3, 4))
    case(f"{_name}.epsilon", lambda a, op=_name: getattr(Builder, op)(x=a, epsilon=0.25), u(3, 4))
for _name in ("add", "sub", "mul", "real_div", "maximum", "minimum", "floor_div", "mod", "pow"):
    case(_name, lambda a, b, op=_name: getattr(Builder, op)(x=a, y=b), u(3, 4, high=4), u(1, 4, high=2))
SIGNED = np.array([7, -7, 7, -7, 6, -6, 0]), np.array([2, 2, -2, -2, 3, 3, 5])
for _name in ("floor_div", "mod", "add"):
    case(f"{_name}.integers", lambda a, b, op=_name: getattr(Builder, op)(x=a, y=b), *SIGNED)
    case(f"{_name}.signs", lambda a, b, op=_name: getattr(Builder, op)(x=a, y=b), *[v + 0.25 for v in SIGNED])
case("mul.number", lambda a: Builder.mul(x=a, y=2.5), X)
case("sub.from", lambda a: Builder.sub(x=1.0, y=a), X)
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    case(_name, lambda a, b, op=_name: getattr(Builder, op)(x=a, y=b), n(3, 4, most=3), n(1, 4, most=3))
for _name in ("logical_and", "logical_or", "logical_xor"):
    case(
        _name,
        lambda a, b, op=_name: getattr(Builder, op)(x=Builder.greater(x=a, y=0.0), y=Builder.greater(x=b, y=0.0)),
        f(3, 4),
        f(1, 4),
    )
case("logical_not", lambda a: Builder.logical_not(x=Builder.greater(x=a, y=0.0)), f(3, 4))
case("cast", lambda a: Builder.cast(x=a, dtype="int32"), X * 3)
case("cast.half", lambda a: Builder.cast(x=Builder.cast(x=a, dtype="fp16"), dtype="fp32"), X)
case("select", lambda a, b: Builder.select(cond=Builder.greater(x=a, y=b), a=a, b=b), f(3, 4), f(3, 4))
case("clip", lambda a: Builder.clip(x=a, alpha=-0.5, beta=0.7), X)
case("threshold", lambda a: Builder.threshold(x=a, alpha=0.3), X)
case("thresholded_relu", lambda a: Builder.thresholded_relu(x=a, alpha=0.5), [0.5, 0.4, -1.0, 2.0])
case("clamped_relu", lambda a: Builder.clamped_relu(x=a, alpha=0.2, beta=0.6), X)
case("leaky_relu", lambda a: Builder.leaky_relu(x=a, alpha=0.2), X)
case("elu", lambda a: Builder.elu(x=a, alpha=0.7), X)
case("gelu", lambda a: Builder.gelu(x=a), X, wanted=by_torch(F.gelu))
case("gelu.tanh", lambda a: Builder.gelu(x=a, mode="TANH_APPROXIMATION"), X)
case("gelu.sigmoid", lambda a: Builder.gelu(x=a, mode="SIGMOID_APPROXIMATION"), X)
case("prelu", lambda a: Builder.prelu(x=a, alpha=np.array([0.1, 0.2, 0.3], np.float32)), f(2, 3, 4, 2))
case("sigmoid_hard", lambda a: Builder.sigmoid_hard(x=a, alpha=0.3, beta=0.4), X * 3)
case("linear_activation", lambda a: Builder.linear_activation(x=a, alpha=0.3, beta=0.4), X)
case("scaled_tanh", lambda a: Builder.scaled_tanh(x=a, alpha=0.3, beta=0.4), X)
SLOPES = np.array([0.5, 1, 2], np.float32), np.array([1, 2, 0.5], np.float32)
case("softplus_parametric", lambda a: Builder.softplus_parametric(x=a, alpha=SLOPES[0], beta=SLOPES[1]), X)
case("softmax", lambda a: Builder.softmax(x=a, axis=1), X)

for _name in ("sum", "mean", "max", "min", "prod", "l1_norm", "l2_norm", "log_sum", "log_sum_exp", "sum_square"):
    case(f"reduce_{_name}", lambda a, op=f"reduce_{_name}": getattr(Builder, op)(x=a, axes=[0, -1]), u(2, 3, 4))
    case(
        f"reduce_{_name}.kept",
        lambda a, op=f"reduce_{_name}": getattr(Builder, op)(x=a, axes=[1], keep_dims=True),
        u(2, 3),
    )
for _name in ("argmax", "argmin"):
    case(f"reduce_{_name}", lambda a, op=f"reduce_{_name}": getattr(Builder, op)(x=a, axis=1), X)
    case(f"reduce_{_name}.kept", lambda a, op=f"reduce_{_name}": getattr(Builder, op)(x=a, axis=-1, keep_dims=True), X)
case("topk", lambda a: Builder.topk(x=a, k=2, axis=1), X)
case("topk.ascending", lambda a: Builder.topk(x=a, k=2, axis=-1, ascending=True), X)
case("topk.values", lambda a: Builder.topk(x=a, k=2, axis=1, return_indices=False), X, version=16)
case("argsort", lambda a: Builder.argsort(x=a, axis=-1), X)
case("argsort.ascending", lambda a: Builder.argsort(x=a, axis=1, ascending=True), X)
case("cumsum", lambda a: Builder.cumsum(x=a, axis=1), X)
case(
    "cumsum.back",
    lambda a: Builder.cumsum(x=a, axis=-1, exclusive=True, reverse=True),
    X,
    wanted=lambda x: np.cumsum(x[..., ::-1], -1)[..., ::-1] - x,
)
case("band_part", lambda a: Builder.band_part(x=a, lower=1, upper=2), f(2, 5, 6))
case("band_part.lower", lambda a: Builder.band_part(x=a, lower=-1, upper=0), f(5, 4))
case(
    "one_hot",
    lambda a: Builder.one_hot(indices=a, one_hot_vector_size=4),
    n(2, 3, most=4),
    wanted=lambda i: np.eye(4, dtype=np.int32)[i],
)
case(
    "one_hot.values",
    lambda a: Builder.one_hot(indices=a, one_hot_vector_size=4, axis=1, on_value=2.5, off_value=-1.0),
    n(2, 3, most=4),
    wanted=lambda i: np.moveaxis(np.eye(4)[i] * 3.5 - 1, -1, 1).astype(np.float32),
)

case("reshape", lambda a: Builder.reshape(x=a, shape=[4, -1]), X)
case("reshape.kept", lambda a: Builder.reshape(x=a, shape=[0, -1, 2]), X, wanted=lambda x: x.reshape(2, 6, 2))
case("transpose", lambda a: Builder.transpose(x=a, perm=[2, 0, -2]), X)
case("expand_dims", lambda a: Builder.expand_dims(x=a, axes=[0, -1]), X)
case("squeeze", lambda a: Builder.squeeze(x=a, axes=[0, -1]), f(1, 3, 1))
case("squeeze.all", lambda a: Builder.squeeze(x=a), f(1, 3, 1))
case("flatten2d", lambda a: Builder.flatten2d(x=a, axis=-1), X)
case("flatten2d.start", lambda a: Builder.flatten2d(x=a, axis=0), X, wanted=lambda x: x.reshape(1, -1))
case("concat", lambda a, b: Builder.concat(values=[a, b], axis=-2), X, f(2, 5, 4))
case(
    "concat.interleaved",
    lambda a, b: Builder.concat(values=[a, b], axis=1, interleave=True),
    X,
    f(2, 3, 4),
    wanted=lambda x, y: np.stack([x, y], 2).reshape(2, 6, 4),
)
case("stack", lambda a, b: Builder.stack(values=[a, b], axis=-1), X, f(2, 3, 4))
case("split", lambda a: Builder.split(x=a, num_splits=2, axis=-1), X)
case("split.sizes", lambda a: Builder.split(x=a, split_sizes=[1, 3], axis=2), X)
case(
    "slice_by_index",
    lambda a: Builder.slice_by_index(
        x=a, begin=[0, -2, 3], end=[2, 3, 0], stride=[1, 1, -2], end_mask=[True, False, False]
    ),
    X,
)
case(
    "slice_by_index.squeezed",
    lambda a: Builder.slice_by_index(
        x=a,
        begin=[-1, 0, 1],
        end=[0, 0, 3],
        begin_mask=[False, True, False],
        end_mask=[False, True, False],
        squeeze_mask=[True, False, False],
    ),
    X,
)
case("slice_by_size", lambda a: Builder.slice_by_size(x=a, begin=[0, 1, 1], size=[-1, 2, 2]), X)
case("pad", lambda a: Builder.pad(x=a, pad=[1, 0, 2, 3], constant_val=1.5), X)
case("pad.reflect", lambda a: Builder.pad(x=a, pad=[1, 2, 2, 1], mode="reflect"), X)
case("pad.replicate", lambda a: Builder.pad(x=a, pad=[1, 2, 2, 1], mode="replicate"), X)
case("tile", lambda a: Builder.tile(x=a, reps=[1, 2, 3]), X)
case("reverse", lambda a: Builder.reverse(x=a, axes=[0, -1]), X)
case("reverse.all", lambda a: Builder.reverse(x=a), X)
case("shape", lambda a: Builder.shape(x=a), X)
case(
    "fill",
    lambda a: Builder.add(x=a, y=Builder.fill(shape=[3, 4], value=1.5)),
    f(3, 1),
    wanted=lambda x: x + np.full((3, 4), 1.5),
)
case("range_1d", lambda a: Builder.add(x=a, y=Builder.range_1d(start=1.0, end=6.0, step=2.0)), f(3))
case("range_1d.down", lambda a: Builder.add(x=a, y=Builder.range_1d(start=5, end=-1, step=-2)), n(3, most=9))
case("gather", lambda a: Builder.gather(x=a, indices=[2, 0, -1], axis=1), X)
case(
    "gather.matrix",
    lambda a, b: Builder.gather(x=a, indices=b, axis=-1),
    X,
    n(2, 2, most=4),
    wanted=lambda x, i: np.take(x, i, -1),
)
case("gather.batch", lambda a, b: Builder.gather(x=a, indices=b, axis=2, batch_dims=1), X, n(2, 2, most=4), version=17)
case("gather_along_axis", lambda a, b: Builder.gather_along_axis(x=a, indices=b, axis=1), X, n(2, 2, 4, most=3))
case(
    "gather_nd",
    lambda a, b: Builder.gather_nd(x=a, indices=b),
    X,
    [[0, 2], [1, 0]],
    wanted=lambda x, i: x[i[:, 0], i[:, 1]],
)
case(
    "gather_nd.batch",
    lambda a, b: Builder.gather_nd(x=a, indices=b, batch_dims=1),
    X,
    [[[2], [0]], [[1], [1]]],
    wanted=lambda x, i: np.stack([x[0, i[0, :, 0]], x[1, i[1, :, 0]]]),
    version=16,
)
case(
    "pixel_shuffle",
    lambda a: Builder.pixel_shuffle(x=a, upscale_factor=2),
    f(2, 8, 2, 3),
    wanted=by_torch(lambda x: F.pixel_shuffle(x, 2)),
)
BLOCKS = f(2, 8, 2, 3)
case(
    "depth_to_space",
    lambda a: Builder.depth_to_space(x=a, block_size=2),
    BLOCKS,
    wanted=lambda x: x.reshape(2, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 4, 6),
)
case(
    "space_to_depth",
    lambda a: Builder.space_to_depth(x=a, block_size=2),
    f(2, 2, 4, 6),
    wanted=lambda x: x.reshape(2, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 8, 2, 3),
)
