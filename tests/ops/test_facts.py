"""The facts of operators: those that formulas show, and those that blocks declare, each checked on the operators' samples."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from tests.ops.sample_arrays import Array, Sample
from tests.ops.samples import SAMPLES

from weft.driver.checking.reference import run_operator
from weft.graph import Graph, Node
from weft.graph.fusion.node_facts import facts_of, keeps_finite
from weft.ir import INDEX, Var
from weft.ops import OPERATORS, Operator, TensorType, is_rename, sized
from weft.support.dtypes import DType, f16, f32, i32
from weft.te import Tensor, compute


def declared(fact: str) -> list[str]:
    """The operators whose block declares *fact*."""
    return sorted(name for name, op in OPERATORS.items() if getattr(op, fact))


def narrowed(a: Array | None) -> Array | None:
    """Floats as float32, others as they are."""
    return a.astype(np.float32) if a is not None and a.dtype.kind == "f" else a


def run(name: str, sample: Sample, *first: Array) -> Array:
    """The result on the inputs of *sample*, the first of them replaced."""
    inputs = [narrowed(a) for a in (*first, *sample.inputs[len(first) :])]
    return run_operator(name, inputs, **sample.attributes)[0]


def node_of(op: str, *types: tuple[tuple[int, ...], DType], **attributes: Any) -> Node:
    """A call of *op* on inputs of *types*."""
    graph = Graph()
    inputs = [graph.input(f"x{k}", shape, dtype) for k, (shape, dtype) in enumerate(types)]
    graph.add_many(op, inputs, **attributes)
    return graph.nodes[-1]


# Derived


def test_arithmetic_and_what_commutes() -> None:
    arithmetic = {n: op.arithmetic.__name__ for n, op in OPERATORS.items() if op.arithmetic is not None}
    assert {n: arithmetic.get(n) for n in ("add", "sub", "mul", "div", "maximum", "power", "relu", "matmul")} == {
        "add": "Add",
        "sub": "Sub",
        "mul": "Mul",
        "div": "Div",
        "maximum": "Max",
        "power": None,
        "relu": None,
        "matmul": None,
    }
    commutative = {n for n, op in OPERATORS.items() if op.is_commutative}
    assert {"add", "mul", "minimum", "maximum", "equal"} <= commutative
    assert not {"sub", "div", "less", "power", "floor_mod", "prelu"} & commutative


def test_a_formula_that_needs_dimensions_is_no_arithmetic() -> None:
    def outer(a: Tensor, b: Tensor) -> Tensor:
        return compute((a.shape[0], b.shape[0]), lambda i, j: a[i] + b[j], "outer")

    assert Operator("outer", outer).arithmetic is None


@pytest.mark.parametrize("name", sorted(n for n, op in OPERATORS.items() if op.is_commutative))
def test_operands_of_a_commutative_operator_change_places(name: str) -> None:
    for sample in SAMPLES[name]:
        a, b = map(narrowed, sample.inputs)
        np.testing.assert_array_equal(run_operator(name, [a, b])[0], run_operator(name, [b, a])[0])


RENAMES: Final = [
    ("reshape", ((4, 6), f32), {"shape": (3, 8)}, True),
    ("reshape", ((1, 128, 768), f32), {"shape": (1, 128, 12, 64)}, True),
    ("transpose", ((4, 1, 6), f32), {"perm": (1, 0, 2)}, True),
    ("transpose", ((4, 2, 6), f32), {"perm": (1, 0, 2)}, False),
    ("transpose", ((6, 6), f32), {"perm": (1, 0)}, False),
    ("slice", ((4, 6), f32), {"starts": (0,), "ends": (3,), "axes": (0,)}, False),
    ("slice", ((4, 6), f32), {"starts": (0,), "ends": (4,), "axes": (0,)}, True),
    ("slice", ((4,), f32), {"starts": (-1,), "ends": (-5,), "axes": (0,), "steps": (-1,)}, False),
    ("expand", ((4, 1), f32), {"shape": (4, 3)}, False),
    ("cast", ((4,), f32), {"dtype": i32}, False),
    ("relu", ((4,), f32), {}, False),
]


@pytest.mark.parametrize(("op", "x", "attributes", "wanted"), RENAMES)
def test_what_renames(op: str, x: tuple[tuple[int, ...], DType], attributes: dict[str, Any], wanted: bool) -> None:
    assert facts_of(node_of(op, x, **attributes)).is_rename is wanted
    shape, _ = x
    a = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    (made,) = run_operator(op, [a], **attributes)
    same = made.dtype == a.dtype and made.size == a.size and np.array_equal(made.ravel(), a.ravel())
    assert same >= wanted


def test_a_rename_of_symbolic_sizes() -> None:
    n = Var("n", INDEX)
    for shape, wanted in (((n, 6), (n, 2, 3)), ((1, n, 6), (n * 6,)), ((n * 4,), (n, 1, 4))):
        given, outputs = OPERATORS["reshape"].formulas([TensorType(sized(*shape), f32)], {"shape": wanted})
        assert is_rename(given, outputs)


MAPS: Final = sorted(
    name
    for name, samples in SAMPLES.items()
    if all(a is not None and a.dtype.kind == "f" for a in samples[0].inputs) and samples[0].inputs
)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", MAPS)
def test_what_keeps_finite_does_so_on_random_numbers(name: str) -> None:
    sample = SAMPLES[name][0]
    rng = np.random.default_rng(5)
    shapes = [a.shape for a in sample.inputs if a is not None]
    types = [(s, f32) for s in shapes]
    if not keeps_finite(node_of(name, *types, **sample.attributes)):
        return
    for scale in (1e-30, 1e-3, 1.0, 50.0, 1e5, 1e11):
        arrays = [(rng.standard_normal(s) * scale).astype(np.float32) for s in shapes]
        for made in run_operator(name, arrays, **sample.attributes):
            assert np.isfinite(made.astype(np.float64)).all(), scale


def test_what_keeps_finite() -> None:
    one = [((2, 3), f32)]
    for name in (
        "abs",
        "relu",
        "gelu",
        "sigmoid",
        "tanh",
        "erf",
        "softplus",
        "softplus_tanh",
        "elu",
        "leaky_relu",
        "square",
        "floor",
        "sin",
    ):
        assert keeps_finite(node_of(name, *one)), name
    for name in ("exp", "log", "sqrt", "rsqrt", "reciprocal", "acos", "atanh", "cosh"):
        assert not keeps_finite(node_of(name, *one)), name
    for name in ("add", "sub", "mul", "maximum", "prelu"):
        assert keeps_finite(node_of(name, *one * 2)), name
    for name in ("div", "power", "float_mod", "floor_mod"):
        assert not keeps_finite(node_of(name, *one * 2)), name
    assert keeps_finite(node_of("scale_and_shift", *one * 3))
    image = ((1, 4, 6, 6), f32)
    for name in ("max_pool2d", "avg_pool2d", "sum_pool2d"):
        assert keeps_finite(node_of(name, image, kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))), name
    for name in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min"):
        assert keeps_finite(node_of(name, image, axes=(2, 3))), name
    for name in ("reduce_prod", "reduce_log_sum"):
        assert not keeps_finite(node_of(name, image, axes=(2, 3))), name
    assert keeps_finite(node_of("mul", *[((2,), f16)] * 2))
    assert keeps_finite(node_of("cast", *one, dtype=i32))


# Declared


def test_each_fact_is_declared_somewhere() -> None:
    assert declared("along")[:2] == ["log_softmax", "reduce_l1"]
    assert declared("per_channel") == ["avg_pool2d", "max_pool2d", "sum_pool2d"]
    assert declared("contraction") == ["conv2d", "conv2d_integer", "conv_transpose2d", "gemm", "matmul"]
    assert declared("is_convolution") == ["conv2d", "conv2d_integer", "conv_transpose2d"]


FURTHER: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "repeat": ([], {"times": 2}),
    "resample": ([np.array([[0, 4], [2, 3], [1, 1]]), np.full((3, 2), 0.5, np.float32)], {}),
}
"""The further inputs, and attributes, of operators along an axis of 5 elements."""


@pytest.mark.parametrize("name", declared("along"))
def test_other_dimensions_are_independent(name: str) -> None:
    """Dimensions behind the axis merge into one: so `merge_axes` reshapes."""
    attribute = OPERATORS[name].along
    x = np.random.default_rng(2).uniform(0.5, 2, (2, 5, 3, 4)).astype(np.float32)
    more, attributes = FURTHER.get(name, ([], {}))
    given = {**attributes, **({"axis": 1} if attribute == "axis" else {"axes": (1,), "keepdims": True})}
    (apart,) = run_operator(name, [x, *more], **given)
    (merged,) = run_operator(name, [x.reshape(2, 5, 12), *more], **given)
    np.testing.assert_allclose(merged.reshape(apart.shape), apart, rtol=1e-6)
    order = np.random.default_rng(3).permutation(12)
    (permuted,) = run_operator(name, [x.reshape(2, 5, 12)[:, :, order], *more], **given)
    np.testing.assert_allclose(permuted, merged[:, :, order], rtol=1e-6)


@pytest.mark.parametrize("name", declared("per_channel"))
def test_channels_in_blocks_give_the_same(name: str) -> None:
    for sample in SAMPLES[name]:
        x = narrowed(sample.inputs[0])
        assert x is not None
        plain = run(name, sample)
        (packed,) = run_operator("pack_channels", [x], block=2)
        (made,) = run_operator(name, [packed], **sample.attributes)
        (unpacked,) = run_operator("unpack_channels", [made], channels=x.shape[1])
        np.testing.assert_array_equal(unpacked, plain)


@pytest.mark.parametrize("name", declared("contraction"))
def test_a_scaled_weight_scales_the_channels(name: str) -> None:
    contraction = OPERATORS[name].contraction
    assert contraction is not None
    for sample in SAMPLES[name]:
        x, w = narrowed(sample.inputs[0]), narrowed(sample.inputs[1])
        assert x is not None
        assert w is not None
        rest = [None for _ in sample.inputs[2:]]
        plain = run_operator(name, [x, w, *rest], **sample.attributes)[0]
        factors = 2.0 ** np.arange(plain.shape[contraction.channel_axis])

        def attribute(key: str, given: Sample = sample) -> Any:
            return given.attributes.get(key, OPERATORS[name].attributes[key].default)

        view, by = contraction.line_up(attribute, w, factors)
        scaled = (view * by).reshape(w.shape).astype(np.float32)
        made = run_operator(name, [x, scaled, *rest], **sample.attributes)[0]
        shape = [1] * plain.ndim
        shape[contraction.channel_axis] = -1
        np.testing.assert_array_equal(made, plain * factors.reshape(shape).astype(np.float32))


@pytest.mark.parametrize("name", declared("prepares"))
def test_what_prepares_weights_is_linear(name: str) -> None:
    for sample in SAMPLES[name]:
        w = narrowed(sample.inputs[0])
        assert w is not None
        np.testing.assert_array_equal(run(name, sample, w * 2), run(name, sample) * 2)


@pytest.mark.parametrize("name", declared("renames"))
def test_what_renames_keeps_elements_in_their_order(name: str) -> None:
    for sample in SAMPLES[name]:
        x = narrowed(sample.inputs[0])
        assert x is not None
        np.testing.assert_array_equal(run(name, sample).reshape(-1), x.reshape(-1))


@pytest.mark.parametrize("name", declared("keeps_operand"))
def test_what_keeps_its_operand_holds_its_elements(name: str) -> None:
    for sample in SAMPLES[name]:
        x = narrowed(sample.inputs[0])
        assert x is not None
        assert np.isin(run(name, sample), x).all()


@pytest.mark.parametrize("name", declared("unpacks"))
def test_what_unpacks_holds_the_bits_of_its_operand_in_more_bytes(name: str) -> None:
    for sample in SAMPLES[name]:
        (x,) = sample.inputs
        assert x is not None
        y = run(name, sample)
        bits = sample.attributes["dtype"].used_bits
        assert y.nbytes * bits == x.nbytes * 8
        used = np.unpackbits(y.view(np.uint8).reshape(-1, 1), axis=1)[:, -bits:]
        assert used.sum() == np.unpackbits(x.reshape(-1, 1), axis=1).sum()
        assert y.view(np.uint8).max() < 1 << bits
