"""Recognises attention: a product of matrices, a softmax of its rows, and the product that takes these, as four reductions.

    S[b, i, j] += Q(b, i, d) * K(b, j, d)                              scores
    M[b, i]     = max(M[b, i], f(S[b, i, j]))                          the largest of a row, of scaled and masked scores
    L[b, i]    += exp(f(S[b, i, j]) - M[b, i])                         the sum of its exponentials
    O[b, i, c] += w(exp(f(S[b, i, j]) - M[b, i])) * V(b, j, c)         with w as x * (1 / L[b, i])
    Y[...]      = h(O[b, i, c])                                        an epilogue, if there is one

All other blocks have been inlined before, so that Q, K and V are formulas of one element of their inputs, f one of a score, its
row and its key, and w one of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from weft.ir import (
    ONE,
    TRUE,
    ZERO,
    Add,
    Apply,
    Const,
    Div,
    Expr,
    Max,
    Mul,
    Node,
    Select,
    Sub,
    Var,
    free_vars,
    map_nodes,
    post_order,
    substitute,
)
from weft.loop import Axis, AxisKind, Block, Buffer, Function, Load, Store, loads
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import blocks_in, plain_store
from weft.support.dtypes import f32

PARTS: Final = ("scores", "largest", "total", "sums")
"""The reductions, in their order."""

EXPONENTIALS: Final = ("exp", "exp_flushed")
"""The functions that make weights of scores."""

SOFTMAX: Final = "only the softmax of a product's rows, multiplied by values, will do"
REDUCTIONS: Final = "its reductions are sums and a maximum of float32 along one axis each, with all else inlined"
EPILOGUE: Final = "only a block that computes each element from one of the result may follow"


@dataclass(frozen=True)
class Attention:
    """An attention in terms of variables of its own: those of the *batch*, a *row*, a *key*, a term's *depth*, and a *column*.

    *extents* are theirs. *score* is a formula of *product*, a sum of products; *result*, which is stored at *indices* of
    *target*, one of *weighted*, the sum of the values each times its exponential, and of *total*, that of the exponentials.
    """

    batch: tuple[Var, ...]
    row: Var
    key: Var
    depth: Var
    column: Var
    extents: Mapping[Var, Expr]
    query: Expr
    keys: Expr
    values: Expr
    product: Var
    score: Expr
    weighted: Var
    total: Var
    result: Expr
    target: Buffer
    indices: tuple[Expr, ...]


def attention_of(fn: Function) -> Attention:
    """Returns the attention that *fn* computes, and that alone; refuses any other program."""
    blocks = blocks_in(fn.body)
    if len(blocks) not in (len(PARTS), len(PARTS) + 1):
        refuse(f"{fn.name} has {len(blocks)} blocks, not those of an attention", hint="inline all other blocks first")
    rank = len(plain_store(blocks[0]).indices)
    if rank < 2:
        refuse(f"{blocks[0].name} is not a product of matrices", blocks[0], "name the block of the scores")
    return _Reader(blocks, rank).attention()


class _Reader:
    """Reads the blocks in their order; each one's axes are replaced by the variables of the attention."""

    def __init__(self, blocks: Sequence[Block], rank: int) -> None:
        self.blocks = blocks
        self.batch = tuple([Var(f"b{d}") for d in range(rank - 2)])
        self.row, self.key, self.depth, self.column, self.kept = map(Var, ("row", "key", "depth", "column", "kept"))
        self.extents: dict[Var, Expr] = {self.kept: ONE}

    def attention(self) -> Attention:
        """Returns the attention that the blocks form."""
        scores, largest, total, sums = self.blocks[:4]
        query, keys = self._factors(scores, self.depth, self.key, lambda a, b: self.row not in free_vars(b))
        of_score, of_row = self._element(scores, self.key), partial(self._element, last=self.kept)
        score = self._term(largest, "max", self.kept, self.key)
        power = self._term(total, "+", self.kept, self.key)
        if (
            not isinstance(power, Apply)
            or power.fn not in EXPONENTIALS
            or power.args[0] is not Sub(score, of_row(largest))
        ):
            refuse(
                f"{total.name} is not a sum of exponentials, each of a score less the largest of its row",
                total,
                SOFTMAX,
            )
        weight, values = self._factors(sums, self.key, self.column, lambda a, _: is_of_row(a, power, self.key))
        target, indices, last = self._stored(self._element(sums, self.column))
        product, weighted, summed = (Var(n, f32) for n in ("product", "weighted", "total"))
        weight = replaced(weight, {power: weighted, of_row(total): summed})
        made = {
            "query": query,
            "keys": keys,
            "values": values,
            "score": replaced(score, {of_score: product}),
            "result": replaced(last, {self._element(sums, self.column): weight}),
        }
        self._check_apart(made.values())
        return Attention(
            self.batch,
            self.row,
            self.key,
            self.depth,
            self.column,
            self.extents,
            product=product,
            weighted=weighted,
            total=summed,
            target=target,
            indices=indices,
            **made,
        )

    def _at(self, v: Var) -> Expr:
        return ZERO if self.extents[v] is ONE else v

    def _element(self, block: Block, last: Var) -> Load:
        """Returns the element of the result of *block* at the variables of the attention."""
        where = [self._at(v) for v in (*self.batch, self.row, last)]
        return Load(plain_store(block).buffer, tuple(where))

    def _know(self, block: Block, axis: Axis, v: Var) -> None:
        if self.extents.setdefault(v, axis.extent) is not axis.extent:
            refuse(f"{block.name} goes along {axis.extent} elements, others along {self.extents[v]}", block, REDUCTIONS)

    def _axes(self, block: Block, last: Var, reduced: Var) -> dict[Var, Expr]:
        """Returns the values of the axes of *block*: one along each dimension of its result, and one that it reduces."""
        spatial = [a for a in block.axes if a.kind is AxisKind.SPATIAL]
        axes = [*spatial, *[a for a in block.axes if a.kind is AxisKind.REDUCE]]
        own = [*self.batch, self.row, last, reduced]
        in_order = plain_store(block).indices == tuple([a.var for a in spatial])
        if not len(block.axes) == len(axes) == len(own) or not in_order or block.predicate is not TRUE:
            refuse(f"{block.name} is no reduction over one axis for each element of its result", block, REDUCTIONS)
        for a, v in zip(axes, own, strict=True):
            self._know(block, a, v)
        return {a.var: self._at(v) for a, v in zip(axes, own, strict=True)}

    def _term(self, block: Block, op: Literal["+", "max"], last: Var, reduced: Var) -> Expr:
        """Returns the term that *block* combines by *op*, for each row and *last*, the index of its last dimension."""
        axes, written = self._axes(block, last, reduced), plain_store(block)
        start = block.init.value if isinstance(block.init, Store) else None
        starts = isinstance(start, Const) and start.value == (0.0 if op == "+" else float("-inf"))
        combined, so_far = written.value, Load(written.buffer, written.indices)
        operands = _operands(combined, op)
        if not operands or operands[0] is not so_far or not starts or combined.dtype is not f32:
            refuse(f"{block.name} does not combine values of float32 by {op}", block, REDUCTIONS)
        return substitute(operands[1], axes)

    def _factors(
        self, block: Block, reduced: Var, last: Var, is_first: Callable[[Expr, Expr], bool]
    ) -> tuple[Expr, Expr]:
        """Returns the factors of a product of matrices, that of a row first, which *is_first* tells."""
        term = self._term(block, "+", last, reduced)
        for a, b in ((term.a, term.b), (term.b, term.a)) if isinstance(term, Mul) else ():
            if last not in free_vars(a) and self.row not in free_vars(b) and is_first(a, b):
                return a, b
        return refuse(f"{block.name} is not a product of matrices, of rows by what they share", block, SOFTMAX)

    def _stored(self, own: Load) -> tuple[Buffer, tuple[Expr, ...], Expr]:
        """Returns the store of an element of the result as buffer, indices and value: *own*, or an epilogue's value of it."""
        if len(self.blocks) == len(PARTS):
            return own.buffer, own.indices, own
        block = self.blocks[-1]
        written = plain_store(block)
        read = [x for x in loads(written.value) if x.buffer is own.buffer]
        axes = self._axes_of_epilogue(block, read[0]) if len(read) == 1 else {}
        if set(written.indices) != set(axes) or substitute(read[0], axes) is not own:
            refuse(f"{block.name} does not read each element once", block, EPILOGUE)
        return written.buffer, tuple([substitute(i, axes) for i in written.indices]), substitute(written.value, axes)

    def _axes_of_epilogue(self, block: Block, read: Load) -> dict[Var, Expr]:
        """Returns the values of the axes of *block* by the dimensions of the result that they index."""
        names = dict(zip(read.indices, (*self.batch, self.row, self.column), strict=True))
        axes: dict[Var, Expr] = {}
        for a in block.axes:
            if a.kind is not AxisKind.SPATIAL or (a.var not in names and a.extent is not ONE):
                refuse(f"{block.name} is not computed element by element", block, EPILOGUE)
            if a.var in names:
                self._know(block, a, names[a.var])
            axes[a.var] = self._at(names[a.var]) if a.var in names else ZERO
        return axes

    def _check_apart(self, formulas: Iterable[Expr]) -> None:
        """Refuses formulas that read, of results, other elements than those of their own row and key."""
        made = {plain_store(b).buffer: b for b in self.blocks}
        for x in [x for e in formulas for x in loads(e)]:
            if x.buffer in made:
                refuse(f"{x.buffer.name} is read elsewhere, too", made[x.buffer], SOFTMAX)


def _operands(e: Expr, op: str) -> tuple[Expr, ...]:
    """Returns the operands of a sum or a maximum, whichever NaNs this leaves; none of another expression."""
    if isinstance(e, Apply):
        return e.args if op == "max" and e.fn == "max_number" else ()
    return (e.a, e.b) if isinstance(e, Add | Max) and e.symbol == op else ()


def scaled_score(found: Attention) -> tuple[Expr, float | None]:
    """Returns the product and a positive factor, where a score is one times the other; else the score, which may be infinite."""
    score, scale = found.score, 1.0
    while isinstance(score, Mul) and isinstance(score.b, Const) and float(score.b.value) > 0:
        scale, score = scale * float(score.b.value), score.a
    return (score, scale) if score is found.product else (found.score, None)


def replaced(e: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """Returns *e* with the expressions that are keys of *values* replaced."""
    memo: dict[Node, Node] = {k: v for k, v in values.items()}  # noqa: C416  (widens the types)
    return map_nodes(e, None, memo=memo)


def is_of_row(weight: Expr, power: Expr, key: Var) -> bool:
    """Tells whether *weight* is *power* times factors, and under conditions for zero, that are the same for all keys of a row."""
    match weight:
        case _ if weight is power:
            return True
        case Mul(a, b) if power in set(post_order(b)):
            return key not in free_vars(a) and is_of_row(b, power, key)
        case Mul(a, b) | Div(a, b):
            return key not in free_vars(b) and is_of_row(a, power, key)
        case Select(cond, then, other):
            zero, rest = (then, other) if isinstance(then, Const) else (other, then)
            is_zero = isinstance(zero, Const) and zero.value == 0
            return is_zero and key not in free_vars(cond) and is_of_row(rest, power, key)
    return False
