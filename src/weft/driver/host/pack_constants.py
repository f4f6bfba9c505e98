"""Computes the constants of a model to where kernels read them: a block of memory, or the file that the model is written to."""

from __future__ import annotations

from concurrent.futures import Executor, Future

import numpy as np

from weft.cost import LEAST_STREAMED, PACKED_AT_ONCE
from weft.driver.host.host_memory import Constants
from weft.graph import FusedGraph
from weft.native import _rt
from weft.runtime.lazy_constants import Done, LazyConstants, in_memory
from weft.support.mapped_files import drop_pages


def pack_constants(
    fused: FusedGraph, constants: Constants, pool: Executor, *, to_file: bool
) -> Future[_rt.Block | LazyConstants]:
    """Returns the constants to come: *pool* computes each straight to its place in a block, while Python goes on.

    Many of a model that goes *to_file* are left to be computed there.
    """
    lazy = LazyConstants(constants.size, lambda block, done: write_constants(fused, constants, block, done))
    if not to_file or constants.size < LEAST_STREAMED:
        return pool.submit(in_memory, lazy)
    made: Future[_rt.Block | LazyConstants] = Future()
    made.set_result(lazy)
    return made


def write_constants(fused: FusedGraph, constants: Constants, block: memoryview, done: Done) -> None:
    """Writes every constant to its place in *block*; gaps are zero, so that the same model is always the same bytes.

    The pages of the model's files that are read for it are not kept in memory: of large models there is room for the weights
    once. Each time that they are released, *done* is told how far the block is written.
    """
    room = np.frombuffer(block, np.uint8)
    end = unread = 0
    for c in fused.constants:
        begin = constants.offsets[c]
        room[end:begin] = 0
        end = begin + c.nbytes
        c.write(room[begin:end].view(c.dtype.numpy).reshape(c.extents))
        if end - unread > PACKED_AT_ONCE:
            drop_pages()
            done(end)
            unread = end
    room[end:] = 0
    drop_pages()
