"""The precision of nodes that become several operators: on 16-bit floats they compute in float32 and round once, at their end.

    y = LpPool(x: f16)     becomes     w = cast(x, f32); ...; s = sum_pool2d(...); r = power(s, 0.5); y = cast(r, f16)

A translation says nothing of it. It is first tried on a graph of its own: where that would round a value and then compute with
it, the node is translated again, for inputs of float32. Operators round once by themselves (`weft.ops.precision`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from onnx import AttributeProto, NodeProto

from weft.frontends.onnx.call import Emitter, Operand, Results
from weft.frontends.onnx.known import Known
from weft.graph.graph import Graph
from weft.graph.rounding import computes_with_rounded
from weft.support.dtypes import DType, f32
from weft.te import is_narrow

Inputs: TypeAlias = Sequence[Operand | None]
Outputs: TypeAlias = tuple[Operand | None, ...]
Translate: TypeAlias = Callable[[Emitter, Inputs], Results]


def translated(translate: Translate, emitter: Emitter, inputs: Inputs, node: NodeProto, source: str) -> Outputs:
    """Returns what *translate* makes of a node's *inputs*, each output rounded at most once.

    Control flow is left alone: each node in it rounds for itself.
    """
    if not _any_narrow(inputs) or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
        return _outputs(translate(emitter, inputs))
    trial = _Trial(Graph())
    plain = _outputs(translate(trial, inputs))
    if not computes_with_rounded(trial.graph.nodes):
        return _outputs(translate(emitter, inputs))
    made = _outputs(translate(emitter, widened(emitter, inputs, source)))
    return rounded(emitter, made, [None if v is None else v.dtype for v in plain], source)


def widened(emitter: Emitter, inputs: Inputs, source: str) -> Inputs:
    """Returns *inputs* with 16-bit floats as float32."""
    return [_cast(emitter, v, f32, source) if v is not None and is_narrow(v.dtype) else v for v in inputs]


def rounded(emitter: Emitter, outputs: Inputs, dtypes: Sequence[DType | None], source: str) -> Outputs:
    """Returns the first of *outputs*, as many as there are *dtypes*, with those rounded that are 16-bit floats there."""
    return tuple(
        [
            v if v is None or t is None or not is_narrow(t) else _cast(emitter, v, t, source)
            for v, t in zip(outputs, dtypes, strict=False)
        ]
    )


class _Trial(Emitter):
    """Adds to a graph that shows how a node would be computed; what is known of 16-bit floats is in it too."""

    def add(self, op: str, inputs: Inputs, attributes: dict[str, Any], source: str) -> list[Operand]:
        """Adds *op* to the graph, unless it is about shapes."""
        if not _any_narrow(inputs) or any(isinstance(v, Known) and v.symbolic for v in inputs):
            return super().add(op, inputs, attributes, source)
        values = [None if v is None else self.value(v, source) for v in inputs]
        return list(self.graph.add_many(op, values, source=source, **attributes))


def _any_narrow(inputs: Inputs) -> bool:
    return any(v is not None and is_narrow(v.dtype) for v in inputs)


def _outputs(made: Results) -> Outputs:
    return made if isinstance(made, tuple) else (made,)


def _cast(emitter: Emitter, v: Operand, dtype: DType, source: str) -> Operand:
    return v if v.dtype is dtype else emitter.add("cast", [v], {"dtype": dtype}, source)[0]
