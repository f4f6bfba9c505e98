"""The graph passes in their order: a line a pass, with the options that switch it off and the reason for its place.

fast = optimize(graph, target, evaluator, Switches(without=("winograd",)))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.cost import Choosing, Planner
from weft.graph.core.evaluator import Evaluator
from weft.graph.core.graph import Graph
from weft.graph.passes.bind_parameters import bind_parameters
from weft.graph.passes.blocking.block_attention import block_attention
from weft.graph.passes.blocking.split_prefixes import split_prefixes
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.combine_products import combine_products
from weft.graph.passes.convolutions.choose_implicit_products import choose_implicit_products
from weft.graph.passes.convolutions.choose_integer_winograd import choose_integer_winograd
from weft.graph.passes.convolutions.choose_transposed_winograd import choose_transposed_winograd
from weft.graph.passes.convolutions.choose_winograd import choose_winograd
from weft.graph.passes.convolutions.flatten_pointwise_places import flatten_pointwise_places
from weft.graph.passes.convolutions.lower_dilated_convolutions import lower_dilated_convolutions
from weft.graph.passes.convolutions.lower_line_convolutions import lower_line_convolutions
from weft.graph.passes.convolutions.lower_pointwise_convolutions import lower_pointwise_convolutions
from weft.graph.passes.convolutions.lower_transposed_convolutions import lower_transposed_convolutions
from weft.graph.passes.convolutions.lower_volume_convolutions import lower_volume_convolutions
from weft.graph.passes.convolutions.narrow_convolutions import narrow_convolutions
from weft.graph.passes.convolutions.trim_dead_taps import trim_dead_taps
from weft.graph.passes.devices.bound_buffers import bound_buffers
from weft.graph.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from weft.graph.passes.eliminate_dead_code import eliminate_dead_code
from weft.graph.passes.flatten_matmul_rows import flatten_matmul_rows
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.fold_scale_and_shift import fold_scale_and_shift
from weft.graph.passes.group_queries import group_queries
from weft.graph.passes.guard_indices import guard_indices
from weft.graph.passes.manager import MANAGER, GraphContext, GraphPass, GraphReport, with_evaluator, with_planner
from weft.graph.passes.merge_axes import merge_axes
from weft.graph.passes.optimize_regions import optimize_regions
from weft.graph.passes.pack_matrices import pack_matrices
from weft.graph.passes.quantized.choose_dot_products import choose_dot_products
from weft.graph.passes.quantized.fold_dequantization import fold_dequantization
from weft.graph.passes.quantized.pack_low_bits import pack_low_bits
from weft.graph.passes.quantized.place_weight_dequantization import place_weight_dequantization
from weft.graph.passes.quantized.tabulate_bytes import tabulate_bytes
from weft.graph.passes.recognize_layer_norm import recognize_layer_norm
from weft.graph.passes.replace_empty_tensors import replace_empty_tensors
from weft.graph.passes.rounded.round_attention import round_attention
from weft.graph.passes.rounded.round_beside import round_beside
from weft.graph.passes.simplify_calls import simplify_calls
from weft.graph.passes.states.append_in_place import append_in_place
from weft.graph.passes.states.read_pages import read_pages
from weft.graph.passes.states.read_states_in_place import read_states_in_place
from weft.graph.passes.states.write_states_in_place import write_states_in_place
from weft.graph.passes.update_in_any_order import update_in_any_order
from weft.graph.passes.widen_halves import widen_halves
from weft.support.dtypes import bf16, f32
from weft.support.knobs import LAYOUT, PARTS, PREPACKING, WINOGRAD, Switches
from weft.support.passes import EVERYTHING, Pass, alone
from weft.targets import Target


def _simplify_calls(graph: Graph, context: GraphContext) -> Graph:
    return simplify_calls(graph, exact=context.switches.exact)


def _lower_transposed_convolutions(graph: Graph, context: GraphContext) -> Graph:
    blocks = context.switches.uses(LAYOUT)
    return lower_transposed_convolutions(graph, context.planner, context.evaluator, blocks=blocks)


def _lower_volume_convolutions(graph: Graph, context: GraphContext) -> Graph:
    if context.target.has_threads or not context.switches.narrow:
        return graph
    return lower_volume_convolutions(graph, context.evaluator)


def _choose_implicit_products(graph: Graph, context: GraphContext) -> Graph:
    if not context.target.has_threads:
        return graph
    return choose_implicit_products(graph, context.planner, context.switches.precision)


def _choose_layouts(graph: Graph, context: GraphContext) -> Graph:
    return choose_layouts(graph, context.planner, by_winograd=WINOGRAD_PASS.is_on(context.switches))


def _has_parts(switches: Switches) -> bool:
    """Tells whether factors of float32 may be split in parts."""
    return switches.precision == "model" and switches.uses(PARTS)


def _narrow_convolutions(graph: Graph, context: GraphContext) -> Graph:
    return narrow_convolutions(
        graph, context.planner, narrow=context.switches.narrow, in_parts=_has_parts(context.switches)
    )


def _combine_products(graph: Graph, context: GraphContext) -> Graph:
    factors = bf16 if context.switches.narrow else f32
    return combine_products(graph, context.evaluator, context.planner, factors)


def _round_attention(graph: Graph, context: GraphContext) -> Graph:
    return round_attention(graph, context.planner) if context.switches.narrow else graph


def _round_beside(graph: Graph, context: GraphContext) -> Graph:
    return round_beside(graph) if context.target.has_threads else graph


def _split_prefixes(graph: Graph, context: GraphContext) -> Graph:
    return split_prefixes(graph, context.planner) if context.target.has_threads else graph


def _block_attention(graph: Graph, context: GraphContext) -> Graph:
    return graph if context.target.has_threads else block_attention(graph, context.planner)


def _pack_matrices(graph: Graph, context: GraphContext) -> Graph:
    switches = context.switches
    return pack_matrices(graph, context.planner, switches.precision, in_parts=_has_parts(switches))


def _tabulate_bytes(graph: Graph, context: GraphContext) -> Graph:
    return tabulate_bytes(graph, context.evaluator, context.planner)


def _update_in_any_order(graph: Graph, context: GraphContext) -> Graph:
    if not context.target.has_threads:
        return graph
    return update_in_any_order(graph, context.planner, context.target, exact=context.switches.exact)


def _read_pages(graph: Graph, context: GraphContext) -> Graph:
    return graph if context.target.has_threads else read_pages(graph)


def _bound_buffers(graph: Graph, context: GraphContext) -> Graph:
    return bound_buffers(graph, context.target.most_buffers)


def _fold_packed_constants(graph: Graph, context: GraphContext) -> Graph:
    return fold_constants(graph, context.evaluator, defer=True)


WINOGRAD_PASS: Final[GraphPass] = Pass("choose_winograd", with_planner(choose_winograd), 1, (WINOGRAD,), exact=False)
"""Choosing layouts counts on this pass where it is on."""

GRAPH_PASSES: Final[tuple[GraphPass, ...]] = (
    # tensors without elements have no kernel, on any level
    Pass("replace_empty_tensors", alone(replace_empty_tensors)),
    # before any pass that costs time for each node
    Pass("eliminate_dead_code", alone(eliminate_dead_code)),
    # weights are still the model's bytes, which folding would dequantise
    Pass("fold_dequantization", alone(fold_dequantization), 1, exact=False),
    Pass("place_weight_dequantization", with_planner(place_weight_dequantization), 2, exact=False),
    Pass("choose_dot_products", with_planner(choose_dot_products), 2),
    # shapes and scales that the model computes are constants for the patterns of all later passes
    Pass("fold_constants", with_evaluator(fold_constants), 1),
    # integer arithmetic is folded, and scales are constants; the tables' indices are bytes, which need no guards
    Pass("tabulate_bytes", _tabulate_bytes, 1),
    # on the model's own indices, while the nodes that use them are still the model's; folded ones were checked by folding
    Pass("guard_indices", alone(guard_indices)),
    # on the calls as the model spells them, which simplifying would change
    Pass("recognize_layer_norm", alone(recognize_layer_norm), 1, exact=False),
    # reshapes and neutral calls go that would hide equal calls and hold producers and consumers apart
    Pass("simplify_calls", _simplify_calls, 1),
    # once equal calls look alike
    Pass("eliminate_common_subexpressions", alone(eliminate_common_subexpressions), 1),
    # reshapes and transpositions are as simple as they get; repeated heads are slices of states
    Pass("group_queries", alone(group_queries), 1),
    Pass("append_in_place", alone(append_in_place), 1),
    Pass("write_states_in_place", alone(write_states_in_place), 1),
    Pass("read_states_in_place", alone(read_states_in_place), 1),
    # normalizations go into weights while convolutions still have the weights and layouts of the model
    Pass("fold_scale_and_shift", alone(fold_scale_and_shift), 1, exact=False),
    # weights of halves become float32 while they have the layout of the model, and are packed as such
    Pass("widen_halves", with_evaluator(widen_halves), 1),
    # lines become images once normalizations of channels are gone
    Pass("lower_line_convolutions", alone(lower_line_convolutions), 1),
    # taps that meet only padding need no lowering below
    Pass("trim_dead_taps", with_evaluator(trim_dead_taps), 1),
    # transposed ones become ordinary convolutions, and dilated ones such over images, for which layouts are chosen, as do volumes
    # for products of low precision; those of grids have patches of any dimensions
    Pass("lower_transposed_convolutions", _lower_transposed_convolutions, 1),
    Pass("lower_volume_convolutions", _lower_volume_convolutions, 1, (LAYOUT,), exact=False),
    Pass("lower_dilated_convolutions", with_planner(lower_dilated_convolutions), 1, (WINOGRAD, LAYOUT), exact=False),
    # all convolutions are there
    Pass("choose_implicit_products", _choose_implicit_products, 1),
    # one layout for each chain of them
    Pass("choose_layouts", _choose_layouts, 1, (LAYOUT,)),
    # in blocks, and before they become others of float32
    Pass("narrow_convolutions", _narrow_convolutions, 1, exact=False),
    # 1x1 convolutions that are in no channel blocks
    Pass("lower_pointwise_convolutions", alone(lower_pointwise_convolutions), 1),
    # of convolutions in channel blocks
    WINOGRAD_PASS,
    # of dot products in channel blocks, in whole numbers
    Pass("choose_integer_winograd", with_planner(choose_integer_winograd), 1, (WINOGRAD,)),
    Pass("choose_transposed_winograd", with_planner(choose_transposed_winograd), 1, (WINOGRAD,), exact=False),
    # reductions in the layout that was chosen
    Pass("merge_axes", with_planner(merge_axes), 1),
    # once equal calls are one
    Pass("split_prefixes", _split_prefixes, 1, exact=False),
    # of the shape that the model has them
    Pass("combine_products", _combine_products, 2),
    # what rounds factors goes before the slices of combined products, and takes part in merging rows
    Pass("round_attention", _round_attention, 2, exact=False),
    # as the products of each head are packed in the loop over heads
    Pass("block_attention", _block_attention, 2),
    # all products are there; one matrix of all rows is to be packed for
    Pass("flatten_matmul_rows", alone(flatten_matmul_rows), 1),
    # in channel blocks, and not by Winograd's method
    Pass("flatten_pointwise_places", alone(flatten_pointwise_places), 1),
    # right-hand sides in panels, of the shape that they keep
    Pass("pack_matrices", _pack_matrices, 2),
    Pass("pack_low_bits", with_planner(pack_low_bits), 2),
    # reshapes of the passes before that have met
    Pass("simplify_packed", _simplify_calls, 1),
    # operands of products are as they stay
    Pass("read_pages", _read_pages, 1),
    # conversions of products' factors are as far forward as they get
    Pass("round_beside", _round_beside, 2),
    # states are written in place
    Pass("update_in_any_order", _update_in_any_order, 1),
    # when no pass joins calls any more; on any level, since some machines can't have a kernel otherwise
    Pass("bound_buffers", _bound_buffers),
    # packed weights, whose elements no later pass reads: computed when they are written
    Pass("fold_packed_constants", _fold_packed_constants, 1, (PREPACKING,)),
)


def optimize(
    graph: Graph,
    target: Target,
    evaluator: Evaluator,
    switches: Switches = EVERYTHING,
    *,
    planner: Planner | None = None,
    verify: bool = False,
    trace: Callable[[GraphReport], None] | None = None,
) -> Graph:
    """Returns *graph* made fast for *target*; *evaluator* computes constants, *trace* receives a report of each pass.

    Regions of control flow go through the passes once the graph around them has. Passes put their choices to *planner*, which
    takes the cheapest unless another is given. Parameters that are read as they lie are inputs of the returned graph.

    With *verify*, every graph that a pass made is verified. Raises the error by which a pass refuses a model, and
    `LoweringError` where a pass crashes; this error names a file, and the command that runs the pass again on the graph in it.
    """
    context = GraphContext(target, evaluator, switches, planner if planner is not None else Choosing(target))

    def run(g: Graph) -> Graph:
        made = MANAGER.run(GRAPH_PASSES, g, context, switches, verify=verify, trace=trace)
        return optimize_regions(made, run)

    with graph.fold_budget.lent():
        return bind_parameters(run(graph))
