"""Cases for `make_cases` of names that no other case has, aliases among them, by the names that symbols have for them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

RNG = np.random.default_rng(1)
VERSION = {"mxnet_version": ["int", 10901]}
NAMED: dict[str, tuple[str, str, dict[str, Any]]] = {}
"""The text of a symbol, that which MXNet 1.9 computes it by, and its inputs, by the name of the case."""

SINCE_OR_BEFORE = {
    "_npi_copy": "_np_copy",
    "_npi_transpose": "_np_transpose",
    "_npi_squeeze": "_np_squeeze",
    "_add_scalar": "_plus_scalar",
    "_sub_scalar": "_minus_scalar",
    "__add_scalar__": "_plus_scalar",
    "__sub_scalar__": "_minus_scalar",
    "__mul_scalar__": "_mul_scalar",
    "__div_scalar__": "_div_scalar",
    "__pow_scalar__": "_power_scalar",
    "__rsub_scalar__": "_rminus_scalar",
    "__rdiv_scalar__": "_rdiv_scalar",
    "__rpow_scalar__": "_rpower_scalar",
}
"""Names that other versions have for operators of MXNet 1.9."""


def named(name: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> None:
    """Enters a call of the operator *name*, which may have a mark behind a point, with inputs a, b, c ..."""
    given = {chr(97 + k): np.asarray(v, np.float32) for k, v in enumerate(inputs)}
    variables = [{"op": "null", "name": k, "inputs": []} for k in given]
    texts = {k: str(v) for k, v in attributes.items()}
    at = [[k, 0, 0] for k in range(len(given))]
    heads = [[len(given), k, 0] for k in range(outputs)]
    kind = name.partition(".")[0]
    made: list[str] = []
    for op in (kind, SINCE_OR_BEFORE.get(kind, kind)):
        nodes = [*variables, {"op": op, "name": "call", "attrs": texts, "inputs": at}]
        symbol = {"nodes": nodes, "arg_nodes": [*range(len(given))], "heads": heads, "attrs": VERSION}
        made.append(json.dumps(symbol))
    assert name not in NAMED, name
    NAMED[name] = made[0], made[1], given


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def u(*shape: int) -> Any:
    return RNG.uniform(0.1, 0.9, shape)


def n(*shape: int, most: int = 3) -> Any:
    return RNG.integers(0, most, shape)


for _name in ("abs", "ceil", "cos", "cosh", "erf", "exp", "floor", "log", "negative", "reciprocal", "rsqrt", "sigmoid"):
    named(_name, u(3, 4) if _name in ("log", "rsqrt", "reciprocal") else f(3, 4) * 2)
for _name in ("relu", "sign", "sin", "sinh", "softsign", "sqrt", "square", "tan", "_npi_tanh", "identity"):
    named(_name, u(3, 4) if _name == "sqrt" else f(3, 4))
for _name in ("arccos", "arcsin", "arcsinh", "arctanh"):
    named(_name, u(3, 4))
named("arccosh", u(3, 4) + 1)
for _name in ("BlockGrad", "make_loss", "_np_copy", "_npi_copy"):
    named(_name, f(3, 4))
for _name in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput"):
    named(_name, f(3, 4), f(3, 4))

ARITHMETIC = ("add", "plus", "sub", "minus", "mul", "div", "mod", "power", "maximum", "minimum")
COMPARISON = ("equal", "not_equal", "lesser", "lesser_equal", "greater", "greater_equal")
for _name in ARITHMETIC:
    named(f"broadcast_{_name}", u(3, 4) * 4, u(1, 4) * 2 - 0.7 * (_name == "mod"))
    named(f"_{_name}", u(3, 4) * 4, u(3, 4) * 2)
for _name in COMPARISON:
    named(f"broadcast_{_name}", n(3, 4), n(1, 4))
    named(f"_{_name}", n(3, 4), n(3, 4))
    named(f"_{_name}_scalar", n(3, 4), scalar=1)
for _name in ("add", "sub", "minus", "mul", "plus", "div", "mod", "power", "maximum", "minimum"):
    named(f"_{_name}_scalar", u(3, 4) * 4, scalar=1.7)
for _name in ("minus", "div", "power", "mod"):
    named(f"_r{_name}_scalar", u(3, 4) * 4, scalar=1.7)
named("_mod_scalar.sign", f(3, 4) * 4, scalar=-1.7)
for _name in ("PlusScalar", "MinusScalar", "MulScalar", "DivScalar"):
    named(f"_{_name}", f(3, 4), scalar=1.7)
for _name in ("add", "sub", "mul", "div", "rsub", "rdiv", "pow", "rpow"):
    named(f"__{_name}_scalar__", u(3, 4), scalar=1.7)
for _name in ("add", "sub", "mul", "div"):
    named(f"elemwise_{_name}", f(3, 4), u(3, 4))
for _name in ("add", "subtract", "multiply", "true_divide", "power"):
    named(f"_npi_{_name}", u(3, 4) * 4, u(1, 4))
    named(f"_npi_{_name}_scalar", u(3, 4), scalar=1.7)
for _name in ("less", "less_equal", "greater", "equal"):
    named(f"_npi_{_name}", n(3, 4), n(1, 4))
for _name in ("and", "or", "xor"):
    named(f"_logical_{_name}", n(3, 4, most=2), n(3, 4, most=2))
for _name in ("add_n", "ElementWiseSum"):
    named(_name, f(3, 4), f(3, 4), f(3, 4), num_args=3)
named("where", n(3, 4, most=2), f(3, 4), f(3, 4))
for _name in ("cast", "Cast.half"):
    named(_name, f(3, 4) * 3, dtype="int32" if _name == "cast" else "float16")
named("amp_cast", f(3, 4), dtype="float32")
named("amp_multicast", f(3, 4), f(2), num_outputs=2, outputs=2)

for _name in ("sum_axis", "max", "max_axis", "min", "min_axis", "prod"):
    named(_name, u(3, 4, 2), axis="(0, 2)")
for _name in ("log_softmax", "softmax.hot"):
    named(_name, f(3, 4), axis=0, temperature=2.0)
named("Softmax", f(3, 4), n(3))
named("cumsum.flat", f(3, 4))
named("_np_cumsum", f(3, 4), axis=1)
named("flip", f(3, 4), axis=1)
named("concat", f(3, 4), f(3, 2), num_args=2, dim=-1)
named("stack", f(3, 4), f(3, 4), num_args=2, axis=-1)
named("split", f(3, 4), num_outputs=2, axis=1, outputs=2)
named("SliceChannel.squeezed", f(3, 2), num_outputs=2, axis=1, squeeze_axis=True, outputs=2)
named("squeeze", f(1, 3, 1))
named("squeeze.axis", f(1, 3, 1), axis=-1)
named("swapaxes", f(3, 4, 2), dim1=0, dim2=2)
named("flatten", f(3, 4, 2))
named("reshape", f(3, 4, 2), shape="(0, -1)")
named("crop.slice", f(3, 4), begin="(0, 1)", end="(2, 3)")
named("slice.less", f(3, 4), begin="(1,)", end="(3,)")
for _mode in ("constant", "reflect", "edge"):
    named(f"pad.{_mode}", f(1, 2, 3, 4), mode=_mode, pad_width="(0, 0, 0, 0, 1, 2, 2, 1)", constant_value=1.5)
named("broadcast_axes", f(3, 1), axis=1, size=4)
for _name in ("_np_transpose", "_npi_transpose"):
    named(_name, f(3, 4, 2), axes="(2, 0, 1)")
    named(f"{_name}.all", f(3, 4, 2))
named("dot", f(3, 4), f(4, 5))
named("dot.turned", f(4, 3), f(5, 4), transpose_a=True, transpose_b=True)
named("dot.vectors", f(4), f(4))
named("dot.tensors", f(2, 3, 4), f(4, 5, 6))
named("dot.tensors_turned", f(4, 3, 2), f(6, 5, 4), transpose_a=True, transpose_b=True)
for _name in ("_linalg_gemm2", "linalg_gemm2"):
    named(_name, f(2, 3, 4), f(2, 5, 4), transpose_b=True, alpha=0.5)
BOXES = np.concatenate([n(6, 1), u(6, 1), u(6, 2) * 0.4, 0.4 + u(6, 2) * 0.5], 1)
named("_contrib_box_non_maximum_suppression", BOXES, overlap_thresh=0.3)

IMAGES, STATISTICS = f(2, 4, 6, 5), (u(4), f(4), f(4), u(4))
for _name in ("BatchNorm_v1", "_contrib_SyncBatchNorm"):
    needed: dict[str, Any] = {"key": "a"} if "Sync" in _name else {}
    named(_name, IMAGES, *STATISTICS, fix_gamma=False, **needed)
named("BatchNorm.fixed", IMAGES, *STATISTICS, eps=0.1)
named("BatchNorm.axis", f(2, 6, 4), *STATISTICS, axis=2, fix_gamma=False)
named("Convolution_v1", IMAGES, f(6, 2, 3, 2), f(6), kernel="(3, 2)", num_filter=6, num_group=2, pad="(1, 0)")
named("Convolution.line", f(2, 4, 6), f(3, 4, 3), kernel="(3,)", num_filter=3, no_bias=True, dilate="(2,)")
named(
    "Deconvolution.same",
    f(1, 4, 3, 5),
    f(4, 2, 3, 3),
    kernel="(3, 3)",
    stride="(2, 2)",
    pad="(1, 1)",
    adj="(1, 1)",
    num_filter=2,
)
for _kind in ("max", "avg", "sum"):
    named(f"Pooling_v1.{_kind}", IMAGES, kernel="(3, 2)", stride="(2, 2)", pad="(1, 1)", pool_type=_kind)
    named(
        f"Pooling.full_{_kind}",
        IMAGES,
        kernel="(2, 3)",
        stride="(2, 2)",
        pad="(1, 1)",
        pool_type=_kind,
        pooling_convention="full",
    )
named("Pooling.lp", np.abs(IMAGES), kernel="(2, 2)", pool_type="lp", p_value=2)
named("Pooling.excluded", IMAGES, kernel="(3, 3)", pad="(1, 1)", pool_type="avg", count_include_pad=False)
named("LRN", IMAGES, nsize=3, alpha=0.2, beta=0.6, knorm=1.5)
for _mode in ("instance", "channel", "spatial"):
    named(f"L2Normalization.{_mode}", IMAGES, mode=_mode)
for _kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
    named(f"Activation.{_kind}", f(3, 4), act_type=_kind)
for _kind in ("leaky", "elu", "selu", "gelu"):
    named(f"LeakyReLU.{_kind}", f(3, 4), act_type=_kind, slope=0.3)
named("LeakyReLU.prelu", IMAGES, u(4), act_type="prelu")
named("SoftmaxOutput.multi", IMAGES, n(2, 6, 5), multi_output=True)
named("SoftmaxActivation.channel", IMAGES, mode="channel")
named("SoftmaxActivation.instance", IMAGES)
named("SoftmaxOutput.kept", f(2, 3, 4), n(2, 3), preserve_shape=True)
named("FullyConnected.rows", f(2, 3, 4), f(5, 4), f(5), num_hidden=5, flatten=False)
named("InstanceNorm.default", IMAGES, u(4), f(4))
named("take.raise", f(3, 4), n(2, 2), mode="raise")
named("where.rows", n(3, most=2), f(3, 4), f(3, 4))
named("repeat.flat", f(3, 2), repeats=2)
named("tile.more", f(3, 2), reps="(2, 1, 2)")
named("_npx_reshape", f(4, 6, 5), newshape="(-2, 2, -1)")
named("_npx_reshape.copied", f(4, 6, 5), newshape="(-5, -4)")
named("_npx_reshape.split", f(4, 6, 5), newshape="(-2, -6, 2, -1, -4)")
named("_npx_reshape.dropped", f(1, 6, 5), newshape="(-3, -1)")
named("_npi_reshape", f(4, 6), newshape="(3, -1)")
for _name in ("_npi_concatenate", "_npi_stack"):
    named(_name, f(3, 4), f(3, 4), num_args=2, axis=1)
named("_npi_where", n(3, 4, most=2), f(3, 4), f(1, 4))
for _name in ("_npi_mean", "_np_sum", "_np_max", "_np_min", "_np_prod"):
    named(_name, u(3, 4, 2), axis="(0, 2)", keepdims=True)
for _name in (
    "exp",
    "log",
    "sqrt",
    "square",
    "abs",
    "absolute",
    "negative",
    "sin",
    "cos",
    "floor",
    "ceil",
    "sign",
    "reciprocal",
    "sinh",
    "cosh",
    "tan",
):
    named(f"_npi_{_name}", u(3, 4))
for _name in ("maximum", "minimum", "mod", "not_equal", "greater_equal"):
    named(f"_npi_{_name}", n(3, 4) + 1, n(1, 4) + 1)
for _name in ("relu", "sigmoid"):
    named(f"_npx_{_name}", f(3, 4))
for _name in (
    "rsubtract",
    "rtrue_divide",
    "rpower",
    "rmod",
    "mod",
    "maximum",
    "minimum",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
):
    named(f"_npi_{_name}_scalar", n(3, 4) + 1, scalar=2.0)
named("_npi_squeeze", f(1, 3, 1))
named("_np_squeeze", f(1, 3, 1))
named("_npi_expand_dims", f(3, 4), axis=1)
named("_np_reshape", f(4, 6), newshape="(3, -1)")
named("_npi_split", f(3, 4), indices="(0, 2)", axis=1, outputs=2)
named("_npi_broadcast_to", f(1, 4), shape="(3, 4)")
named("_npi_swapaxes", f(3, 4, 2), dim1=0, dim2=2)
named("_npi_pad", f(3, 4), pad_width="((1, 0), (0, 2))", mode="constant", constant_value=1.5)
named("Correlation", f(2, 3, 6, 7), f(2, 3, 6, 7), kernel_size=1, max_displacement=2, stride1=1, stride2=1, pad_size=2)
named(
    "Correlation.steps",
    f(1, 2, 8, 9),
    f(1, 2, 8, 9),
    kernel_size=3,
    max_displacement=2,
    stride1=2,
    stride2=2,
    pad_size=3,
)
named(
    "Correlation.difference",
    f(1, 2, 6, 7),
    f(1, 2, 6, 7),
    kernel_size=1,
    max_displacement=1,
    stride1=1,
    stride2=1,
    pad_size=1,
    is_multiply=False,
)
named("_unravel_index", n(5, most=12), shape=(3, 4))
named("_npi_where_lscalar", n(3, 4, most=2), f(3, 4), scalar=2.5)
named("_npi_where_rscalar", n(3, 4, most=2), f(3, 4), scalar=-2.5)
named("_npi_where_scalar2", n(3, 4, most=2), x=2.5, y=-1.5)
named("_npx_one_hot", n(2, 3), depth=4, on_value=2.0)
named("unravel_index", n(7, most=24), shape=(3, 4, 2))
