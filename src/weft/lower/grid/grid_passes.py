"""The passes for machines that run grids of threads, in order.

Up to `insert_barriers`, the iterations of a loop over threads are independent pieces of a program that means the same when they
run one after another; `bind_threads` makes the program of a thread of it. After that nothing may move across a barrier, and no
condition out of a loop that has one: loops are not cut, nor their conditions hoisted.
"""

from __future__ import annotations

from typing import Final

from weft.lower.buffers.compact_buffers import compact_buffers
from weft.lower.buffers.expand_double_buffers import expand_double_buffers
from weft.lower.buffers.flatten_buffers import flatten_buffers
from weft.lower.buffers.hoist_allocations import hoist_allocations
from weft.lower.buffers.place_allocations import place_allocations
from weft.lower.cleanup.remove_noops import remove_noops
from weft.lower.cleanup.simplify_program import simplify_program
from weft.lower.grid.batch_fetches import batch_fetches
from weft.lower.grid.bind_threads import bind_threads
from weft.lower.grid.insert_barriers import insert_barriers
from weft.lower.grid.load_before import load_before
from weft.lower.grid.lower_cross_thread_reductions import lower_cross_thread_reductions
from weft.lower.grid.lower_warp_memory import lower_warp_memory
from weft.lower.grid.make_copies_async import make_copies_async
from weft.lower.grid.make_grids import make_grids
from weft.lower.grid.make_updates_atomic import make_updates_atomic
from weft.lower.grid.narrow_indices import narrow_indices
from weft.lower.grid.pipeline_copies import pipeline_copies
from weft.lower.grid.share_buffers import share_buffers
from weft.lower.grid.split_host_device import split_host_device
from weft.lower.grid.unguard_register_sums import unguard_register_sums
from weft.lower.loops.hoist_invariants import hoist_invariants
from weft.lower.loops.vectorize import vectorize
from weft.lower.manager import ProgramPass
from weft.lower.math.expand_math import expand_math
from weft.lower.units.inject_virtual_threads import inject_virtual_threads
from weft.support.passes import Pass, alone

GRID_PASSES: Final[tuple[ProgramPass, ...]] = (
    # all computation is in a grid from here on
    Pass("make_grids", alone(make_grids)),
    # the blocks tell which of their axes are unordered, and which loops reduce
    Pass("make_updates_atomic", make_updates_atomic),
    Pass("lower_cross_thread_reductions", lower_cross_thread_reductions),
    # each buffer next to its uses, so that
    Pass("place_allocations", alone(place_allocations)),
    # it shrinks to the box they touch; blocks end here
    Pass("compact_buffers", alone(compact_buffers)),
    # on shrunken buffers, which still have dimensions
    Pass("expand_double_buffers", alone(expand_double_buffers)),
    # on shrunken buffers, too, before threads wait for one another
    Pass("pipeline_copies", alone(pipeline_copies)),
    # inside a real thread, before it shares memory
    Pass("inject_virtual_threads", inject_virtual_threads),
    # no condition may leave a loop once there are barriers in it
    Pass("hoist_invariants", alone(hoist_invariants), optional=True),
    # gives each thread a row, so that indices determine the thread, and
    Pass("share_buffers", share_buffers),
    # barriers stand between loops over threads, which all threads reach
    Pass("insert_barriers", insert_barriers),
    # a block's loops over threads become the program of one thread
    Pass("bind_threads", bind_threads),
    # memory that one thread alone sees shrinks to its part
    Pass("compact_memory_of_threads", alone(compact_buffers)),
    # no later pass needs the dimensions of a buffer
    Pass("flatten_buffers", alone(flatten_buffers)),
    # flat buffers and sizes are the parameters of kernels
    Pass("split_host_device", split_host_device),
    # grid sizes decide guards; no loop is cut
    Pass("simplify_program", alone(simplify_program)),
    # before loads become vectors, which no shuffle has
    Pass("lower_warp_memory", lower_warp_memory),
    # conditions on single elements are still those of the tile
    Pass("unguard_register_sums", alone(unguard_register_sums), optional=True),
    # flat buffers only; vectorizes the neighbouring accesses of a thread
    Pass("vectorize", vectorize),
    # sums of ramps become ramps
    Pass("simplify_vectors", alone(simplify_program), optional=True),
    # vectors tell which copies are made at once
    Pass("make_copies_async", make_copies_async),
    # what threads round is no copy: they load it an iteration before they store it, or
    Pass("load_before", alone(load_before), optional=True),
    # all loads of a batch before its stores
    Pass("batch_fetches", alone(batch_fetches), optional=True),
    # the stores and buffers left unused
    Pass("remove_noops", alone(remove_noops), optional=True),
    # to the top of a kernel, which is a function by now
    Pass("hoist_allocations", alone(hoist_allocations)),
    # no later pass makes an index
    Pass("narrow_indices", narrow_indices),
    # last: shared parts would be written out many times in printed programs
    Pass("expand_math", expand_math),
)
