"""Shuffles, interpreted: each thread of a warp takes an element of another one's own memory."""

from __future__ import annotations

import numpy as np

from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.threads.copies_in_flight import Threads
from weft.codegen.interp.threads.grid import meet
from weft.codegen.interp.threads.thread_lanes import Mask, spread
from weft.loop import Address, Call


def shuffle(r: Threads, s: Call, mask: Mask) -> int:
    """Runs a shuffle in the threads of *mask*, and returns the number of warps that made it; whole warps have to come by it."""
    to, source, number = s.args
    assert isinstance(to, Address)
    assert isinstance(source, Address)
    came = meet(mask, r.grid.warp, r.grid.warps, "warp")
    memory, places, element = r.where(source.buffer, source.indices, mask, {})
    values = np.zeros(r.grid.count, source.buffer.dtype.numpy)
    values[places] = memory.flat[element]
    threads = places[0]
    lane = spread(r.lanes.evaluate(number, mask), r.grid.count, 1)[threads]
    first = r.grid.first_of_warp(threads)
    threads_of_warp = np.bincount(r.grid.warp, minlength=r.grid.warps)[r.grid.warp[threads]]
    outside = (lane < 0) | (lane >= threads_of_warp)
    if outside.any():
        k = int(np.flatnonzero(outside)[0])
        raise ExecutionError(f"{r.grid.called(int(threads[k]))} asks thread {lane[k]} of its warp, which there is not")
    memory, _, element = r.where(to.buffer, to.indices, mask, {})
    memory.flat[element] = values[first + lane]
    return len(came)
