"""The effects of callees, declared once: the memory that they read and write, the threads that they synchronise, tokens.

    effects_of(prefetch(A, at))             nothing: a hint
    effects_of(Call("weft.barrier", ()))    all threads of a block wait
    effects_of(Call("someone.else", ...))   undeclared: it may do anything, and nothing may move across it

A target declares its tensor instructions (`targets.instructions`). A function of the program counts as undeclared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from weft.loop.buffer import Buffer
from weft.loop.intrinsics import (
    ASYNC_COMMIT,
    ASYNC_COPY,
    ASYNC_WAIT,
    ATOMICS,
    BARRIER,
    COPY,
    HOST_OPERATORS,
    POP_TOKEN,
    PREFETCH,
    PUSH_TOKEN,
    WARP_BARRIER,
    WARP_SHUFFLE,
)
from weft.loop.nodes import Address, Call, Stmt, Store
from weft.loop.visit import statements


class Waits(StrEnum):
    """Which threads wait for one another at a barrier."""

    BLOCK = "block"
    WARP = "warp"


class Token(StrEnum):
    """Whether a call puts a token into the queue between two units, whose numbers are its arguments, or takes one out."""

    PUSH = "push"
    POP = "pop"


class AsyncStep(StrEnum):
    """The effect of a call on asynchronous copies: it begins one, commits a group of them, or waits for groups."""

    COPY = "copy"
    COMMIT = "commit"
    WAIT = "wait"


@dataclass(frozen=True)
class Effects:
    """The effects of a call; *reads* and *writes* are the numbers of the arguments whose memory it reads and writes."""

    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    barrier: Waits | None = None
    token: Token | None = None
    step: AsyncStep | None = None

    @property
    def orders(self) -> bool:
        """Whether no access of memory may move across the call."""
        return self.barrier is not None or self.token is not None or self.step is not None

    @property
    def is_hint(self) -> bool:
        """Whether the call has no observable effect."""
        return not (self.reads or self.writes or self.orders)


MOST_AWAITED: Final = 8
"""The most addresses that a thread waits for at once."""

_DECLARED: Final[dict[str, Effects | Callable[[], Effects]]] = {
    PREFETCH: Effects(),
    COPY: Effects(reads=frozenset({1}), writes=frozenset({0})),
    BARRIER: Effects(barrier=Waits.BLOCK),
    WARP_BARRIER: Effects(barrier=Waits.WARP),
    WARP_SHUFFLE: Effects(reads=frozenset({1}), writes=frozenset({0}), barrier=Waits.WARP),
    ASYNC_COPY: Effects(reads=frozenset({1}), writes=frozenset({0}), step=AsyncStep.COPY),
    ASYNC_COMMIT: Effects(step=AsyncStep.COMMIT),
    ASYNC_WAIT: Effects(writes=frozenset(range(1, MOST_AWAITED + 1)), step=AsyncStep.WAIT),
    **dict.fromkeys(ATOMICS, Effects(reads=frozenset({0}), writes=frozenset({0}))),
    PUSH_TOKEN: Effects(token=Token.PUSH),
    POP_TOKEN: Effects(token=Token.POP),
    **{name: Effects(h.reads, h.writes) for name, h in HOST_OPERATORS.items()},
}


def declare_effects(callee: str, effects: Callable[[], Effects]) -> None:
    """Declares the effects of a callee; *effects* is called when they are first asked for."""
    _DECLARED[callee] = effects


def effects_of(call: Call) -> Effects | None:
    """Returns the effects of *call*; None where they are not declared: it may do anything."""
    found = _DECLARED.get(call.callee)
    if found is None or isinstance(found, Effects):
        return found
    made = _DECLARED[call.callee] = found()
    return made


def is_hint(s: Stmt) -> bool:
    """Answers whether *s* is a call without observable effect."""
    known = effects_of(s) if isinstance(s, Call) else None
    return known is not None and known.is_hint


def addresses_touched(call: Call) -> tuple[list[Address], list[Address]]:
    """Returns the addresses through which *call* reads and writes; of an undeclared one, all of its address arguments."""
    known, given = effects_of(call), [(n, a) for n, a in enumerate(call.args) if isinstance(a, Address)]
    read = [a for n, a in given if known is None or n in known.reads]
    return read, [a for n, a in given if known is None or n in known.writes]


def may_write(root: Stmt, buffers: Collection[Buffer]) -> bool:
    """Answers whether *root* may write to one of *buffers*: by a store, or a call that writes it or is undeclared."""
    for s in statements(root) if buffers else ():
        if isinstance(s, Store) and s.buffer in buffers:
            return True
        if isinstance(s, Call):
            known = effects_of(s)
            if known is None or known.orders or any(a.buffer in buffers for a in addresses_touched(s)[1]):
                return True
    return False
