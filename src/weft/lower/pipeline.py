"""From a scheduled loop program to the flat program that a backend emits: the passes, in order.

flat = lower(program, target)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from weft.loop import Program
from weft.lower.buffers.compact_buffers import compact_buffers
from weft.lower.buffers.expand_double_buffers import expand_double_buffers
from weft.lower.buffers.flatten_buffers import flatten_buffers
from weft.lower.buffers.hoist_allocations import hoist_allocations
from weft.lower.buffers.pad_register_tiles import pad_register_tiles
from weft.lower.buffers.place_allocations import place_allocations
from weft.lower.buffers.unmask_register_stores import unmask_register_stores
from weft.lower.cleanup.remove_noops import remove_noops
from weft.lower.cleanup.simplify_program import simplify_program
from weft.lower.grid.bind_cores import bind_cores
from weft.lower.grid.grid_passes import GRID_PASSES
from weft.lower.grid.narrow_indices import narrow_indices
from weft.lower.grid.split_host_device import split_host_device
from weft.lower.loops.hoist_divisions import hoist_divisions
from weft.lower.loops.hoist_invariants import hoist_invariants
from weft.lower.loops.outline_tasks import outline_tasks
from weft.lower.loops.partition_loops import partition_loops
from weft.lower.loops.shuffle_repeated_loads import shuffle_repeated_loads
from weft.lower.loops.specialize_remainders import specialize_remainders
from weft.lower.loops.specialize_tail_vectors import specialize_tail_vectors
from weft.lower.loops.tighten_loop_bounds import tighten_loop_bounds
from weft.lower.loops.transpose_strided_loads import transpose_strided_loads
from weft.lower.loops.trim_loops import trim_loops
from weft.lower.loops.unguard_loads import unguard_loads
from weft.lower.loops.unroll_loops import unroll_loops
from weft.lower.loops.unroll_reductions import unroll_reductions
from weft.lower.loops.unswitch_loops import unswitch_loops
from weft.lower.loops.vectorize import vectorize
from weft.lower.manager import ProgramPass, ProgramReport, run_passes
from weft.lower.math.expand_math import expand_math
from weft.lower.streams.inject_prefetches import inject_prefetches
from weft.lower.streams.split_streams import split_streams
from weft.lower.streams.stream_prefetches import stream_prefetches
from weft.lower.units.configure_tiles import configure_tiles
from weft.lower.units.inject_tokens import inject_tokens
from weft.lower.units.inject_virtual_threads import inject_virtual_threads
from weft.support.knobs import Switches
from weft.support.passes import EVERYTHING, Pass, alone
from weft.targets import Kind, Target

NESTS: Final[tuple[ProgramPass, ...]] = (
    # each buffer next to its uses, so that
    Pass("place_allocations", alone(place_allocations)),
    # it shrinks to the box they touch; blocks end here
    Pass("compact_buffers", alone(compact_buffers)),
    # on shrunken buffers, which still have dimensions
    Pass("expand_double_buffers", alone(expand_double_buffers)),
    # threads share loops that are not cut yet
    Pass("inject_virtual_threads", inject_virtual_threads),
    # no later pass needs the dimensions of a buffer
    Pass("flatten_buffers", alone(flatten_buffers)),
    # a walk over memory is one flat address in one uncut loop
    Pass("stream_prefetches", stream_prefetches, optional=True),
    # a walk begins at zero; a condition that becomes a bound needs no cut,
    Pass("trim_loops", alone(trim_loops), optional=True),
    # nor does one that leaves a loop
    Pass("hoist_invariants", alone(hoist_invariants), optional=True),
    # before vectors, which can only mask a guard, not avoid it
    Pass("partition_loops", partition_loops, optional=True),
    # the tiles left by cuts: a body for each number of rows
    Pass("specialize_remainders", specialize_remainders, optional=True),
    # of whole rows by now: and one for each number of vectors
    Pass("specialize_tail_vectors", specialize_tail_vectors, optional=True),
    # guards that the cuts have decided go, which bares those
    Pass("simplify_program", alone(simplify_program), optional=True),
    # around whole bodies, which end a loop, and those
    Pass("tighten_loop_bounds", tighten_loop_bounds, optional=True),
    # that are the same throughout one: vectors would mask both
    Pass("unswitch_loops", unswitch_loops, optional=True),
    # before loops over rows are divided into vectors
    Pass("pad_register_tiles", pad_register_tiles, optional=True),
    # no guard is left that a scalar loop could avoid
    Pass("vectorize", vectorize),
    # sums of ramps become ramps, and masks are decided
    Pass("simplify_vectors", alone(simplify_program), optional=True),
    # loops still tell which indices lie in their buffers
    Pass("unguard_loads", unguard_loads, optional=True),
    # full vectors are apart from those under masks, and indices are sums of ramps
    Pass("shuffle_repeated_loads", alone(shuffle_repeated_loads), optional=True),
    # needs the final masks of all accesses to a buffer
    Pass("unmask_register_stores", alone(unmask_register_stores), optional=True),
    # the stores and buffers that all cuts and hoists left unused
    Pass("remove_noops", alone(remove_noops), optional=True),
    # loops over vectors tell what is read in order
    Pass("split_streams", split_streams, optional=True),
    # no later pass copies the body of a tile
    Pass("unroll_reductions", unroll_reductions, optional=True),
    # vectors tell which cache lines a statement reads
    Pass("inject_prefetches", inject_prefetches, optional=True),
    # no later pass proves bounds of divisions as they stand
    Pass("hoist_divisions", alone(hoist_divisions), optional=True),
)
"""The passes for the loops of a core that has vectors, which may run the iterations of parallel loops beside others."""

PASSES: Final[tuple[ProgramPass, ...]] = (
    *NESTS,
    # divisions before a parallel loop become arguments of its task
    Pass("outline_tasks", alone(outline_tasks)),
    # to the top of a task, which is a function by now
    Pass("hoist_allocations", alone(hoist_allocations)),
    # around loops that no pass moves any more, in the function of a thread
    Pass("configure_tiles", alone(configure_tiles)),
    # the units' instructions are in their final order
    Pass("inject_tokens", inject_tokens),
    # writes loops out, which all before keep short
    Pass("transpose_strided_loads", transpose_strided_loads, optional=True),
    # last: shared parts would be written out many times in printed programs
    Pass("expand_math", expand_math),
)
"""The passes for processors, and for units beside them."""

CORES_OF_GRIDS: Final[tuple[ProgramPass, ...]] = (
    *NESTS,
    # the last that knows of parallel loops
    Pass("bind_cores", alone(bind_cores)),
    # grids become functions
    Pass("split_host_device", split_host_device),
    # to the top of a kernel, which is a function by now
    Pass("hoist_allocations", alone(hoist_allocations)),
    # a block is one thread: its register tiles are numbered by constants
    Pass("unroll_loops", alone(unroll_loops)),
    # the loop variable is a number in each copy
    Pass("simplify_unrolled", alone(simplify_program)),
    # no later pass makes an index
    Pass("narrow_indices", narrow_indices),
    # last: shared parts would be written out many times in printed programs
    Pass("expand_math", expand_math),
)
"""The passes for devices whose blocks are run by cores with vectors (`Target.has_threads` does not hold)."""

UNROLLED: Final[tuple[ProgramPass, ...]] = (
    # after tokens, which are pushed and popped around whole loops
    Pass("unroll_loops", alone(unroll_loops)),
    # the loop variable is a number in each copy
    Pass("simplify_unrolled", alone(simplify_program)),
)
"""The tail for backends that write unrolled loops out themselves."""

PIPELINES: Final[Mapping[Kind, tuple[ProgramPass, ...]]] = {"cpu": PASSES, "unit": PASSES, "grid": GRID_PASSES}
"""The passes by the kind of the target, but for grids of cores; those of its backend (`Backend.passes`) follow."""


def passes_for(target: Target) -> tuple[ProgramPass, ...]:
    """Returns the passes for a target."""
    return CORES_OF_GRIDS if target.kind == "grid" and not target.has_threads else PIPELINES[target.kind]


def lower(
    program: Program,
    target: Target,
    switches: Switches = EVERYTHING,
    *,
    verify: bool = False,
    trace: Callable[[ProgramReport], None] | None = None,
    unroll: bool = False,
) -> Program:
    """Returns the flat program that *program* means on *target*.

    Passes that *switches* skip by name are left out. With *verify*, every pass's result is verified. *trace* is given a report
    of each pass. *unroll* writes unrolled loops out, which backends that emit assembly do themselves. Raises `LoweringError`
    when a pass cannot lower the program or crashes; the error then names a file, and the command that runs the pass again on
    the program in it.
    """
    passes = passes_for(target)
    return run_passes((*passes, *UNROLLED) if unroll else passes, program, target, switches, verify=verify, trace=trace)
