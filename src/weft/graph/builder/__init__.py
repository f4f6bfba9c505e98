"""The API by which frontends build graphs: partial evaluation of constants, and nodes that carry their source node's name."""

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant, sizes_array
from weft.graph.builder.partial_evaluator import Operand, PartialEvaluator
from weft.graph.builder.round_once import Inputs, Outputs, Results, round_once, rounded, widened
from weft.graph.builder.shape_arithmetic import static_sizes, total

__all__ = [
    "Builder", "CompileTimeConstant", "Inputs", "Operand", "Outputs", "PartialEvaluator", "Results", "round_once", "rounded",
    "sizes_array", "static_sizes", "total", "widened",
]
