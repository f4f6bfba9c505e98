"""Sums, means and largest elements of rows of a table, of which each bag has some: `nn.EmbeddingBag`, and its gradients."""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results, static_sizes, total
from weft.ir import ONE, Expr
from weft.ops import simplify_size
from weft.support.dtypes import f16, f32, i64

_SUM, _MEAN, _MAX = range(3)
_LOWEST: Final = float("-inf")


class _Bags(NamedTuple):
    """The bags of a call: how many, of which each index is, and how many indices each has; and which indices count."""

    number: Expr
    of_index: Operand
    counts: Operand
    kept: Operand | None


@translates("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag", "embedding_bag.padding_idx")
def embedding_bag(c: Call) -> Results:
    """The rows of each bag combined, the bag of each index, the sizes of the bags, and which index is largest in each column."""
    table, mode = c.tensor("weight"), c.integer("mode", _SUM)
    indices = c.cast(c.tensor("indices"), i64)
    bags = _bags(c, indices, c.tensor("offsets"), table.shape[0])
    rows = _weighted(c, c.add("gather", table, indices, axis=0))
    of_index, sizes = (c.cast(v, c.tensor("offsets").dtype) for v in (bags.of_index, bags.counts))
    if mode == _MAX:
        made, which = _largest(c, bags, rows, indices)
        return made, of_index, sizes, c.cast(which, c.tensor("offsets").dtype)
    made = _summed(c, bags, rows)
    if mode == _MEAN:
        one = c.scalar(1, i64)
        made = c.add("div", made, c.cast(_column(c, c.add("maximum", bags.counts, one)), made.dtype))
    fast = c.add("full", shape=(0,), value=0, dtype=of_index.dtype)
    return made, of_index if _tells_bags(c, mode) else fast, sizes, sizes


def _tells_bags(c: Call, mode: int) -> bool:
    """Tells whether PyTorch's result tells the bag of each index: its fastest way, for tables of some types, leaves that out."""
    return mode != _SUM or c.integer("padding_idx", -1) >= 0 or c.tensor("weight").dtype not in (f16, f32)


@translates("_embedding_bag_backward", "_embedding_bag_dense_backward")
def gradient(c: Call) -> Results:
    """The gradient of the table [num_weights, columns]; of the largest elements, at their own indices.

    With `scale_grad_by_freq`, what comes from an index is divided by how often it is there; PyTorch 2.13 on a processor divides
    by the count of another index where counts differ.
    """
    if c.value("sparse", False):
        c.fail("gradients that are sparse tensors are not supported", "make the EmbeddingBag with sparse=False")
    grad, mode = c.tensor("grad"), c.integer("mode")
    sizes, columns = c.cast(c.tensor("bag_size"), i64), grad.shape[1]
    zeros = c.add("full", shape=(c.value("num_weights"), columns), value=0, dtype=grad.dtype)
    if mode == _MAX:
        places = c.cast(c.tensor("maximum_indices"), i64)
        is_empty = c.add("equal", _column(c, sizes), c.scalar(0, i64))
        updates = c.add("where", is_empty, c.scalar(0, grad.dtype), grad)
        return c.add("scatter_elements", zeros, places, updates, axis=0, reduction="add")
    indices = c.cast(c.tensor("indices"), i64)
    if mode == _MEAN:
        grad = c.add("div", grad, c.cast(_column(c, c.add("maximum", sizes, c.scalar(1, i64))), grad.dtype))
    rows = _weighted(c, c.add("gather", grad, _bag_of_each(c, indices, zeros.shape[0]), axis=0))
    if c.value("scale_grad_by_freq", False):
        rows = c.add("div", rows, c.cast(_column(c, _frequencies(c, indices, zeros.shape[0])), rows.dtype))
    kept = _kept(c, indices, zeros.shape[0])
    places = c.add("expand", _column(c, indices), shape=rows.shape)
    return c.add("scatter_elements", zeros, places, _zero_unless(c, kept, rows), axis=0, reduction="add")


@translates("_embedding_bag_per_sample_weights_backward")
def gradient_of_weights(c: Call) -> Results:
    """The gradients of the factors of rows: the products of these with the gradients of their bags."""
    table, indices = c.tensor("weight"), c.cast(c.tensor("indices"), i64)
    bags = _bags(c, indices, c.tensor("offsets"), table.shape[0])
    products = c.add(
        "mul", c.add("gather", table, indices, axis=0), c.add("gather", c.tensor("grad"), bags.of_index, axis=0)
    )
    return c.add("reduce_sum", _zero_unless(c, bags.kept, products), axes=(1,), keepdims=False)


def _bags(c: Call, indices: Operand, offsets: Operand, rows: Expr) -> _Bags:
    """Returns the bags of *indices* of a table of *rows*: each begins where *offsets* tell."""
    starts, size = c.cast(offsets, i64), indices.shape[0]
    count = starts.shape[0]
    if c.value("include_last_offset", False):
        count = simplify_size(count - 1)
        starts = c.add("slice", starts, starts=(0,), ends=(-1,), axes=(0,), steps=(1,))
    marks = c.add("full", shape=(simplify_size(size + 1),), value=0, dtype=i64)
    ones = c.add("full", shape=(count,), value=1, dtype=i64)
    marks = c.add("scatter_elements", marks, starts, ones, axis=0, reduction="add")  # an empty bag may begin at the end
    begun = c.add("cumsum", marks, axis=0, exclusive=False, reverse=False)
    begun = c.add("slice", begun, starts=(0,), ends=(-1,), axes=(0,), steps=(1,))
    of_index, kept = c.add("sub", begun, c.scalar(1, i64)), _kept(c, indices, rows)
    each = c.add("full", shape=(size,), value=1, dtype=i64) if kept is None else c.cast(kept, i64)
    counts = c.add("full", shape=(count,), value=0, dtype=i64)
    counts = c.add("scatter_elements", counts, of_index, each, axis=0, reduction="add")
    return _Bags(count, of_index, counts, kept)


def _bag_of_each(c: Call, indices: Operand, rows: Expr) -> Operand:
    """Returns the bags as a call before told them; if it left them out, by where bags begin."""
    told = c.tensor("offset2bag")
    if static_sizes(told.shape) == [0] and c.optional("offsets") is not None:
        return _bags(c, indices, c.tensor("offsets"), rows).of_index
    return c.cast(told, i64)


def _kept(c: Call, indices: Operand, rows: Expr) -> Operand | None:
    """Tells which indices are not of padding; None where all count."""
    padding = c.arguments.get("padding_idx")
    if padding is None or (padding < 0 and not c.source.startswith("aten.embedding_bag")):
        return None
    at = c.size(simplify_size(rows + padding) if padding < 0 else padding)
    return c.add("logical_not", c.add("equal", indices, at))


def _weighted(c: Call, rows: Operand) -> Operand:
    factors = c.optional("per_sample_weights")
    return rows if factors is None else c.add("mul", rows, c.cast(_column(c, factors), rows.dtype))


def _summed(c: Call, bags: _Bags, rows: Operand) -> Operand:
    zeros = c.add("full", shape=(bags.number, rows.shape[1]), value=0, dtype=rows.dtype)
    places = c.add("expand", _column(c, bags.of_index), shape=rows.shape)
    return c.add("scatter_elements", zeros, places, _zero_unless(c, bags.kept, rows), axis=0, reduction="add")


def _largest(c: Call, bags: _Bags, rows: Operand, indices: Operand) -> tuple[Operand, Operand]:
    """Returns the largest elements of each column of a bag, 0 of an empty one, and the indices of the first of them."""
    lowest, size = c.scalar(_LOWEST, rows.dtype), rows.shape[0]
    if bags.kept is not None:
        rows = c.add("where", _column(c, bags.kept), rows, lowest)
    shape = (bags.number, rows.shape[1])
    places = c.add("expand", _column(c, bags.of_index), shape=rows.shape)
    start = c.add("full", shape=shape, value=_LOWEST, dtype=rows.dtype)
    most = c.add("scatter_elements", start, places, rows, axis=0, reduction="max")
    is_most = c.add("equal", rows, c.add("gather_elements", most, places, axis=0))
    at = _column(c, c.cast(c.add("range", start=0, size=size, step=1), i64))
    at = c.add("where", is_most, at, c.size(size))
    behind = c.add("expand", c.size(size), shape=shape)
    first = c.add("scatter_elements", behind, places, at, axis=0, reduction="min")
    padded = c.add("concat", indices, c.vector([0]), axis=0)
    is_empty = c.add("equal", _column(c, bags.counts), c.scalar(0, i64))
    which = c.add("gather", padded, first, axis=0)
    return c.add("where", is_empty, c.scalar(0, rows.dtype), most), which


def _frequencies(c: Call, indices: Operand, rows: Expr) -> Operand:
    """Returns how often each index is there."""
    zeros, ones = (c.add("full", shape=(n,), value=v, dtype=i64) for n, v in ((rows, 0), (indices.shape[0], 1)))
    counts = c.add("scatter_elements", zeros, indices, ones, axis=0, reduction="add")
    return c.add("gather", counts, indices, axis=0)


def _zero_unless(c: Call, kept: Operand | None, rows: Operand) -> Operand:
    return rows if kept is None else c.add("where", _column(c, kept), rows, c.scalar(0, rows.dtype))


def _column(c: Call, x: Operand) -> Operand:
    return c.reshape(x, [total(x.shape), ONE])
