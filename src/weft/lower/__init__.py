"""Lowering passes: scheduled loops to flat loops."""

from weft.lower.buffers.lift_scratch_buffers import lift_scratch_buffers, size_of
from weft.lower.loops.expand_copies import expand_copies
from weft.lower.loops.serialize_loops import serialize_loops
from weft.lower.manager import ProgramPass, ProgramReport, reproduce, run_passes, saved_target
from weft.lower.math.expand_math import expand_math
from weft.lower.pipeline import PASSES, PIPELINES, UNROLLED, lower, passes_for
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions

__all__ = [
    "PASSES", "PIPELINES", "UNROLLED", "ProgramPass", "ProgramReport", "Steps", "StmtRewriter", "Visited", "expand_copies",
    "expand_math", "lift_scratch_buffers", "lower", "map_functions", "passes_for", "reproduce", "run_passes", "saved_target",
    "serialize_loops", "size_of",
]
