"""Dequantises weights that floats are multiplied by: in the kernel that multiplies, or while compiling.

    gemm(x, (w - zero) * scale)     becomes     matmul_bits(x, w, scale, zero)          few rows: reading the weight takes longest
                                    or          gemm(x, dequantize_weight(w, ...))      folded, whatever it grows by

Left as the model has it, a large weight would be dequantised in every call: folding refuses what takes four times the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from weft.cost import NarrowWeight, Planner, narrow_weight_plans, subject_of
from weft.graph.core.graph import Array, Constant, Graph, Node, Value
from weft.graph.passes.quantized.quantized_patterns import Dequantized, dequantized, is_known, product_rows
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import f32, i8, u8


def place_weight_dequantization(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with the dequantisation of each constant weight placed where it takes least."""

    def rewrite(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        found = _weight(node, inputs)
        if found is None:
            return None
        form = _as_product(node, inputs, found)
        if form is not None:
            rows, q = product_rows(node), found.integers.q
            size = prod(q.static_shape or (1,))
            plans = narrow_weight_plans
            decided = planner.decide(subject_of(node.output.name), NarrowWeight, lambda m: plans(rows, size, m))
            if decided.kept:
                return [_product(new, node, inputs, form)]
        wide = new.add("dequantize_weight", [found.integers.q, found.scale, found.integers.zero], source=node.source)
        return new.append(node.with_inputs((inputs[0], wide, *inputs[2:]))).outputs

    return rewrite_graph(graph, rewrite)


def _weight(node: Node, inputs: Inputs) -> Dequantized | None:
    """Returns the constant weight of a contraction of floats that is dequantised; None for any other node."""
    if node.operator.contraction is None or node.output.dtype is not f32 or len(node.outputs) != 1:
        return None
    found = dequantized(inputs[1])
    if found is None or not all(v is None or is_known(v) for v in (found.integers.q, found.scale, found.integers.zero)):
        return None
    return found


def _as_product(node: Node, inputs: Inputs, w: Dequantized) -> tuple[Array, Array, Array | None] | None:
    """Returns a matrix by columns [N, K] in unsigned bytes, its scales and its zero points [N] (None for 128)."""
    simple = node.op == "matmul" or (
        node.op == "gemm" and node.attribute("alpha") == node.attribute("beta") == 1.0 and not node.attribute("trans_a")
    )
    q, x = w.integers.q, inputs[0]
    if not simple or q.rank != 2 or x is None or x.rank < 1 or not isinstance(q, Constant):
        return None
    by_rows = node.op == "gemm" and node.attribute("trans_b")
    scale, zero = (_by_columns(v, q, 0 if by_rows else 1) for v in (w.scale, w.integers.zero))
    if scale is None or zero is None:
        return None
    matrix = q.array if by_rows else q.array.T
    shift = -i8.int_range[0] if q.dtype is i8 else 0
    unsigned = np.ascontiguousarray((matrix.astype(np.int16) + shift).astype(np.uint8))
    centre = zero.astype(np.float32) + np.float32(shift)
    return unsigned, scale.astype(np.float32), None if (centre == 1 << (u8.bits - 1)).all() else centre


def _by_columns(v: Value | None, q: Constant, axis: int) -> Array | None:
    """Returns one number for each index of *axis* of *q* (0 where *v* is absent); None if *v* differs along the other one."""
    columns = q.extents[axis]
    if v is None:
        return np.zeros(columns, np.float32)
    assert isinstance(v, Constant)  # _weight asks for it
    wide = np.broadcast_to(v.array, q.extents) if v.rank <= q.rank else None
    if wide is None or (v.rank == q.rank and v.extents[1 - axis] != 1) or (v.rank == 1 and v.size > 1 and axis == 0):
        return None
    return np.ascontiguousarray(wide.take(0, 1 - axis))


def _product(new: Graph, node: Node, inputs: Inputs, form: tuple[Array, Array, Array | None]) -> Value:
    """Returns the product with weights in bytes, with what a Gemm adds to it."""
    matrix, scale, zero = form
    name = inputs[1].name if inputs[1] is not None else ""
    columns, depth = matrix.shape
    operands = [inputs[0], new.constant(matrix.reshape(columns, 1, depth), f"{name}_bytes")]
    operands += [new.constant(v.reshape(columns, 1)) for v in (scale, zero) if v is not None]
    bias = inputs[2] if len(inputs) > 2 else None
    last = node.output.name if bias is None else ""
    made = new.add("matmul_bits", operands, bits=u8.bits, source=node.source, name=last)
    return made if bias is None else new.add("add", [made, bias], source=node.source, name=node.output.name)
