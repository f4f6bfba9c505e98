"""Products of bytes in the form of dot products: signs, zero points, shapes, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import ops
from tests.graph.oracle import Oracle
from tests.graph.passes.quantized.quantized_graphs import centred, number, random_bytes, run_on_bytes, whole
from tests.support.machines import AMX

from weft.cost import Choosing
from weft.graph import Graph, Value, verify_graph
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.quantized.choose_dot_products import choose_dot_products
from weft.ir import index
from weft.support.dtypes import DType, f32, i8, i16, i32, u8
from weft.targets import Target, cpu

UNSIGNED = cpu("avx2").having(features=tuple(sorted({*cpu("avx2").isa.features, "+avxvnni"})))
"""A machine whose instruction takes unsigned bytes on its left."""

SIGNED = cpu("sse4").having(features=("+dotprod", "+neon"), vector_bits=128)
"""One that takes signed bytes on both sides."""

WIDE = cpu("avx2").having(features=tuple(f for f in cpu("avx2").isa.features if f != "+avxvnni"))
"""One that has products of 16 bits: bytes on the left are widened, less their zero points."""

Build = Callable[[Graph], Value]


def made_of(build: Build, target: Target = UNSIGNED, layouts: bool = False) -> Graph:
    """What the passes make of a graph, which means the same."""
    g = Graph()
    g.output(build(g), "y")
    verify_graph(g)
    made = fold_constants(choose_dot_products(g, Choosing(target)), Oracle())
    if layouts:
        made = fold_constants(choose_layouts(made, Choosing(target)), Oracle())
    verify_graph(made)
    for before, after in zip(run_on_bytes(g), run_on_bytes(made), strict=True):
        np.testing.assert_array_equal(before, after)
    return made


def matmul(a: DType, b: DType, za: int | None, zb: int | None, rows: int = 3, depth: int = 8) -> Build:
    def build(g: Graph) -> Value:
        x, w = centred(g, g.input("x", (rows, depth), a), za), centred(g, whole(g, b, depth, 6), zb)
        return g.add("matmul", [x, w])

    return build


@pytest.mark.parametrize("target", [UNSIGNED, SIGNED, WIDE])
@pytest.mark.parametrize(("za", "zb"), [(None, None), (0, 0), (117, 0), (3, 90)])
@pytest.mark.parametrize(("a", "b"), [(u8, i8), (i8, i8), (u8, u8), (i8, u8)])
def test_signs_and_zero_points(a: DType, b: DType, za: int | None, zb: int | None, target: Target) -> None:
    found = ops(made_of(matmul(a, b, za, zb), target))
    assert "matmul" not in found
    assert found.count("matmul_grouped") == 1
    fits = b is i8 and not zb
    assert ("sum_integers" in found) == (not fits), (
        "rows are summed only for a zero point that does not fit the weights"
    )
    assert ("bit_xor" in found) == (target is not WIDE and a is not (u8 if target is UNSIGNED else i8))


@pytest.mark.parametrize(("zero", "is_byte"), [(-128, True), (255, True), (256, False), (40000, False)])
def test_wide_rows_hold_bytes_less_a_zero_point_that_is_one(zero: int, is_byte: bool) -> None:
    graph = made_of(matmul(u8, i8, zero, None), WIDE)
    (product,) = [n for n in graph.nodes if n.op == "matmul_grouped"]
    rows = product.inputs[0]
    assert rows is not None
    assert rows.dtype is i16
    assert ("sub" in ops(graph)) == (not is_byte or zero != 0)
    assert (graph.outputs[0].producer is product) == is_byte


def test_a_factor_is_widened_once_for_all_its_products() -> None:
    def build(g: Graph) -> Value:
        x = centred(g, g.input("x", (3, 8), u8), 7)
        first, second = (g.add("matmul", [x, centred(g, whole(g, i8, 8, 6), None)]) for _ in range(2))
        return g.add("add", [first, second])

    assert len([n for n in made_of(build, WIDE).nodes if n.output.dtype is i16]) == 1


def test_weights_less_their_zero_point_are_bytes_where_they_fit() -> None:
    def build(g: Graph) -> Value:
        w = g.constant(random_bytes(i8, (8, 6)).astype(np.int16).clip(-60, 60).astype(np.uint8) + np.uint8(100), "w")
        return g.add("matmul", [centred(g, g.input("x", (3, 8), u8), 0), centred(g, w, 100)])

    assert ops(made_of(build)) in (["matmul_grouped"], ["matmul_grouped", "sub"])


def test_a_transposed_weight_is_packed_while_compiling() -> None:
    def build(g: Graph) -> Value:
        turned = g.add("transpose", [whole(g, i8, 6, 8)], perm=(1, 0))
        return g.add("matmul", [centred(g, g.input("x", (1, 8), u8), 7), centred(g, turned, 0)])

    assert ops(made_of(build)) == ["matmul_grouped", "sub"]


def test_zero_points_of_rows_and_columns() -> None:
    def build(g: Graph) -> Value:
        of_rows = g.constant(np.array([[3], [200], [0]], np.int32))
        of_columns = g.constant(np.array([100, 0, -5, 7, -128, 127], np.int32))
        return g.add(
            "matmul", [centred(g, g.input("x", (3, 8), u8), of_rows), centred(g, whole(g, i8, 8, 6), of_columns)]
        )

    made_of(build)


@pytest.mark.parametrize("depth", [1, 3, 6, 9])
def test_depths_that_are_no_whole_groups_are_padded(depth: int) -> None:
    assert ("pad" in ops(made_of(matmul(u8, i8, 5, None, depth=depth)))) == bool(depth % 4)


def test_both_factors_computed_and_batches() -> None:
    def build(g: Graph) -> Value:
        a, b = g.input("a", (2, 1, 400, 8), u8), g.input("b", (3, 8, 5), i8)
        return g.add("matmul", [centred(g, a, 9), centred(g, b, 2)])

    assert "pack_matrix_groups" in ops(made_of(build))


def test_a_zero_point_that_is_computed() -> None:
    def build(g: Graph) -> Value:
        zero = g.add("cast", [g.input("z", (), u8)], dtype=i32)
        x = centred(g, g.input("x", (1, 4, 5, 5), u8), zero)
        return g.add("conv2d", [x, centred(g, whole(g, i8, 6, 4, 3, 3), 0)], pads=(1, 0, 1, 2))

    made_of(build, layouts=True)


def conv(a: DType, za: int, channels: int = 4, made: int = 6, bias: bool = True, **attributes: Any) -> Build:
    def build(g: Graph) -> Value:
        x = centred(g, g.input("x", (1, channels, 6, 7), a), za)
        w = centred(g, whole(g, i8, made, channels, 3, 3), 0)
        b = g.constant(np.arange(-made, made, 2, dtype=np.int32) * 999, "b") if bias else None
        return g.add("conv2d", [x, w, b], pads=(1, 1, 1, 1), **attributes)

    return build


@pytest.mark.parametrize("target", [UNSIGNED, SIGNED, WIDE])
@pytest.mark.parametrize("a", [u8, i8])
@pytest.mark.parametrize(
    ("channels", "made", "attributes"), [(3, 16, {}), (8, 5, {"strides": (2, 2)}), (20, 33, {"dilations": (1, 2)})]
)
def test_convolutions(a: DType, channels: int, made: int, attributes: dict[str, Any], target: Target) -> None:
    graph = made_of(conv(a, 77, channels, made, **attributes), target, layouts=True)
    assert "conv2d_grouped" in ops(graph)
    assert "sum_integers" not in ops(graph)


@pytest.mark.parametrize("target", [UNSIGNED, SIGNED, WIDE])
@pytest.mark.parametrize(("a", "b"), [(u8, u8), (i8, u8), (u8, i8)])
@pytest.mark.parametrize("of_filters", [False, True])
def test_weights_that_do_not_fit_are_corrected_by_sums_of_windows(
    a: DType, b: DType, of_filters: bool, target: Target
) -> None:
    def build(g: Graph) -> Value:
        each = g.constant(np.array([9, -100, 120, 3, 0, 77], np.int32).reshape(6, 1, 1, 1))
        x, w = centred(g, g.input("x", (2, 4, 9, 7), a), 17), whole(g, b, 6, 4, 3, 2)
        window: dict[str, Any] = {"strides": (1, 2), "pads": (1, 0, 2, 1), "dilations": (2, 1)}
        bias = g.constant(np.arange(6, dtype=np.int32), "b")
        return g.add("conv2d", [x, centred(g, w, each if of_filters else 9), bias], **window)

    found = ops(made_of(build, target, layouts=True))
    assert {"conv2d_grouped", "sum_pool2d"} <= set(found)


def test_chains_of_convolutions_stay_in_blocks() -> None:
    def build(g: Graph) -> Value:
        y = g.add("add", [conv(u8, 3, 8, 16)(g), number(g, 2, i32)])
        y = g.add("cast", [g.add("clip", [y, number(g, 0, i32), number(g, 255, i32)])], dtype=u8)
        return g.add("conv2d", [centred(g, y, 0), centred(g, whole(g, i8, 16, 16, 1, 1), 0)])

    found = ops(made_of(build, layouts=True))
    assert found.count("conv2d_grouped") == 2
    assert found.count("pack_channels") == found.count("unpack_channels") == 1


@pytest.mark.parametrize("bias", [0, 1 << 22, 1 << 24])
def test_groups_are_added_in_floats_where_these_are_exact(bias: int) -> None:
    def build(g: Graph) -> Value:
        b = g.constant(np.array([bias, -bias, 5, 0], np.int32), "b")
        x = centred(g, g.input("x", (1, 4, 5, 5), u8), 9)
        return g.add("conv2d", [x, centred(g, whole(g, i8, 4, 2, 3, 3), 0), b], group=2, pads=(1, 1, 1, 1))

    (convolution,) = [n for n in made_of(build).nodes if n.op == "conv2d"]
    assert convolution.output.dtype is (i32 if bias == 1 << 24 else f32)


LEFT: dict[str, Build] = {
    "weights of a call": lambda g: g.add(
        "conv2d", [centred(g, g.input("x", (1, 4, 5, 5), u8), 0), centred(g, g.input("w", (4, 4, 3, 3), i8), 0)]
    ),
    "zero points along a filter": lambda g: g.add(
        "conv2d",
        [
            centred(g, g.input("x", (1, 4, 5, 5), u8), 0),
            centred(g, whole(g, i8, 4, 4, 3, 3), g.constant(np.arange(4, dtype=np.int32).reshape(1, 4, 1, 1))),
        ],
    ),
    "zero points along the reduction": lambda g: g.add(
        "matmul",
        [
            centred(g, g.input("x", (3, 8), u8), 0),
            centred(g, whole(g, i8, 8, 6), g.constant(np.arange(8, dtype=np.int32).reshape(8, 1))),
        ],
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_others_stay_as_they_are(name: str) -> None:
    found = ops(made_of(LEFT[name]))
    assert not {"matmul_grouped", "conv2d_integer"} & set(found)


def test_a_machine_without_such_instructions_keeps_its_graph() -> None:
    g = Graph()
    g.output(matmul(u8, i8, 5, 0)(g), "y")
    assert choose_dot_products(g, Choosing(cpu("sse4"))) is g


@pytest.mark.parametrize(("channels", "block"), [(64, 64), (32, 16)])
def test_channels_that_fill_rows_of_matrix_registers_are_in_such_blocks(channels: int, block: int) -> None:
    def build(g: Graph) -> Value:
        y = g.add("clip", [conv(u8, 3, 3, channels)(g), number(g, 0, i32), number(g, 255, i32)])
        y = g.add("cast", [y], dtype=u8)
        return g.add("conv2d", [centred(g, y, 0), centred(g, whole(g, i8, channels, channels, 1, 1), 0)])

    first, second = (n for n in made_of(build, AMX, layouts=True).nodes if n.op == "conv2d_grouped")
    assert [first.output.shape[-1], second.inputs[0].shape[-1]] == [index(block)] * 2  # type: ignore[union-attr]
