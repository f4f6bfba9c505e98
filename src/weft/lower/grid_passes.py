"""The passes for machines that run grids of threads, in order.

Up to `insert_barriers`, the iterations of a loop over threads are independent pieces of a program that means the same when they
run one after another; `bind_threads` makes the program of a thread of it. After that nothing may move across a barrier, and no
condition out of a loop that has one: loops are not cut, nor their conditions hoisted.
"""

from __future__ import annotations

from typing import Final

from weft.lower.bind_threads import bind_threads
from weft.lower.compact_buffers import compact_buffers
from weft.lower.expand_math import expand_math
from weft.lower.flatten_buffers import flatten_buffers
from weft.lower.hoist_allocations import hoist_allocations
from weft.lower.hoist_invariants import hoist_invariants
from weft.lower.inject_virtual_threads import inject_virtual_threads
from weft.lower.insert_barriers import insert_barriers
from weft.lower.lower_cross_thread_reductions import lower_cross_thread_reductions
from weft.lower.make_grids import make_grids
from weft.lower.manager import Pass
from weft.lower.place_allocations import place_allocations
from weft.lower.remove_noops import remove_noops
from weft.lower.rotate_buffers import rotate_buffers
from weft.lower.share_buffers import share_buffers
from weft.lower.simplify_program import simplify_program
from weft.lower.split_host_device import split_host_device

GRID_PASSES: Final[tuple[Pass, ...]] = (
    Pass("make_grids", make_grids),
    Pass("lower_cross_thread_reductions", lower_cross_thread_reductions),
    Pass("place_allocations", place_allocations),
    Pass("compact_buffers", compact_buffers),
    Pass("rotate_buffers", rotate_buffers),
    Pass("inject_virtual_threads", inject_virtual_threads),
    Pass("hoist_invariants", hoist_invariants),
    Pass("share_buffers", share_buffers),
    Pass("insert_barriers", insert_barriers),
    Pass("bind_threads", bind_threads),
    Pass("compact_memory_of_threads", compact_buffers),
    Pass("flatten_buffers", flatten_buffers),
    Pass("split_host_device", split_host_device),
    Pass("simplify_program", simplify_program),
    Pass("remove_noops", remove_noops),
    Pass("hoist_allocations", hoist_allocations),
    Pass("expand_math", expand_math),
)
