"""Computes convolutions of 16-bit floats on operands converted to float32 beforehand.

    y = conv2d(x: f16, w: f16, b: f16)     becomes     y = cast(conv2d(cast(x, f32), cast(w, f32), cast(b, f32)), f16)

They are computed in float32 and rounded once in any case (docs/design/0025). An element of the image is used for every output
channel: converted where it is made, it is not converted for each of them again. Constant weights are converted while compiling.
Products of matrices keep their weights in 16 bits, which `pack_matrices` sees to.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.passes.fold_constants import rewrite_and_fold
from weft.graph.rewriting.rewriter import Inputs
from weft.support.dtypes import f32
from weft.te import is_narrow


def widen_halves(graph: Graph, evaluator: Evaluator) -> Graph:
    """Returns *graph* with its convolutions of 16-bit floats by constant weights on operands of float32."""
    return rewrite_and_fold(graph, evaluator, _widened)


def _widened(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
    if not node.operator.is_convolution or not is_narrow(node.output.dtype) or not isinstance(inputs[1], Constant):
        return None
    wide = [v if v is None else new.add("cast", [v], dtype=f32, name=f"{v.name}_wide") for v in inputs]
    made = new.add(node.op, wide, source=node.source, **node.keywords)
    return [new.add("cast", [made], dtype=node.output.dtype, source=node.source, name=node.output.name)]
