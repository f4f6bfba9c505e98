"""The graph: operator calls on tensors, the passes that make them fast, fusion into kernels, and the memory plan."""

from weft.graph.core.dimension import Dimension, size_text
from weft.graph.core.evaluator import Evaluator, Fill
from weft.graph.core.conditions import Guard, LateSize, Requirement
from weft.graph.core.infer_types import UNFIT
from weft.graph.core.graph import Attribute, Graph, Node
from weft.graph.core.graph_values import Array, Constant, Parameter, Value
from weft.graph.core.printer import print_graph
from weft.graph.core.saved_graph import graph_text, load_graph, save_graph
from weft.graph.core.graph_state import Growth, State
from weft.graph.core.state_pairs import Pair, bound_lengths, state_pairs
from weft.graph.core.type_text import attribute_text, dim_text, type_text
from weft.graph.core.verify import verify_graph
from weft.graph.fusion.fuse_operators import fuse, with_copied_outputs
from weft.graph.fusion.fuse_regions import fuse_regions
from weft.graph.fusion.groups import FusedGraph, Group, Version
from weft.graph.fusion.node_facts import facts_of
from weft.graph.fusion.open_axes import OpenAxes, open_axes
from weft.graph.fusion.put_checks_last import put_checks_last
from weft.graph.fusion.size_cases import RELATIONS, SizeCase
from weft.graph.fusion.sixteen_bit_rounding import computes_with_rounded
from weft.graph.layout.channel_blocks import name_without_blocks
from weft.graph.memory.in_place import find_in_place
from weft.graph.memory.order_groups import order_groups
from weft.graph.memory.place_concats import place_concats
from weft.graph.memory.plan_memory import Location, MemoryPlan, Place, alternating_states, plan_memory
from weft.graph.passes.eliminate_dead_code import eliminate_dead_code
from weft.graph.passes.guard_indices import guard_indices
from weft.graph.passes.manager import GraphReport, SavedPass, reproduce_graph
from weft.graph.passes.devices.place_nodes import place_nodes
from weft.graph.passes.pipeline import GRAPH_PASSES, optimize
from weft.graph.passes.replace_empty_tensors import replace_empty_tensors
from weft.graph.passes.simplify_calls import simplify_calls
from weft.graph.regions.host_nodes import host_nodes
from weft.graph.regions.region_operators import IF, LOOP, appends_of
from weft.graph.rewriting.call_patterns import match, untransposed
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.graph.states.declare_states import declare_states
from weft.graph.states.match_states import is_matched
from weft.graph.states.written_in_place import states_in_place

__all__ = [
    "GRAPH_PASSES",
    "IF",
    "LOOP",
    "UNFIT",
    "Array",
    "Attribute",
    "Constant",
    "Dimension",
    "Evaluator",
    "Fill",
    "FusedGraph",
    "Graph",
    "GraphReport",
    "Group",
    "Growth",
    "Guard",
    "Inputs",
    "LateSize",
    "Location",
    "MemoryPlan",
    "Node",
    "OpenAxes",
    "Pair",
    "Parameter",
    "Place",
    "RELATIONS",
    "Requirement",
    "SavedPass",
    "SizeCase",
    "State",
    "Value",
    "Version",
    "alternating_states",
    "appends_of",
    "attribute_text",
    "bound_lengths",
    "computes_with_rounded",
    "declare_states",
    "dim_text",
    "eliminate_dead_code",
    "facts_of",
    "find_in_place",
    "place_nodes",
    "with_copied_outputs",
    "fuse",
    "fuse_regions",
    "graph_text",
    "load_graph",
    "save_graph",
    "guard_indices",
    "host_nodes",
    "match",
    "name_without_blocks",
    "open_axes",
    "is_matched",
    "optimize",
    "order_groups",
    "place_concats",
    "plan_memory",
    "print_graph",
    "put_checks_last",
    "replace_empty_tensors",
    "reproduce_graph",
    "rewrite_graph",
    "simplify_calls",
    "size_text",
    "state_pairs",
    "states_in_place",
    "type_text",
    "untransposed",
    "verify_graph",
]
