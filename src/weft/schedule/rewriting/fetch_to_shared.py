"""The cooperative fetch of a tile from global to shared memory by all threads of a block.

Neighbouring threads fetch neighbouring elements, or vectors where rows of words are whole ones. A vector that conditions select
is loaded to registers first, together with several others, and stored afterwards: a load in one branch with its store is
waited for before the next load is issued.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.cost import MOST_FETCHES, VECTOR_WORDS, size_of
from weft.ir import ZERO, Expr, Select, Var, index
from weft.loop import Alloc, Buffer, Load, Stmt, store
from weft.schedule.rewriting.loops_of_threads import (
    guarded,
    has_vectors,
    in_parts,
    in_phases,
    vector_load,
    vector_store,
)
from weft.support.dtypes import f32


@dataclass(frozen=True)
class Part:
    """A tile in the shared memory *to*: the *value* of each element, fetched by *threads*, along columns where *along*."""

    to: Buffer
    value: Callable[[Expr, Expr], Expr]
    threads: int
    along: bool = field(kw_only=True)

    @property
    def inner(self) -> int:
        """The elements that neighbouring threads fetch: those of a row, or of a column."""
        return size_of(self.to.shape[0 if self.along else 1])

    @property
    def lanes(self) -> int:
        """The elements of a vector that a thread fetches at once."""
        column = Var("c")
        is_vector = not self.along and self.inner % VECTOR_WORDS == 0 and self.to.dtype is f32
        return VECTOR_WORDS if is_vector and has_vectors(self.value(Var("r"), column), column) else 1

    @property
    def count(self) -> int:
        """The vectors, or elements, of the tile."""
        high, wide = map(size_of, self.to.shape)
        return high * wide // self.lanes


def fetch_part(part: Part, number: Expr, extents: Sequence[int], thread: Sequence[Expr]) -> Stmt:
    """Returns the fetches of one thread: *thread* is its indices in a block of *extents* threads, *number* those as one."""
    lanes, count, lane = part.lanes, part.count, Var("lane")
    most = -(-count // part.threads)

    def place(n: Expr) -> Expr:
        return n * index(part.threads) + number

    def at(n: Expr) -> tuple[Expr, Expr]:
        outer, last = place(n) // index(part.inner // lanes), place(n) % index(part.inner // lanes)
        return (last, outer) if part.along else (outer, last * index(lanes) + lane if lanes > 1 else last)

    def inside(n: Expr, body: Stmt) -> Stmt:
        return body if count % part.threads == 0 else guarded(place(n) < index(count), body)

    def one(n: Expr) -> Stmt:
        value = part.value(*at(n))
        return inside(
            n, vector_store(part.to, at(n), value, lane, lanes) if lanes > 1 else store(part.to, at(n), value)
        )

    if lanes == 1 or not isinstance(part.value(*at(ZERO)), Select):
        return in_parts(most, MOST_FETCHES, one)
    staged = Buffer("fetched", (*extents, min(most, MOST_FETCHES), lanes), f32, "register")

    def load(n: Expr, i: Expr) -> Stmt:
        return inside(n, vector_load(staged, (*thread, i), part.value(*at(n)), lane, lanes))

    def keep(n: Expr, i: Expr) -> Stmt:
        return inside(n, vector_store(part.to, at(n), Load(staged, (*thread, i, lane)), lane, lanes))

    return Alloc(staged, in_phases(most, MOST_FETCHES, load, keep))
