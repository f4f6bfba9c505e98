"""Where nodes round to 16-bit floats, and whether other nodes of the group compute with the rounded values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from weft.graph.core.graph import Attributes, Node
from weft.graph.core.graph_values import Value
from weft.ops import Operator, TensorType, commutes_with_rounding, rounds


def computes_with_rounded(nodes: Sequence[Node]) -> bool:
    """Tells whether one of *nodes* computes with a value that another has rounded to a float of less than 32 bits."""
    rough: set[Value] = set()
    for n in nodes:
        is_rounded, commutes = _rounding(n)
        if not rough.isdisjoint(n.inputs):
            if not commutes:
                return True
            rough.update(n.outputs)
        if is_rounded:
            rough.update(n.outputs)
    return False


def _rounding(node: Node) -> tuple[bool, bool]:
    types = tuple([None if v is None else v.type for v in node.inputs])
    return _facts(node.operator, types, node.attributes)


@lru_cache(maxsize=1024)
def _facts(operator: Operator, types: tuple[TensorType | None, ...], attributes: Attributes) -> tuple[bool, bool]:
    """Returns whether an operator rounds, and whether rounding its inputs instead gives the same result."""
    _, outputs = operator.formulas(types, dict(attributes))
    return rounds(outputs), commutes_with_rounding(outputs)
