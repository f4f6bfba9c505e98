"""The graph: operator calls on tensors, the passes that make them fast, fusion into kernels, and the memory plan."""

from weft.graph.evaluator import Evaluator
from weft.graph.fuse import fuse
from weft.graph.graph import Array, Attribute, Constant, Graph, Node, Parameter, Value
from weft.graph.groups import FusedGraph, Group
from weft.graph.memory import Location, MemoryPlan, Place, plan_memory
from weft.graph.pipeline import Options, Report, optimize
from weft.graph.printer import print_graph
from weft.graph.verify import verify_graph

__all__ = [
    "Array", "Attribute", "Constant", "Evaluator", "FusedGraph", "Graph", "Group", "Location", "MemoryPlan", "Node",
    "Options", "Parameter", "Place", "Report", "Value", "fuse", "optimize", "plan_memory", "print_graph", "verify_graph",
]  # fmt: skip
