"""The callees that every target knows: prefetches, copies, tokens and barriers, which have effects but compute no value."""

from __future__ import annotations

from typing import Final

from weft.ir import Expr, index
from weft.loop.buffer import Buffer
from weft.loop.nodes import Address, Call

PREFETCH: Final = "weft.prefetch"
"""Called with the address of an element that will be read, which may lie outside of its buffer, and the level of cache, counted
from 1, that it is to be brought into: the first for an element that is read soon."""

COPY: Final = "weft.copy"
"""Called with two addresses, where to write and where to read, in buffers of one type, and a number of elements, which may not
overlap. The buffers may be in different memory spaces (see `host_program`)."""

PUSH_TOKEN: Final = "weft.push_token"
"""Called with the numbers of two units of the target: when the first has run all of its instructions before, it puts a token into
the queue from the first to the second."""

POP_TOKEN: Final = "weft.pop_token"
"""Called with the numbers of two units of the target: the second takes a token out of the queue from the first to the second
before it runs any of its instructions after; it waits while the queue is empty."""

BARRIER: Final = "weft.barrier"
"""Called by all threads of a block: none goes on before all are there, and each then sees what the others wrote."""

WARP_BARRIER: Final = "weft.barrier.warp"
"""The same for the threads of a warp."""


def prefetch(buffer: Buffer, at: Expr, level: int = 1) -> Call:
    """Returns the statement that asks for the element *at* of the flat *buffer*, to be brought into *level* of the caches."""
    return Call(PREFETCH, (Address(buffer, (at,)), index(level)))


def copy(to: Buffer, at: Expr, source: Buffer, begin: Expr, count: Expr) -> Call:
    """Returns the statement that copies *count* elements of the flat *source* from *begin* on to the flat *to* from *at* on."""
    return Call(COPY, (Address(to, (at,)), Address(source, (begin,)), count))
