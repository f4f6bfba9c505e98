"""Dequantises weights that floats are multiplied by: in the kernel that multiplies, or while compiling.

    gemm(x, (w - zero) * scale)     becomes     matmul_bits(x, w, scale, zero)          few rows: reading the weight takes longest
                                    or          gemm(x, dequantize_weight(w, ...))      folded, whatever it grows by

Left as the model has it, a large weight would be dequantised in every call: folding refuses constants of four times the bytes.
Weights that are held several in a byte stay so for any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import NarrowWeight, Planner, narrow_weight_plans, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.passes.quantized.low_bit_weights import Factors, LowBitWeight, low_bit_weight, weight_factors
from weft.graph.passes.quantized.quantized_patterns import Dequantized, dequantized, product_rows
from weft.graph.rewriting.call_patterns import is_known
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import f32


def place_weight_dequantization(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with the dequantisation of each constant weight placed where it takes least."""

    def rewrite(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if node.operator.contraction is None or node.output.dtype is not f32 or len(node.outputs) != 1:
            return None
        found = weight_factors(inputs[1])
        weight = None if found is None else _as_product(node, inputs, found)
        if found is not None and weight is not None and _is_kept(node, found, planner):
            return [_product(new, node, inputs, weight)]
        of_bytes = _of_constant_bytes(inputs[1])
        if of_bytes is None:
            return None
        operands = [of_bytes.integers.q, of_bytes.scale, of_bytes.integers.zero]
        wide = new.add("dequantize_weight", operands, source=node.source)
        return new.append(node.with_inputs((inputs[0], wide, *inputs[2:]))).outputs

    return rewrite_graph(graph, rewrite)


def _is_kept(node: Node, found: Factors, planner: Planner) -> bool:
    """Decides whether a product has its weight as it is."""
    if found.is_packed:
        return True
    rows, size = product_rows(node), found.q.size
    plans = narrow_weight_plans
    return planner.decide(subject_of(node.output.name), NarrowWeight, lambda m: plans(rows, size, m)).kept


def _of_constant_bytes(v: Value | None) -> Dequantized | None:
    """Returns the constant bytes, scale and zero point that *v* is dequantised from; None for any other value."""
    found = dequantized(v)
    if found is None or not all(v is None or is_known(v) for v in (found.integers.q, found.scale, found.integers.zero)):
        return None
    return found


def _as_product(node: Node, inputs: Inputs, found: Factors) -> LowBitWeight | None:
    """Returns the weight of a plain product of floats and a matrix; None for any other contraction."""
    simple = node.op == "matmul" or (
        node.op == "gemm" and node.attribute("alpha") == node.attribute("beta") == 1.0 and not node.attribute("trans_a")
    )
    x = inputs[0]
    if not simple or x is None or x.rank < 1:
        return None
    return low_bit_weight(found, by_rows=node.op == "gemm" and bool(node.attribute("trans_b")))


def _product(new: Graph, node: Node, inputs: Inputs, w: LowBitWeight) -> Value:
    """Returns the product with weights of few bits, with the bias that a Gemm adds to it."""
    name = inputs[1].name if inputs[1] is not None else ""
    operands = [inputs[0], new.constant(w.matrix, f"{name}_bits")]
    operands += [new.constant(v) for v in (w.scale, w.zero) if v is not None]
    bias = inputs[2] if len(inputs) > 2 else None
    last = node.output.name if bias is None else ""
    made = new.add("matmul_bits", operands, bits=w.bits, source=node.source, name=last)
    return made if bias is None else new.add("add", [made, bias], source=node.source, name=node.output.name)
