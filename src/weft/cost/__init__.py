"""The cost model: estimates in cycles from sizes and a target's facts, and decisions as values that carry them.

Layouts, algorithms and schedule rules all ask this layer. It holds every number about caches, ports and latencies that is no fact
of one machine.
"""

from weft.cost.rules.attention_tile import (
    MERGE_THREADS, MOST_FETCHES, VECTOR_WORDS, WHOLE_SOFTMAX, AttentionSizes, AttentionTile, JoinAttention, attention_tile_plans,
    join_attention_plans, row_stride,
)
from weft.cost.graph.attention_blocks import AttentionBlock, attention_block_plans
from weft.cost.at_sizes import cycles_at
from weft.cost.graph.arithmetic import multiply_cycles
from weft.cost.budget import (
    LARGEST_ON_STACK, LONG_BORDER, MOST_LOOP_VECTORS, MOST_REMAINDERS, MOST_STREAMS, MOST_UNROLLED_CHOICES, MOST_UNSWITCHED,
    NO_REUSE, SHORTEST_CUT_VECTOR, SMALL_PART, SMALLEST_PLANNED_BUFFER, UNROLLED_VECTORS, CodeBudget, Reuse, code_budget,
    unrolled_steps,
)
from weft.cost.demand import Demand, fma_cycles, l2_cycles, l3_cycles, load_cycles, memory_cycles
from weft.cost.effort import (
    CONDITION_ROUNDS, FOLDED_TIMES_CONSTANTS, INLINED_CALLS, LARGEST_COMPARED_CONSTANT,
    LARGEST_CONDITION_TABLE, LARGEST_FOLDED_GROWTH, LARGEST_SAMPLED_DIMENSION, LEAST_FOLDED_BYTES,
    LEAST_STREAMED, MOST_SEQUENCE_STEPS, MOST_SIZES_OF_ELEMENTS,
    MOST_UNROLLED_STEPS, NESTED_CALLS, ORDER_BEAMS, ORDER_STEPS, PACKED_AT_ONCE,
    PLACEMENT_EXCHANGES, PLACEMENT_IMPROVEMENTS, PLACEMENT_PAIRS, RANGE_DEPTH, SAVED_CONSTANTS, SCALED_PIECE, SMALLEST_DEFERRED,
    WHOLE_STEPS,
)
from weft.cost.fusion import LARGEST_GROUP, LARGEST_POWER, Recompute, recomputation_plans
from weft.cost.graph.channel_blocks import group_blocks, input_block, output_block
from weft.cost.rules.contractions.contraction import (
    Order, OrderProblem, Tile, TileProblem, order_plans, tile_cycles, tile_plans,
)
from weft.cost.rules.contractions.dot_product import DotInstruction, dot_plans
from weft.cost.rules.matrix_tiles import MatrixTile, MatrixTileProblem, matrix_tile_plans
from weft.cost.footprint import LoopNest, bytes_of, bytes_touched, nests, ranges_of, step_along
from weft.cost.rules.fragment_tile import (
    BATCHED_FETCHES, FragmentProduct, FragmentTile, fragment_tile_plans, multiplies_together,
)
from weft.cost.rules.contractions.gemv import Gemv, gemv_plans
from weft.cost.rules.inlining import (
    MOST_REPEATED, Inline, inline_plans, packed_factor_plans, rearrangement_plans, turned_rows_plans,
)
from weft.cost.rules.contractions.k_blocking import (
    ColumnBlock, DepthProblem, KBlocks, RowBlock, column_block_plans, k_block_plans, row_block_plans,
)
from weft.cost.graph.implicit_products import (
    ImplicitProduct, filled_channels, filled_terms, implicit_product_plans, whole_steps,
)
from weft.cost.graph.merging import MergeAxes, merge_plans
from weft.cost.graph.prefix_chunks import PrefixChunk, prefix_chunk_plans
from weft.cost.graph.layout import (
    Convolution, Form, Layout, blocked_cycles, depthwise_cycles, dot_product_cycles, grouped_cycles, packing_cycles,
    plain_cycles, unfused_cycles,
)
from weft.cost.graph.low_precision import (
    ByteFragments, ByteProduct, FloatProduct, GroupedOperands, NarrowFactors, NarrowWeight,
    WIDENING_OPERATIONS, RoundedFactors, TakenApart, byte_fragment_plans, grouped_plans, low_bit_panel_plans,
    narrow_factor_plans, narrow_weight_plans,
    rounded_factor_plans, taken_apart_plans,
)
from weft.cost.graph.matrix_convolutions import (
    NARROW_BLOCK, BlockedConvolution, ByteBlock, BytePanel, byte_block_plans, byte_panel_plans,
    narrow_convolution_plans,
)
from weft.cost.graph.combining import CombineProducts, combine_product_plans
from weft.cost.graph.rounded.rounded_attention import RoundedAttention, rounded_attention_plans
from weft.cost.graph.rounded.split_factors import (
    FEWEST_OPEN_ROWS, STEP_TERMS, FactorsInParts, convolution_in_parts_plans, factors_in_parts_plans, multiplies_parts,
)
from weft.cost.graph.device_placement import NodeWork, RunOn, crossing_time, device_time, processor_time, work_of
from weft.cost.graph.packing import (
    PANEL_VECTORS, GridOperand, Panel, RightOperand, RightProblem, TurnedWeight, grid_operand_plans,
    right_operand_plans, turned_weight_plans,
)
from weft.cost.graph.panel_width import PanelProblem, panel_plans
from weft.cost.rules.contractions.panel_packing import (
    PackPanel, WindowPanelProblem, pack_panel_plans, pack_window_plans, packed_problem,
)
from weft.cost.rules.contractions.padding import SkipPadding, padding_plans
from weft.cost.rules.parallel import (
    MANY_INDICES, Parallel, SharedColumns, enough_tasks, parallel_plans, shared_column_plans,
)
from weft.cost.graph.tables import Tabulate, table_plans
from weft.cost.graph.phases import (
    DilationPhases, TransposedPhases, dilation_plans, transposed_plans,
)
from weft.cost.plans.answering import Address, Answering, addressed
from weft.cost.plans.costs import ESTIMATED, CostSource
from weft.cost.plans.plan import PROGRAM, Candidate, D, Decision, Plan, Step, parse_plan, subject_of
from weft.cost.plans.planner import (
    Accept, Candidates, Choose, Choosing, Following, Planner, Question, SolveJointly, Takes, by_cost, cheapest,
)
from weft.cost.rules.contractions.prefetch import (
    FusePanels, ImageProblem, Prefetch, PrefetchSteps, StreamProblem, fuse_panel_plans, prefetch_plans,
    prefetch_step_plans, streams_of,
)
from weft.cost.maps import JAMMED, Jam, is_long_formula, jam_plans
from weft.cost.program import (
    ENTRY_CYCLES,
    LOOP_CYCLES,
    SHUFFLES,
    SPILL_CYCLES,
    cost_of,
    nest_cycles,
    operations_of,
    predict_cycles,
)
from weft.cost.rules.reduction import (
    SHORTEST_REDUCTION, Accumulators, InnerProblem, InnerTile, accumulator_plans, inner_tile_plans,
)
from weft.cost.rules.rows import (
    OnePass, RowsAtOnce, SharePatches, one_pass_plans, patch_plans, rows_at_once_plans,
)
from weft.cost.rules.contractions.contraction_rules import Rule, depth_plans, gemv_or_tiles, rule_plans
from weft.cost.rules.sketch import (
    CacheTile, InnerOrder, OuterOrder, PadInput, ReduceOrder, ReduceTile, RegisterTile, SketchProblem, cache_tile_plans,
    inner_order_plans, may_unroll, may_write, outer_order_plans, pad_input_plans, padded_parts, reduce_order_plans,
    reduce_tile_plans, register_tile_plans, remainder_versions, tiles_held,
)
from weft.cost.rules.row_threads import (
    FEW_AT_ONCE, NO_ROWS, ReductionParts, RowGroup, RowThreads, most_parts, reduction_part_plans, row_thread_plans,
)
from weft.cost.rules.shared_tile import (
    BANKS, LONG_ENOUGH, NEAR_STEPS, NO_TILE, UNROLLED_FETCHES, WORD, PartExtent, SharedTile, TiledProduct, shared_tile_plans,
)
from weft.cost.rules.thread_block import ThreadBlock, WindowStrip, thread_block_plans, window_strip_plans
from weft.cost.rules.update_order import UpdateOrder, update_order_plans
from weft.cost.sizes import FALLBACK_SIZE, elements, guess_of, picture_shapes, size_of
from weft.cost.transposition import SHUFFLED_STRIDE, TileOrder, is_gathered, is_transposed, tile_order_plans
from weft.cost.rules.window import (
    LONGEST_WINDOW_STRIDE, MOST_WINDOW_TAPS, Borders, Slide, WindowProblem, WindowTile, WriteOut,
    border_plans, window_tile_plans, write_out_plans,
)
from weft.cost.graph.transforms import LONGEST_PRIME, SHORT_TRANSFORM
from weft.cost.graph.versions import Case, OpenSize, Probe, Versions, possible_cases, version_plans
from weft.cost.graph.winograd import (
    DIRECT, FEWEST_TILES, GAIN, MIXED_GAIN, MOST_OPEN_TILES, OPEN_COLUMNS, OPEN_ROWS, TILES, FrameWindow, Layer, Terms,
    Tiling, Winograd, direct_cycles, direct_part, terms_of_words, winograd_cycles, winograd_panel,
)

__all__ = [
    "Accept", "Accumulators", "Address", "Answering", "AttentionBlock", "AttentionSizes",
    "AttentionTile", "BANKS", "BATCHED_FETCHES", "Borders",
    "BlockedConvolution", "ByteBlock", "ByteFragments", "BytePanel", "ByteProduct",
    "CONDITION_ROUNDS", "CacheTile", "Candidate", "Candidates", "Case", "Choose", "Choosing", "CodeBudget",
    "ColumnBlock", "CombineProducts", "Convolution",
    "CostSource", "D", "DIRECT", "Decision", "Demand", "DepthProblem", "DilationPhases", "DotInstruction", "ENTRY_CYCLES",
    "ESTIMATED", "FALLBACK_SIZE", "FEWEST_TILES", "FEW_AT_ONCE",
    "FEWEST_OPEN_ROWS", "FactorsInParts", "FOLDED_TIMES_CONSTANTS", "FloatProduct",
    "Following", "Form", "FragmentProduct",
    "FragmentTile", "FrameWindow", "FusePanels", "GAIN", "Gemv", "GridOperand", "GroupedOperands", "ImageProblem",
    "ImplicitProduct", "Inline", "InnerOrder", "InnerProblem", "InnerTile", "JAMMED", "Jam", "JoinAttention", "KBlocks",
    "LARGEST_COMPARED_CONSTANT",
    "LARGEST_CONDITION_TABLE", "LARGEST_FOLDED_GROWTH", "LARGEST_GROUP", "LARGEST_ON_STACK", "LARGEST_POWER",
    "LARGEST_SAMPLED_DIMENSION", "LEAST_FOLDED_BYTES", "LEAST_STREAMED", "LONGEST_PRIME", "LONGEST_WINDOW_STRIDE",
    "LONG_BORDER", "LONG_ENOUGH", "LOOP_CYCLES", "Layer", "Layout", "LoopNest", "MANY_INDICES", "MERGE_THREADS", "MIXED_GAIN",
    "MOST_REPEATED",
    "MOST_FETCHES",
    "MOST_LOOP_VECTORS", "MOST_OPEN_TILES", "MOST_REMAINDERS", "MOST_SEQUENCE_STEPS", "MOST_SIZES_OF_ELEMENTS",
    "MOST_STREAMS", "MOST_UNROLLED_CHOICES",
    "MOST_UNROLLED_STEPS", "MOST_UNSWITCHED", "MOST_WINDOW_TAPS", "MatrixTile", "MatrixTileProblem", "MergeAxes",
    "NARROW_BLOCK", "NEAR_STEPS", "NO_REUSE", "NO_ROWS", "NO_TILE", "NarrowFactors", "NarrowWeight", "ORDER_BEAMS", "ORDER_STEPS",
    "OPEN_COLUMNS", "OPEN_ROWS",
    "OnePass", "OpenSize", "Order", "OrderProblem", "OuterOrder", "PACKED_AT_ONCE", "PANEL_VECTORS", "PLACEMENT_EXCHANGES",
    "INLINED_CALLS", "NESTED_CALLS", "PackPanel",
    "PLACEMENT_IMPROVEMENTS", "PLACEMENT_PAIRS", "PROGRAM", "PadInput", "Panel", "PanelProblem", "Parallel", "PartExtent", "Plan",
    "Planner",
    "PrefixChunk",
    "Prefetch", "PrefetchSteps", "Probe", "Question", "RANGE_DEPTH", "Recompute", "ReduceOrder", "ReduceTile", "RegisterTile",
    "RightOperand", "RightProblem", "RoundedAttention", "RoundedFactors",
    "ReductionParts", "Reuse", "RowBlock", "RowGroup", "RowThreads", "RowsAtOnce", "Rule", "SAVED_CONSTANTS", "SCALED_PIECE",
    "SHORTEST_CUT_VECTOR", "SHORTEST_REDUCTION", "SHORT_TRANSFORM", "SHUFFLED_STRIDE", "SHUFFLES", "SMALLEST_DEFERRED",
    "SMALLEST_PLANNED_BUFFER", "SMALL_PART", "SPILL_CYCLES", "STEP_TERMS", "SharePatches", "SharedColumns",
    "NodeWork", "RunOn", "crossing_time", "device_time", "processor_time", "work_of",
    "SharedTile", "SketchProblem", "SkipPadding",
    "Slide", "SolveJointly", "Step", "StreamProblem", "TILES", "Tabulate", "TakenApart", "Takes", "Terms", "ThreadBlock", "Tile",
    "TileOrder", "TileProblem", "TiledProduct",
    "Tiling", "TransposedPhases", "TurnedWeight", "UNROLLED_FETCHES", "UNROLLED_VECTORS",
    "UpdateOrder",
    "VECTOR_WORDS",
    "Versions",
    "WIDENING_OPERATIONS",
    "WHOLE_SOFTMAX", "WHOLE_STEPS", "WORD", "WindowPanelProblem", "WindowProblem", "WindowStrip",
    "WindowTile", "Winograd", "WriteOut",
    "accumulator_plans", "addressed", "attention_block_plans", "attention_tile_plans",
    "blocked_cycles", "border_plans", "by_cost", "byte_block_plans",
    "column_block_plans", "combine_product_plans",
    "byte_panel_plans", "byte_fragment_plans", "bytes_of", "bytes_touched",
    "cache_tile_plans", "cheapest", "code_budget", "convolution_in_parts_plans", "cost_of",
    "cycles_at", "depth_plans", "depthwise_cycles",
    "dilation_plans", "direct_cycles", "direct_part", "dot_plans", "dot_product_cycles", "elements", "enough_tasks",
    "factors_in_parts_plans", "filled_channels", "filled_terms",
    "fma_cycles", "fragment_tile_plans", "fuse_panel_plans", "gemv_or_tiles", "gemv_plans", "grid_operand_plans",
    "group_blocks", "grouped_cycles", "grouped_plans", "guess_of", "implicit_product_plans", "inline_plans",
    "inner_order_plans", "inner_tile_plans",
    "input_block", "is_gathered", "is_long_formula", "is_transposed", "jam_plans", "join_attention_plans", "k_block_plans",
    "l2_cycles",
    "l3_cycles", "load_cycles", "low_bit_panel_plans", "matrix_tile_plans", "may_unroll", "may_write", "memory_cycles",
    "merge_plans", "most_parts", "multiplies_parts", "multiplies_together", "multiply_cycles",
    "narrow_convolution_plans", "narrow_factor_plans", "narrow_weight_plans", "nest_cycles",
    "nests", "one_pass_plans", "operations_of", "order_plans", "outer_order_plans", "output_block", "pack_panel_plans",
    "pack_window_plans",
    "packed_factor_plans", "packed_problem", "packing_cycles",
    "pad_input_plans", "padded_parts", "padding_plans", "panel_plans", "parallel_plans", "parse_plan", "patch_plans",
    "picture_shapes",
    "plain_cycles", "possible_cases", "predict_cycles", "prefetch_plans", "prefetch_step_plans", "prefix_chunk_plans",
    "ranges_of",
    "rearrangement_plans", "recomputation_plans", "reduce_order_plans", "reduce_tile_plans", "register_tile_plans",
    "remainder_versions", "right_operand_plans", "rounded_attention_plans", "rounded_factor_plans", "row_block_plans",
    "reduction_part_plans", "row_stride", "rows_at_once_plans", "row_thread_plans",
    "rule_plans", "shared_column_plans",
    "shared_tile_plans", "size_of", "step_along", "streams_of", "subject_of", "table_plans", "taken_apart_plans",
    "terms_of_words", "thread_block_plans", "tile_cycles", "tile_order_plans", "tile_plans", "tiles_held", "transposed_plans",
    "turned_rows_plans", "turned_weight_plans",
    "unfused_cycles", "unrolled_steps", "update_order_plans",
    "version_plans", "whole_steps", "window_strip_plans", "window_tile_plans", "winograd_cycles", "winograd_panel",
    "write_out_plans",
]
