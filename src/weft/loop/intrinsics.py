"""The callees that every target knows: prefetches, copies, tokens and barriers, which have effects but compute no value.

And *host operators*, which are no loop nests: C of the runtime, which generated code calls through the context by a number.

    call("weft.string_concat", pool.at(0), 64, a.at(0), n, b.at(0), out.at(0))

`native/hostops` has them, in the same order. Their strings are numbers, *ids*: equal ids for equal strings, so that loops move
and compare them as the integers they are. The first arguments of those on strings are the pool, which is the constant with the
strings that the model knows (`native/hostops/string_table.h`), its bytes, the elements that are computed with, and their
number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.ir import Add, Expr, Max, Min, Mul, index
from weft.loop.buffer import Buffer
from weft.loop.nodes import Address, Call, Load, Store

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
"""Called by all threads of a block: none goes on before all are there, and each then sees the writes of the others."""

WARP_BARRIER: Final = "weft.barrier.warp"
"""The same for the threads of a warp. One that orders accesses of one buffer in warp memory alone is called with its address."""

WARP_SHUFFLE: Final = "weft.shuffle.warp"
"""Called by all threads of a warp with two addresses in memory of a thread, where to write and where to read, and the number of a
thread of the warp: each writes the element that the thread of that number has where it reads."""

ATOMICS: Final = {
    f"weft.atomic.{word}": update for word, update in (("add", Add), ("mul", Mul), ("min", Min), ("max", Max))
}
"""Called with the address of an element and a value, with which an operation combines the element: threads may update one element
at once, and none of their updates is lost. By the callee, the operation."""

ASYNC_COPY: Final = "weft.copy.async"
"""Called with two addresses, where to write and where to read, a number of elements that are copied while the thread goes on, and
a condition: where it does not hold, nothing is read, and zeros are written. The destination is undefined until the thread waits
for it, and others see it after a barrier behind that."""

ASYNC_COMMIT: Final = "weft.copy.commit"
"""Called by all threads of a block: the copies that a thread has begun since the last such call are a group."""

ASYNC_WAIT: Final = "weft.copy.wait"
"""Called by all threads of a block with a number of groups, of which each thread waits for all but so many of the last, and with
addresses of the memory that the copies have then written: of one index along the first dimension, and any along the others."""


def prefetch(buffer: Buffer, at: Expr, level: int = 1) -> Call:
    """Returns the statement that asks for the element *at* of the flat *buffer*, to be brought into *level* of the caches."""
    return Call(PREFETCH, (Address(buffer, (at,)), index(level)))


def updating_store(call: Call) -> Store:
    """Returns an atomic update as the store that it is to a single thread."""
    at, value = call.args
    assert isinstance(at, Address)
    return Store(at.buffer, at.indices, ATOMICS[call.callee](Load(at.buffer, at.indices), value), None)


def copy(to: Buffer, at: Expr, source: Buffer, begin: Expr, count: Expr) -> Call:
    """Returns the statement that copies *count* elements of the flat *source* from *begin* on to the flat *to* from *at* on."""
    return Call(COPY, (Address(to, (at,)), Address(source, (begin,)), count))


@dataclass(frozen=True)
class HostOperator:
    """The name of a callee, and the numbers of the arguments whose memory it reads and writes."""

    number: int
    reads: frozenset[int]
    writes: frozenset[int]


def _on_strings(reads: tuple[int, ...], writes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (0, 2, *reads), writes


def _numbered(**rows: tuple[tuple[int, ...], tuple[int, ...]]) -> dict[str, HostOperator]:
    return {
        f"weft.{name}": HostOperator(k, frozenset(reads), frozenset(writes))
        for k, (name, (reads, writes)) in enumerate(rows.items())
    }


HOST_OPERATORS: Final = _numbered(
    strings_take=_on_strings((), (4,)),  # addresses of a caller's strings -> ids
    strings_give=_on_strings((), (4,)),  # ids -> addresses of strings, which the context has
    string_concat=_on_strings((4,), (5,)),  # ids, others -> ids
    # id of the delimiter, most splits (-1: all), width -> ids of parts; of width -1: their number
    string_split=_on_strings((), (7,)),
    string_case=_on_strings((), (5,)),  # 1: upper, 0: lower; 2 more: letters of ASCII alone -> ids
    string_match=_on_strings((4,), (6,)),  # program of a regular expression, its words -> bools
    string_format=_on_strings((), (5,)),  # code of the numbers' type -> ids
    string_parse=_on_strings(
        (), (5, 6)
    ),  # code of the type -> numbers, and the first element that is none, counted from 1
    fresh_seed=((), (0,)),  # -> the next of the process's seeds
    # programs, their words, and six numbers that `native/hostops/string_table.h` names -> ids of tokens, or their number
    string_tokens=_on_strings((4,), (12,)),
    string_hash=_on_strings((), (7,)),  # 1: by a key, 0: without; its halves -> hashes of 64 bits
    # program, its words, id of what takes a match's place, 1: of all matches, 0: of the first -> ids
    string_replace=_on_strings((4,), (8,)),
)
"""Operators that the host computes, by the name of the callee."""
