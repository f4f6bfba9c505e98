"""Rows looked up by keys, or summed by sparse indices, and numbers put into buckets."""

from __future__ import annotations

from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph.builder import Operand
from weft.support.dtypes import i32, i64, u8

_COMBINERS = ("SUM", "MEAN", "SQRTN")


@translates("HASHTABLE_LOOKUP")
def hashtable_lookup(c: LiteCall) -> tuple[Operand, ...]:
    """The rows of the keys that are asked for, which are in order; zeros for others, and a flag for each that was found."""
    asked, keys, values = c.tensor(0, 1), c.tensor(1, 1), c.tensor(2)
    place = c.cast(c.add("find_sorted", asked, keys), i64)
    count = c.cast(c.size(keys.shape[0]), i64)
    hit = c.add("less", place, count)
    rows = c.add("gather", values, c.add("where", hit, place, c.scalar(0, i64)), axis=0)
    kept = c.add("where", c.reshape(hit, [*hit.shape, *[1] * (values.rank - 1)]), rows, c.scalar(0, rows.dtype))
    return kept, c.cast(hit, u8)


@translates("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(c: LiteCall) -> Operand:
    """Weighted rows summed by sparse indices, perhaps divided by the weights' sum, or by the root of that of their squares."""
    ids, indices, weights, rows = c.tensor(0, 1), c.tensor(1, 2), c.tensor(3, 1), c.tensor(4)
    sizes = c.sizes(2, "the shape of the indices")
    number = c.integer("combiner")
    if not 0 <= number < len(_COMBINERS) or len(sizes) < 2:
        c.fail(f"there is no combiner {number} of {len(sizes)} dimensions", "convert the model again")
    shape = tuple(sizes[:-1])
    at = c.add("slice", indices, starts=(0,), ends=(len(shape),), axes=(1,), steps=(1,))
    by = c.reshape(weights, [*weights.shape, *[1] * (rows.rank - 1)])

    def summed(terms: Operand) -> Operand:
        zeros = c.add("full", shape=(*shape, *terms.shape[1:]), value=0, dtype=terms.dtype)
        return c.add("scatter_nd", zeros, at, terms, reduction="add")

    made = summed(c.add("mul", c.add("gather", rows, ids, axis=0), by))
    if number == 0:
        return made
    total = summed(by) if number == 1 else c.add("sqrt", summed(c.add("square", by)))
    nothing = c.add("equal", total, c.scalar(0, total.dtype))
    return c.add("div", made, c.add("where", nothing, c.scalar(1, total.dtype), total))


@translates("BUCKETIZE")
def bucketize(c: LiteCall) -> Operand:
    """How many of the boundaries are at most each element."""
    x, bounds = c.tensor(), c.numbers_of("boundaries")
    kept = c.cast(bounds, x.dtype) if x.dtype.is_float else bounds
    wide = c.reshape(x if x.dtype.is_float else c.cast(x, kept.dtype), [*x.shape, 1])
    return c.add("reduce_sum", c.cast(c.add("less_equal", kept, wide), i32), axes=(x.rank,), keepdims=False)
