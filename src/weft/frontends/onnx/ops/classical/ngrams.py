"""Counts of n-grams: sequences of tokens that are in a pool, with any number of tokens between each two of them up to a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.file.tensors import MOST_DENSE
from weft.frontends.onnx.model_node import DAMAGED
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant, static_sizes
from weft.graph.composites.sequences import concat
from weft.ir import INDEX, Const, Expr, as_expr
from weft.support.dtypes import f32, i64

Gram: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Pool:
    """N-grams with the columns of the result that count them; *tokens* are all that are in them, in ascending order."""

    tokens: tuple[int, ...]
    columns: Mapping[Gram, int]

    @property
    def radix(self) -> int:
        """The factor of a prefix in the number of an n-gram: one more than there are tokens."""
        return len(self.tokens) + 1


_MOST_SKIPPED: Final = 64
"""Tokens between those of an n-gram in sequences of symbolic length; in others there are at most as many as they have."""


@translates("TfIdfVectorizer", limits="more than 64 tokens between those of an n-gram, in sequences of symbolic length")
def tfidf_vectorizer(c: Call) -> Results:
    """How often each n-gram of a pool is in each row, times a weight: a trie whose levels are sorted vectors of keys."""
    x, mode = c.input(0), c.text("mode", "TF")
    if mode not in ("TF", "IDF", "TFIDF") or x.rank not in (1, 2):
        c.fail(
            f"its attribute 'mode' is {mode!r}, and its input {x!r}", "use 'TF', 'IDF' or 'TFIDF' on a vector or rows"
        )
    rows = x if x.rank == 2 else c.reshape(x, (1, *x.shape))
    pool = _pool(c)
    columns = c.ints("ngram_indexes") or [0]
    size = max(columns) + 1
    if min(columns) < 0 or size * f32.bytes > MOST_DENSE:
        c.fail(f"its ngram_indexes reach from {min(columns)} to {size - 1}", DAMAGED)
    found = concat(c, [*_columns(c, pool, c.cast(rows, i64), size), _none(c, rows, size)], 1)
    zeros = c.add("full", shape=(rows.shape[0], size + 1), value=0, dtype=f32)
    ones = c.add("full", shape=found.shape, value=1, dtype=f32)
    counts = c.add("scatter_elements", zeros, found, ones, axis=1, reduction="add")
    counts = c.add(
        "slice", counts, starts=(0,), ends=(size,), axes=(1,), steps=(1,)
    )  # the last column counts tokens in no n-gram
    y = _weighted(c, counts, mode, size)
    return y if x.rank == 2 else c.reshape(y, (size,))


def _pool(c: Call) -> Pool:
    """Returns the n-grams of the sizes that are counted; raises `ModelError` for a pool that its counts do not fit."""
    items, begins, columns = (c.ints(k) or [] for k in ("pool_int64s", "ngram_counts", "ngram_indexes"))
    least, most = c.integer("min_gram_length", 1), c.integer("max_gram_length", 1)
    grams, place = dict[Gram, int](), 0
    for n, (begin, end) in enumerate(zip(begins, [*begins[1:], len(items)], strict=False), 1):
        if not 0 <= begin <= end or (end - begin) % n or place + (end - begin) // n > len(columns):
            c.fail(
                f"its pool has elements {begin} to {end} for n-grams of {n}, and {len(columns)} ngram_indexes", UNFIT
            )
        for k in range(begin, end, n):
            if least <= n <= most:
                grams[tuple(items[k : k + n])] = columns[place]
            place += 1
    return Pool(tuple(sorted({t for g in grams for t in g})), grams)


def _none(c: Call, rows: Operand, size: int) -> Operand:
    """Returns a column in which no n-gram is counted, so that there is one at least."""
    return c.add("full", shape=(rows.shape[0], 1), value=size, dtype=i64)


def _columns(c: Call, pool: Pool, rows: Operand, size: int) -> list[Operand]:
    """Returns the columns in which windows of *rows* are counted, *size* for those that are no n-gram of the pool."""
    known = static_sizes(rows.shape[1:])
    least, most = c.integer("min_gram_length", 1), max(map(len, pool.columns), default=0)
    skipped = _skipped(c, known)
    if not pool.tokens:
        return []
    number = {t: k for k, t in enumerate(pool.tokens)}
    grams = {tuple([number[t] for t in g]): column for g, column in pool.columns.items()}
    tokens = _find(c, rows, pool.tokens)
    tokens = tokens if known else _extended(c, pool, tokens, (most - 1) * (skipped + 1))
    made: list[Operand] = []
    for step in range(1, skipped + 2):  # longer ones are in no row
        prefix, ids = tokens, dict[Gram, int]([((k,), k) for k in range(len(pool.tokens))])
        for n in range(1, most + 1):
            width = _windows(rows, known, (n - 1) * step)
            if isinstance(width, Const) and width.value < 1:
                break
            prefix = _part(c, prefix, 0, width)
            if n > 1:
                prefix, ids = _longer(c, pool, grams, (prefix, ids), _part(c, tokens, (n - 1) * step, width))
            if n >= least and (n > 1 or step == 1):  # n-grams of one token have none between
                made.append(_counted(c, grams, (prefix, ids), size))
    return made


def _windows(rows: Operand, known: Sequence[int] | None, reach: int) -> Expr:
    """Returns how many windows are counted, of tokens up to *reach* behind their first."""
    return rows.shape[1] if known is None else as_expr(known[0] - reach, INDEX)


def _counted(c: Call, grams: Mapping[Gram, int], found: tuple[Operand, Mapping[Gram, int]], size: int) -> Operand:
    """Returns the columns of the n-grams whose numbers are *found*, *size* for those that are none."""
    prefix, ids = found
    columns = [*[grams.get(gram, size) for gram in sorted(ids, key=ids.__getitem__)], size]
    return c.add("gather", CompileTimeConstant(np.asarray(columns, np.int64)), prefix, axis=0)


def _extended(c: Call, pool: Pool, tokens: Operand, count: int) -> Operand:
    """Returns rows with *count* numbers of no token behind their ends: windows that reach there are no n-grams."""
    none = c.add("full", shape=(tokens.shape[0], max(1, count)), value=len(pool.tokens), dtype=i64)
    return concat(c, [tokens, none], 1)


def _skipped(c: Call, known: Sequence[int] | None) -> int:
    """Returns how many tokens there are between those of an n-gram at most, in sequences whose length is *known* or symbolic."""
    skipped = c.integer("max_skip_count", 0)
    if known is None and skipped > _MOST_SKIPPED:
        c.fail("the length of its sequences is symbolic", 'give it a number: shapes={"x": (1, 16)}')
    return skipped if known is None else min(skipped, known[0])


def _longer(
    c: Call, pool: Pool, grams: Mapping[Gram, int], shorter: tuple[Operand, Mapping[Gram, int]], token: Operand
) -> tuple[Operand, dict[Gram, int]]:
    """Returns the numbers of prefixes that are one token longer, among those of n-grams, and which prefix each number is."""
    prefix, ids = shorter
    n = len(next(iter(ids), ())) + 1 if ids else 0
    keys = {g[:n]: ids[g[: n - 1]] * pool.radix + g[n - 1] for g in grams if len(g) >= n > 1}
    if not keys:  # no n-gram is that long: nothing is found
        none = c.add("mul", token, c.scalar(0, i64))
        return none, {}
    key = c.add("add", c.add("mul", prefix, c.scalar(pool.radix, i64)), token)
    order = sorted(keys, key=lambda g: keys[g])
    return _find(c, key, [keys[g] for g in order]), {g: k for k, g in enumerate(order)}


def _find(c: Call, x: Operand, keys: Sequence[int]) -> Operand:
    return c.add("find_sorted", x, CompileTimeConstant(np.asarray(keys, np.int64)))


def _part(c: Call, x: Operand, begin: int, width: Expr) -> Operand:
    return c.add("slice", x, starts=(begin,), ends=(width + begin,), axes=(1,), steps=(1,), inside=True)


def _weighted(c: Call, counts: Operand, mode: str, size: int) -> Operand:
    """Returns the counts (TF), the weights of those that occur (IDF), or their product (TFIDF)."""
    columns = c.ints("ngram_indexes") or []
    weights = c.attributes.get("weights") or [1.0] * len(columns)
    if len(weights) != len(columns):
        c.fail(f"it has {len(weights)} weights for {len(columns)} n-grams", UNFIT)
    if mode == "TF":
        return counts
    of_columns = np.ones(size, np.float32)
    of_columns[columns] = weights
    factors = CompileTimeConstant(of_columns)
    if mode == "TFIDF":
        return c.add("mul", counts, factors)
    return c.add("where", c.add("less", c.scalar(0, f32), counts), factors, c.scalar(0, f32))
