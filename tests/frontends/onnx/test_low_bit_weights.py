"""Products with weights of few bits that ONNX dequantises by blocks: taken apart by the kernel that multiplies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.frontends.onnx.nodes import Array, floats
from tests.graph.oracle import Oracle

import weft
from weft.cost import Choosing
from weft.frontends.onnx.importer import from_onnx
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.quantized.place_weight_dequantization import place_weight_dequantization
from weft.targets import cpu

KINDS = {"INT4": (-8, 8), "UINT4": (0, 16), "INT8": (-128, 128), "UINT8": (0, 256)}
ZERO = 3


def product(
    kind: str, *, block: int, rows: int, zero: bool = False, trans: bool = False, sizes: tuple[int, int] = (256, 96)
) -> tuple[ModelProto, Array]:
    """A product of rows and a matrix dequantised by blocks along its reduction, or by columns; and that matrix."""
    rng, (low, high), dtype = np.random.default_rng(0), KINDS[kind], getattr(TensorProto, kind)
    shape, axis = (sizes[::-1], 1) if trans else (sizes, 0)
    blocks = [n // block if d == axis else n for d, n in enumerate(shape)] if block else [sizes[1]]
    elements, scale = rng.integers(low, high, shape), rng.uniform(0.01, 0.02, blocks).astype(np.float32)
    given = [helper.make_tensor("w", dtype, shape, elements.ravel()), numpy_helper.from_array(scale, "s")]
    if zero:
        given.append(helper.make_tensor("z", dtype, blocks, np.full(blocks, ZERO).ravel()))
    along: dict[str, Any] = {"axis": axis, "block_size": block} if block else {"axis": 1 - axis}
    inputs = ["w", "s", "z"] if zero else ["w", "s"]
    last = (
        helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)
        if trans
        else helper.make_node("MatMul", ["x", "d"], ["y"])
    )
    nodes = [helper.make_node("DequantizeLinear", inputs, ["d"], **along), last]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (rows, k)) for n, k in zip("xy", sizes, strict=True))
    graph = helper.make_graph(nodes, "product", [x], [y], given)
    spread = np.repeat(scale, block, axis) if block else scale.reshape(-1, 1) if trans else scale
    matrix = (elements - (ZERO if zero else 0)) * spread.astype(np.float64)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, matrix.T if trans else matrix


@pytest.mark.sampled(7)
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize(
    ("kind", "block", "zero"),
    [("INT4", 32, False), ("UINT4", 64, False), ("INT8", 32, False), ("UINT8", 0, True), ("UINT8", 0, False)],
)
@pytest.mark.parametrize("rows", [1, 40])
def test_the_result_is_the_product(kind: str, block: int, zero: bool, trans: bool, rows: int) -> None:
    model, matrix = product(kind, block=block, rows=rows, zero=zero, trans=trans)
    x = floats(rows, 256)
    wanted, size = x.astype(np.float64) @ matrix, np.abs(x).astype(np.float64) @ np.abs(matrix)
    assert (np.abs(weft.compile(model)(x) - wanted) <= 1e-6 * size).all()


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
def test_large_weights_of_few_bits_stay_packed(kind: str, trans: bool) -> None:
    graph = from_onnx(product(kind, block=64, rows=50, trans=trans, sizes=(1024, 1024))[0])
    made = fold_constants(place_weight_dequantization(graph, Choosing(cpu("avx512"))), Oracle())
    assert [n.op for n in made.nodes] == ["matmul_bits"]
    operands = made.nodes[0].inputs
    assert [v.static_shape for v in operands[1:3] if v is not None] == [(1024, 16, 32), (1024, 16)]
    assert (len(operands) == 3) == (kind == "INT4"), "the middle of signed numbers is zero"
