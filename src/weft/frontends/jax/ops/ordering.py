"""Sorting along a dimension, and the largest elements."""

from __future__ import annotations

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.reducers import keys_of
from weft.frontends.jax.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites import ordering
from weft.support.dtypes import bool_, u8


@translates("sort")
def sort(c: Call) -> tuple[Operand, ...]:
    """Tensors in the order that a comparison of some of them gives: by the last key first, as each sort keeps equal elements."""
    axis = c.axis_of(c.integer("dimension"), c.operand(0).rank)
    keys = keys_of(c.operation.regions[0]) if c.operation.regions else None
    if keys is None or max(k.operand for k in keys) >= len(c.operands):
        c.fail("it orders by a function that is not supported", "compare the elements by < or >")
    if any(x.shape != c.operand(0).shape for x in c.operands):
        c.fail("it sorts tensors of several shapes", AGAIN)
    order: Operand | None = None
    for key in reversed(keys):
        x = c.operands[key.operand]
        x = c.cast(x, u8) if x.dtype is bool_ else x
        now = x if order is None else c.add("gather_elements", x, order, axis=axis)
        found = c.add("argsort", now, axis=axis, descending=key.descending)
        order = found if order is None else c.add("gather_elements", order, found, axis=axis)
    return tuple([c.add("gather_elements", x, order, axis=axis) for x in c.operands])


@translates("custom_call @ApproxTopK")
def approximate_top_k(c: Call) -> tuple[Operand, Operand]:
    """The largest elements along a dimension, or the smallest, and others at their places: all of them, as on a CPU."""
    x, others, how, called = c.operand(0), c.operand(1), c.value("mhlo.backend_config"), c.value("called_computations")
    settings = how if isinstance(how, dict) else {}
    count, axis = (c.integers_of([settings.get(name)], name)[0] for name in ("top_k", "reduction_dim"))
    if not isinstance(called, list) or len(called) != 1 or len(c.operands) != 4 or c.result(0).shape[axis] != count:
        c.fail("it is not that of one tensor and its indices", "call jax.lax.approx_max_k with `aggregate_to_topk`")
    numbers = [c.scalar(v, x.dtype) for v in (2, 1)]
    (largest,) = c.program.run(str(called[0]), [*numbers, *[c.scalar(0, others.dtype)] * 2], c)
    if not isinstance(largest, CompileTimeConstant):
        c.fail("it orders by a function that is not supported", "compare the elements by < or >")
    values, places = ordering.top_k(c, x, count, c.axis_of(axis, x.rank), largest=bool(largest.array))
    return values, c.add("gather_elements", others, places, axis=c.axis_of(axis, x.rank))


@translates("top_k")
def top_k(c: Call) -> tuple[Operand, Operand]:
    """The largest elements along the last dimension, and where they are."""
    x = c.operand(0)
    if not x.rank:
        c.fail(f"it takes the largest elements of a number: {x!r}", AGAIN)
    values, places = ordering.top_k(c, x, c.integer("k"), x.rank - 1, largest=True)
    return values, c.cast(places, c.result_dtype(1))
