"""Decoders of sequences of classes (connectionist temporal classification; Graves et al., 2006)."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import Call, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import total
from weft.graph.composites.selection import true_positions
from weft.graph.composites.sequences import stack
from weft.support.dtypes import i64


@translates("CTCGreedyDecoder", outputs=("decoded_indices", "decoded_values", "decoded_shape", "log_probability"))
def greedy_decoder(c: Call) -> Results:
    """The likeliest class of each step [time, batch, classes], those of the blank and repetitions left out, as sparse rows."""
    x, lengths = c.tensor(0, 3), c.cast(c.tensor(1, 1), i64)
    steps, batch, classes = x.shape
    blank = c.integer("blank_index", -1)
    by_row = c.transpose(x, [1, 0, 2])
    best = c.cast(c.add("argmax", by_row, axis=2, keepdims=False), i64)
    inside = c.add("less", c.add("range", start=0, size=steps), c.reshape(lengths, [batch, 1]))
    none = c.size(classes + blank) if blank < 0 else c.scalar(blank, i64)
    kept = c.add("logical_and", inside, c.add("logical_not", c.add("equal", best, none)))
    if c.flag("merge_repeated"):
        first = c.add("full", shape=(batch, 1), value=-1, dtype=i64)
        rest = c.add("slice", best, starts=(0,), ends=(steps - 1,), axes=(1,), steps=(1,))
        before = c.add("concat", first, rest, axis=1)
        kept = c.add("logical_and", kept, c.add("logical_not", c.add("equal", best, before)))
    column = c.add("sub", c.add("cumsum", c.cast(kept, i64), axis=1), c.scalar(1, i64))
    flat = true_positions(c, kept)
    row = c.add("div", flat, c.size(steps))
    place, label = (c.add("gather", c.reshape(v, [total([batch, steps])]), flat, axis=0) for v in (column, best))
    counts = c.add("reduce_sum", c.cast(kept, i64), axes=(1,), keepdims=False)
    widest = c.add("reduce_max", counts, axes=(0,), keepdims=True)
    likely = c.add("reduce_max", by_row, axes=(2,), keepdims=False)
    said = c.add("reduce_sum", c.add("where", inside, likely, c.scalar(0, x.dtype)), axes=(1,), keepdims=True)
    shape = c.add("concat", c.reshape(c.size(batch), [1]), widest, axis=0)
    return stack(c, [row, place], 1), label, shape, c.add("neg", said)
