"""The precision of nodes that become several operators: on 16-bit floats they compute in float32 and round once, at their end.

    y = LpPool(x: f16)     becomes     w = cast(x, f32); ...; s = sum_pool2d(...); r = power(s, 0.5); y = cast(r, f16)

Translations need not mention this. Each is first tried on a scratch graph: if some operator there would compute with a rounded
value, the node is translated again with its inputs converted to float32. Single operators already round once
(`weft.ops.precision`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand, PartialEvaluator
from weft.graph.core.graph import Graph
from weft.graph.fusion.sixteen_bit_rounding import computes_with_rounded
from weft.support.dtypes import DType, f32
from weft.te import is_narrow

Inputs: TypeAlias = Sequence[Operand | None]
Outputs: TypeAlias = tuple[Operand | None, ...]
Results: TypeAlias = Operand | Outputs
Translate: TypeAlias = Callable[[PartialEvaluator, Inputs], Results]


def round_once(translate: Translate, evaluator: PartialEvaluator, inputs: Inputs, source: str) -> Outputs:
    """Returns the outputs of *translate* for a node's *inputs*, each output rounded at most once.

    It is not applied to control-flow nodes: each node of their bodies is rounded by itself.
    """
    if not _any_narrow(inputs):
        return outputs_of(translate(evaluator, inputs))
    trial = _Trial(Graph())
    plain = outputs_of(translate(trial, inputs))
    if not computes_with_rounded(trial.graph.nodes):
        return outputs_of(translate(evaluator, inputs))
    made = outputs_of(translate(evaluator, widened(evaluator, inputs, source)))
    return rounded(evaluator, made, [None if v is None else v.dtype for v in plain], source)


def widened(evaluator: PartialEvaluator, inputs: Inputs, source: str) -> Inputs:
    """Returns *inputs* with 16-bit floats as float32."""
    return [_cast(evaluator, v, f32, source) if v is not None and is_narrow(v.dtype) else v for v in inputs]


def rounded(evaluator: PartialEvaluator, outputs: Inputs, dtypes: Sequence[DType | None], source: str) -> Outputs:
    """Returns the first `len(dtypes)` of *outputs*, rounded to those of *dtypes* that are 16-bit floats."""
    return tuple(
        [
            v if v is None or t is None or not is_narrow(t) else _cast(evaluator, v, t, source)
            for v, t in zip(outputs, dtypes, strict=False)
        ]
    )


def outputs_of(made: Results) -> Outputs:
    """Returns the outputs of a translation as a tuple."""
    return made if isinstance(made, tuple) else (made,)


class _Trial(PartialEvaluator):
    """A builder on a scratch graph that records how a node would be computed, 16-bit constants included."""

    def add(self, op: str, inputs: Inputs, attributes: dict[str, Any], source: str) -> list[Operand]:
        """Adds *op* to the graph, unless it only computes with shapes."""
        if not _any_narrow(inputs) or any(isinstance(v, CompileTimeConstant) and v.symbolic for v in inputs):
            return super().add(op, inputs, attributes, source)
        values = [None if v is None else self.value(v, source) for v in inputs]
        return list(self.graph.add_many(op, values, source=source, **attributes))


def _any_narrow(inputs: Inputs) -> bool:
    return any(v is not None and is_narrow(v.dtype) for v in inputs)


def _cast(evaluator: PartialEvaluator, v: Operand, dtype: DType, source: str) -> Operand:
    return v if v.dtype is dtype else evaluator.add("cast", [v], {"dtype": dtype}, source)[0]
