"""Where windows of gathers and scatters lie: the dimension numbers, and the index of each element of a window.

A window begins at a tuple of indices, one for each indexed dimension. Dimensions that it has in whole are left as they are; for
all others each element gets an index tuple of its own, so that Weft's gathers and scatters of tuples serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.movement import counted, spread
from weft.graph.builder import Operand
from weft.graph.composites.sequences import concat
from weft.ir import Expr
from weft.support.dtypes import i64


@dataclass(frozen=True)
class Windows:
    """Windows of *sizes* in a tensor.

    `inner` are the dimensions of the gathered tensor (or the updates) that a window has, `dropped` those of the operand that it
    does not have, as their size is one; `indexed` the operand's dimensions that a tuple has indices of, `batch` those in common
    with the dimensions `index_batch` of the indices, and `index_dim` is where tuples lie.
    """

    sizes: Sequence[int | Expr]
    inner: list[int]
    dropped: list[int]
    indexed: list[int]
    batch: list[int]
    index_batch: list[int]
    index_dim: int

    def whole(self, shape: Sequence[int | Expr]) -> list[int]:
        """Returns the dimensions of an operand of *shape* that windows have in whole, and no tuple has an index of."""
        used = {*self.indexed, *self.batch}
        return [d for d, s in enumerate(shape) if d not in used and self.sizes[d] == s and d not in self.dropped]

    def kept(self) -> list[int]:
        """Returns the operand's dimensions that a window has, in the order of `inner`."""
        return [d for d in range(len(self.sizes)) if d not in self.dropped and d not in self.batch]


def check(c: Call, w: Windows, x: Operand, indices: Operand, rank: int) -> None:
    """Raises `ModelError` for dimension numbers that do not fit the operand, the indices or a result of *rank* dimensions."""
    of_x = [*w.dropped, *w.batch]
    lists = [(of_x, x.rank), (w.indexed, x.rank), (w.inner, rank), (w.index_batch, indices.rank)]
    fits = all(len(set(v)) == len(v) and all(0 <= d < n for d in v) for v, n in lists)
    depth = (
        1 if w.index_dim == indices.rank else c.extents(indices)[w.index_dim] if 0 <= w.index_dim < indices.rank else -1
    )
    fits = fits and len(w.sizes) == x.rank and len(w.kept()) == len(w.inner) and len(w.batch) == len(w.index_batch)
    fits = fits and depth == len(w.indexed) and fit(w.sizes, c.extents(x))
    if not fits:
        c.fail(f"its dimension numbers are not those of {x!r} and {indices!r}", AGAIN)


def fit(sizes: Sequence[int | Expr], extents: Sequence[int | Expr]) -> bool:
    """Tells whether windows may lie in a tensor: no size that is a number is larger than its extent, if that is one."""
    pairs = zip(sizes, extents, strict=False)
    return all(0 <= n <= s for n, s in pairs if isinstance(n, int) and isinstance(s, int))


def starts(c: Call, w: Windows, indices: Operand) -> tuple[list[Operand], list[int | Expr]]:
    """Returns the first index of each window along each of `indexed`, then of `batch`, and the shape that they have."""
    if w.index_dim == indices.rank:
        indices = c.reshape(indices, [*indices.shape, 1])
    last = c.transpose(indices, [*[d for d in range(indices.rank) if d != w.index_dim], w.index_dim])
    last = c.cast(last, i64)
    shape = c.extents(last)[:-1]
    made = [_column(c, last, k, shape) for k in range(len(w.indexed))]
    places = [d - (d > w.index_dim) for d in w.index_batch]
    made += [spread(c, counted(c, shape[p], i64), [p], shape) for p in places]
    return made, shape


def _column(c: Call, x: Operand, k: int, shape: Sequence[int | Expr]) -> Operand:
    piece = c.add("slice", x, starts=(k,), ends=(k + 1,), axes=(x.rank - 1,), steps=(1,))
    return c.reshape(piece, shape)


def tuples(
    c: Call, w: Windows, firsts: Sequence[Operand], shape: Sequence[int | Expr], operand: Sequence[int | Expr]
) -> tuple[list[Operand], list[int], list[int]]:
    """Returns the indices of all elements of windows along the dimensions that are not whole, and their shape.

    They are in the order `indexed`, `batch`, others; and the dimensions of windows that the shape has after those of *firsts*.
    """
    whole = w.whole(operand)
    partly = [d for d in w.kept() if d not in whole]
    full = [*shape, *[w.sizes[d] for d in partly]]
    named = [*w.indexed, *w.batch, *[d for d in range(len(operand)) if d not in {*w.indexed, *w.batch, *whole}]]
    made: list[Operand] = []
    for n, d in enumerate(named):
        at = spread(c, firsts[n], list(range(len(shape))), full) if n < len(firsts) else None
        if d in partly:
            steps = spread(c, counted(c, w.sizes[d], i64), [len(shape) + partly.index(d)], full)
            at = steps if at is None else c.add("add", at, steps)
        made.append(at if at is not None else c.add("full", shape=tuple(full), value=0, dtype=i64))
    return made, named, partly


def stacked(c: Call, columns: Sequence[Operand]) -> Operand:
    """Returns indices as tuples in a new last dimension."""
    return concat(c, [c.reshape(v, [*v.shape, 1]) for v in columns], columns[0].rank)
