"""The loops of an attention whose products are fragments: the threads of each warp multiply matrices of 16-bit floats together.

A warp has 16 rows, and a thread two of them, with the keys and the columns that `targets.instructions.nvidia` gives it.
Queries, keys, values and weights are in shared memory in the type of the model; a weight is at most one, rounded as the model's
softmax would be. Sums, and all that is known of a row, are float32. Values are laid out by columns: an instruction takes those
of two keys at once.
"""

from __future__ import annotations

from dataclasses import replace

from weft.cost import AttentionTile, size_of
from weft.ir import ONE, Cast, Const, Expr, Mul, Var, const, index, substitute
from weft.loop import Address, Buffer, Call, Load, LoopKind, Stmt, for_, seq
from weft.schedule.legality.attention_form import Attention
from weft.schedule.rewriting.attention_loops import AttentionLoops, Threads
from weft.schedule.rewriting.loops_of_threads import moves_last
from weft.support.dtypes import DType, bf16, f16, f32
from weft.targets.instructions import FRAGMENT, FRAGMENT_INSTRUCTIONS


def narrow_attention(found: Attention) -> Attention | None:
    """Returns the same attention with factors as they are in memory, in 16 bits, and their scales in the score.

    None where they are of other types, or are computed.
    """
    parts = [_element(e) for e in (found.query, found.keys, found.values)]
    factors = [p[0] for p in parts if p is not None]
    types = {x.dtype for x in factors}
    if len(factors) != len(parts) or len(types) != 1 or types.isdisjoint({f16, bf16}):
        return None
    scales = [p[1] for p in parts if p is not None]
    if scales[-1] != 1.0:
        return None
    query, keys, values = factors
    scaled = found.product * const(scales[0] * scales[1], f32)
    score = substitute(found.score, {found.product: scaled})
    return replace(found, query=query, keys=keys, values=values, score=score)


def _element(e: Expr) -> tuple[Load, float] | None:
    """Returns the element of 16 bits that *e* is, converted and times a constant, and that constant."""
    scale = 1.0
    while isinstance(e, Mul) and isinstance(e.b, Const):
        scale, e = scale * float(e.b.value), e.a
    return (e.a, scale) if isinstance(e, Cast) and isinstance(e.a, Load) else None


def has_fragments(found: Attention, tile: AttentionTile) -> bool:
    """Tells whether a thread has the rows of a fragment, and depth, columns and keys are whole ones."""
    shape = (tile.y, tile.x, tile.rows, tile.keys % FRAGMENT.pairs)
    depth, columns = (size_of(found.extents[v]) for v in (found.depth, found.column))
    rest = depth % FRAGMENT.depth + tile.width % FRAGMENT.depth + columns % FRAGMENT.columns
    return shape == (FRAGMENT.groups, FRAGMENT.quads, FRAGMENT.halves, 0) and rest == 0


class FragmentLoops(AttentionLoops):
    """Builds the loops of an attention that `narrow_attention` made, for a tile of warps."""

    def __init__(self, found: Attention, tile: AttentionTile) -> None:
        self.element: DType = found.query.dtype
        super().__init__(found, tile)

    def make_shared(self) -> None:
        """Makes matrices whose rows begin in different banks for the threads of a warp."""
        tile, gap = self.tile, FRAGMENT.quads
        self.query = self.shared("query", tile.height, self.depth, self.depth + gap)
        self.keys = self.shared("keys", tile.width, self.depth, self.depth + gap)
        self.values = self.shared("values", self.columns, tile.width, tile.width + gap)
        self.weights = self.shared("weights", tile.height, tile.width, tile.width + gap)
        self.partial = Buffer("partial", (tile.height, tile.x), f32, "shared")

    def registers(self, name: str, count: int) -> Buffer:
        """Returns the registers of fragments: two of each thread's rows by a pair of columns are side by side."""
        shape = (*self.extents, count // FRAGMENT.pairs, FRAGMENT.halves, FRAGMENT.pairs)
        return Buffer(name, shape, f32, "register")

    def register(self, buffer: Buffer, t: Threads, r: Expr, k: Expr) -> tuple[Expr, ...]:
        """Returns where number *k* of a thread's row is."""
        pairs = index(FRAGMENT.pairs)
        return (*t, k // pairs, r, k % pairs)

    def row(self, t: Threads, r: Expr) -> Expr:
        """Returns which row of its block is a thread's row number *r*."""
        return (t[0] * index(FRAGMENT.groups) + t[1]) * index(FRAGMENT.halves) + r

    def key(self, t: Threads, k: Expr) -> Expr:
        """Returns the index, among the keys that its block takes at once, of a thread's key number *k*."""
        pairs = index(FRAGMENT.pairs)
        return (k // pairs * index(FRAGMENT.quads) + t[-1]) * pairs + k % pairs

    def column(self, t: Threads, c: Expr) -> Expr:
        """Returns which column is a thread's column number *c*."""
        return self.key(t, c)

    def product(self, t: Threads) -> Stmt:
        """Adds the products of a warp's rows and keys to its scores."""
        return self._multiply(self.scores, self.query, self.keys, self.depth, t)

    def weighted(self, t: Threads) -> Stmt:
        """Adds the values of the keys, each times its weight, to a warp's sums."""
        return self._multiply(self.sums, self.weights, self.values, self.tile.width, t)

    def fetch_values(self) -> Stmt:
        """Fetches the values of the keys of a step, by columns."""
        is_by_keys = moves_last(self.found.values, self.found.key)
        return self.fetch(self.values, lambda c, k: self.value(k, c), along=not is_by_keys)

    def _multiply(self, to: Buffer, left: Buffer, right: Buffer, terms: int, t: Threads) -> Stmt:
        """Multiplies the rows of *left* by those of *right*, in which terms are side by side."""
        step, n = Var("step"), Var("n")
        term, zero = step * index(FRAGMENT.depth), index(0)
        strides = [_row_stride(left), ONE, ONE, _row_stride(right)]
        call = Call(
            FRAGMENT_INSTRUCTIONS[self.element],
            (
                Address(to, (*t, n, zero, zero)),
                Address(left, (self.row(t, zero), term)),
                Address(right, (self.key(t, n * index(FRAGMENT.pairs)), term)),
                index(FRAGMENT.pairs),
                *strides,
            ),
        )
        each = for_(n, to.shape[len(t)], seq(call), LoopKind.UNROLLED)
        return for_(step, terms // FRAGMENT.depth, each, LoopKind.UNROLLED)


def _row_stride(matrix: Buffer) -> Expr:
    return matrix.row_major_strides()[0]
