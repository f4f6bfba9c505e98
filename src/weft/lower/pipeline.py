"""From a scheduled loop program to the flat program that a backend emits: the passes, in order.

flat = lower(program, target)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.loop.nodes import Program
from weft.lower.compact_buffers import compact_buffers
from weft.lower.count_rows import count_rows
from weft.lower.expand_math import expand_math
from weft.lower.flatten_buffers import flatten_buffers
from weft.lower.grid_passes import GRID_PASSES
from weft.lower.hoist_allocations import hoist_allocations
from weft.lower.hoist_invariants import hoist_invariants
from weft.lower.inject_prefetches import inject_prefetches
from weft.lower.inject_tokens import inject_tokens
from weft.lower.inject_virtual_threads import inject_virtual_threads
from weft.lower.manager import Pass, Report, run_passes
from weft.lower.name_divisions import name_divisions
from weft.lower.outline_tasks import outline_tasks
from weft.lower.pad_registers import pad_registers
from weft.lower.partition_loops import partition_loops
from weft.lower.place_allocations import place_allocations
from weft.lower.remove_noops import remove_noops
from weft.lower.rotate_buffers import rotate_buffers
from weft.lower.shrink_loops import shrink_loops
from weft.lower.simplify_program import simplify_program
from weft.lower.spread_prefetches import spread_prefetches
from weft.lower.unmask_registers import unmask_registers
from weft.lower.unroll_loops import unroll_loops
from weft.lower.unswitch_loops import unswitch_loops
from weft.lower.vectorize import vectorize
from weft.targets.target import Target

PASSES: Final[tuple[Pass, ...]] = (
    Pass("place_allocations", place_allocations),
    Pass("compact_buffers", compact_buffers),
    Pass("rotate_buffers", rotate_buffers),
    Pass("inject_virtual_threads", inject_virtual_threads),
    Pass("flatten_buffers", flatten_buffers),
    Pass("spread_prefetches", spread_prefetches),
    Pass("hoist_invariants", hoist_invariants),
    Pass("partition_loops", partition_loops),
    Pass("count_rows", count_rows),
    Pass("simplify_program", simplify_program),
    Pass("shrink_loops", shrink_loops),
    Pass("unswitch_loops", unswitch_loops),
    Pass("pad_registers", pad_registers),
    Pass("vectorize", vectorize),
    Pass("simplify_vectors", simplify_program),
    Pass("unmask_registers", unmask_registers),
    Pass("remove_noops", remove_noops),
    Pass("inject_prefetches", inject_prefetches),
    Pass("name_divisions", name_divisions),
    Pass("outline_tasks", outline_tasks),
    Pass("hoist_allocations", hoist_allocations),
    Pass("inject_tokens", inject_tokens),
    Pass("expand_math", expand_math),
)
"""Mathematical functions are expanded last, since what they expand to is not for reading: its shared parts would be written out
many times. Blocks are dissolved by `compact_buffers`; guards are cut away before loops become vectors, which can only mask
them."""


UNROLLED: Final[tuple[Pass, ...]] = (
    Pass("unroll_loops", unroll_loops),
    Pass("simplify_unrolled", simplify_program),
)


def lower(
    program: Program,
    target: Target,
    *,
    verify: bool = False,
    trace: Callable[[Report], None] | None = None,
    unroll: bool = False,
) -> Program:
    """Returns the flat program that *program* means on *target*.

    With *verify*, every pass's result is verified. *trace* is given a `Report` of each pass. *unroll* writes unrolled loops
    out, which backends that emit assembly do themselves. Raises `LoweringError` when a pass cannot lower the program or
    crashes; the error then names a file from which `manager.reproduce` runs the pass again.
    """
    passes = GRID_PASSES if target.threads else PASSES
    return run_passes((*passes, *UNROLLED) if unroll else passes, program, target, verify=verify, trace=trace)
