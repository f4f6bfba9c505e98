"""Unrolled loops in which a thread loads vectors of the device's memory, rounds them, and stores them to shared memory.

Their iterations are in batches, of which all loads may come before the first store, through registers:

    for i in unrolled(0, 8):                        v = alloc("register", bf16[64])
        S[ramp(8 * i, 1, 8)] = bf16x8(...)    ->    for i in unrolled(0, 8): v[ramp(8 * i, 1, 8)] = bf16x8(...)
                                                    for i in unrolled(0, 8): S[ramp(8 * i, 1, 8)] = v[ramp(8 * i, 1, 8)]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from weft.cost import BATCHED_FETCHES
from weft.ir import ONE, ZERO, Const, Expr, Ramp, index, substitute
from weft.loop import Buffer, For, Load, LoopKind, Stmt, Store, for_, loads, rename_fresh
from weft.support.dtypes import DType
from weft.targets import Sight, sight_of


@dataclass(frozen=True, eq=False)
class FetchNest:
    """Unrolled *loops*, one in another, from zero on, around a *store* of a vector."""

    loops: tuple[For, ...]
    store: Store

    @property
    def batched(self) -> int:
        """The iterations of the outermost loop in a batch, of at most `BATCHED_FETCHES` elements."""
        first, *others = self._extents
        most = max(1, BATCHED_FETCHES // (prod(others) * self._lanes))
        return max([n for n in range(1, first + 1) if first % n == 0 and n <= most])

    @property
    def batches(self) -> int:
        """The number of batches."""
        return self._extents[0] // self.batched

    def registers(self, dtype: DType) -> Buffer:
        """Returns registers for the elements of a batch."""
        return Buffer("fetched", (self.batched * prod(self._extents[1:]) * self._lanes,), dtype, "register")

    def load(self, registers: Buffer, batch: Expr, value: Expr) -> Stmt:
        """Returns the loops over a batch that put *value* in registers."""
        return self._over(Store(registers, self._at(), self._of_batch(batch, value), None))

    def put(self, registers: Buffer, batch: Expr, made: Callable[[Expr], Expr]) -> Stmt:
        """Returns the loops over a batch that store what is *made* of the registers."""
        value = made(Load(registers, self._at()))
        at = tuple([self._of_batch(batch, i) for i in self.store.indices])
        return self._over(Store(self.store.buffer, at, value, None))

    @property
    def _extents(self) -> list[int]:
        return [int(f.extent.value) for f in self.loops if isinstance(f.extent, Const)]

    @property
    def _lanes(self) -> int:
        return self.store.value.dtype.lanes

    def _at(self) -> tuple[Expr, ...]:
        """Returns the place of a vector in the registers of a batch."""
        place: Expr = ZERO
        for f, n in zip(self.loops, [self.batched, *self._extents[1:]], strict=True):
            place = place * index(n) + f.var
        return (Ramp(place * index(self._lanes), ONE, self._lanes),)

    def _of_batch(self, batch: Expr, e: Expr) -> Expr:
        first = self.loops[0].var
        return substitute(e, {first: batch * index(self.batched) + first})

    def _over(self, loop: Stmt) -> Stmt:
        for f, n in reversed(list(zip(self.loops, [self.batched, *self._extents[1:]], strict=True))):
            loop = for_(f.var, n, loop, LoopKind.UNROLLED)
        return rename_fresh(loop)


def fetch_nest(s: Stmt) -> FetchNest | None:
    """Returns *s* as a nest that fetches vectors, and rounds them; None where it is something else."""
    loops: list[For] = []
    while isinstance(s, For) and s.kind is LoopKind.UNROLLED and isinstance(s.extent, Const) and s.begin is ZERO:
        loops.append(s)
        s = s.body
    return FetchNest(tuple(loops), s) if loops and isinstance(s, Store) and _is_fetch(s) else None


def _is_fetch(s: Store) -> bool:
    """Tells whether a store rounds a vector of the device's memory, and puts it where all threads of a block see it."""
    if s.value.dtype.lanes == 1 or s.mask is not None or sight_of(s.buffer.scope) is not Sight.BLOCK:
        return False
    sources = [x.buffer for x in loads(s.value)]
    return any(sight_of(b.scope) is Sight.GRID and b.dtype is not s.buffer.dtype for b in sources)
