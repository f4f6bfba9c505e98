"""Reductions over dimensions."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Results, total
from weft.support.dtypes import bool_, u8


def _reduction(op: str) -> Translation:
    def translate(c: Call) -> Results:
        x = c.cast(c.tensor(), c.dtype)
        return c.add(op, x, axes=c.axes("dim", x.rank), keepdims=bool(c.value("keepdim", False)))

    return translate


translates("sum", "sum.dim_IntList")(_reduction("reduce_sum"))
translates("mean", "mean.dim")(_reduction("reduce_mean"))
translates("amax")(_reduction("reduce_max"))
translates("amin")(_reduction("reduce_min"))


@translates("any.dim")
def any_(c: Call) -> Results:
    """Tells whether any element along a dimension is not zero."""
    x = c.cast(c.cast(c.tensor(), bool_), u8)
    return c.cast(c.add("reduce_max", x, axes=c.axes("dim", x.rank), keepdims=bool(c.value("keepdim"))), bool_)


@translates("argmax")
def argmax(c: Call) -> Results:
    """Where the largest element along a dimension is, or in the flat tensor."""
    x = c.tensor()
    if c.arguments.get("dim") is None:
        flat = c.reshape(x, [total(x.shape)])
        return c.add("argmax", flat, axis=0, keepdims=False, last=False)
    return c.add("argmax", x, axis=c.axis("dim", x.rank), keepdims=bool(c.value("keepdim")), last=False)


@translates("cumsum")
def cumsum(c: Call) -> Results:
    """The sums of the elements up to each along a dimension."""
    x = c.cast(c.tensor(), c.dtype)
    return c.add("cumsum", x, axis=c.axis("dim", x.rank), exclusive=False, reverse=False)
