"""Values of float32 rounded to the types that fragments multiply: bf16, or tf32, whose numbers are kept as bits."""

from __future__ import annotations

from typing import Final

from weft.graph.core.graph import Graph
from weft.graph.core.graph_values import Value
from weft.support.dtypes import DType, bf16, u32

FACTORS: Final = {"bf16": bf16, "tf32": u32}
"""The types of rounded factors, by the precision that allows them."""


class RoundedValues:
    """The rounded twin of each value, in one of `FACTORS`, made once for all of its users."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        self.made: dict[Value, Value] = {}

    def of(self, new: Graph, v: Value) -> Value:
        """Returns *v* rounded, if it is not so already."""
        if v.dtype is self.dtype:
            return v
        if v not in self.made:
            self.made[v] = rounded(new, v, self.dtype, v.name)
        return self.made[v]


def rounded(new: Graph, v: Value, dtype: DType, name: str) -> Value:
    """Returns *v* rounded to one of `FACTORS`, named after *name*."""
    if dtype is u32:
        return new.add("round_tf32", [v], name=f"{name}_tf32")
    return new.add("cast", [v], dtype=dtype, name=f"{name}_{dtype}")
