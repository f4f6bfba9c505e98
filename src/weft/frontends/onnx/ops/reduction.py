"""Reductions over axes, and operators along one axis."""

from __future__ import annotations

from typing import Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import Translation, translates
from weft.graph.builder import total
from weft.graph.composites import ordering
from weft.graph.composites.run_time import late_axes
from weft.ir import ZERO, Expr
from weft.support.dtypes import bool_, u8

AXES_ARE_INPUT: Final = 18
"""The operator set since which axes are an input; for ReduceSum it is 13."""

_REDUCTIONS: Final = {
    "ReduceSum": "reduce_sum",
    "ReduceMean": "reduce_mean",
    "ReduceMax": "reduce_max",
    "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_prod",
    "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
    "ReduceSumSquare": "reduce_sum_square",
}


def _reduction(name: str, op: str) -> Translation:
    since = 13 if name == "ReduceSum" else AXES_ARE_INPUT

    def translate(c: Call) -> Results:
        x = c.input(0)
        if c.opset >= since and not c.is_known(1) and c.input(1).shape != (ZERO,):
            return _over_named(c, op, x)
        axes = axes_of(c, since, "axes") if c.is_known(1) or c.opset < since else None
        if not axes:
            axes = [] if c.flag("noop_with_empty_axes", False) else None
        over = None if axes is None else tuple(sorted(c.axis_of(a, x.rank) for a in axes))
        if x.dtype is bool_:
            made = c.add(op, c.cast(x, u8), axes=over, keepdims=c.flag("keepdims", True))
            return c.cast(made, bool_)
        return c.add(op, x, axes=over, keepdims=c.flag("keepdims", True))

    return translate


def _over_named(c: Call, op: str, x: Operand) -> Operand:
    """Returns a reduction over axes that only a run tells."""
    how = {"keepdims": c.flag("keepdims", True), "none_is_all": not c.flag("noop_with_empty_axes", False)}
    number = c.cast(x, u8) if x.dtype is bool_ else x
    return c.cast(late_axes.reduce_named(c, op, number, c.input(1), **how), x.dtype)


def axes_of(c: Call, since: int, what: str) -> list[int] | None:
    """Returns the axes: an attribute before operator set *since*, then input 1; None where there are none."""
    if c.opset < since:
        return c.ints("axes")
    return c.ints_at(1, what) if c.has(1) else None


for _name, _op in _REDUCTIONS.items():
    translates(_name)(_reduction(_name, _op))


def _arg(op: str) -> Translation:
    return lambda c: c.add(
        op,
        c.input(0),
        axis=c.axis(0, c.input(0).rank),
        keepdims=c.flag("keepdims", True),
        last=c.flag("select_last_index", False),
    )


translates("ArgMax")(_arg("argmax"))
translates("ArgMin")(_arg("argmin"))


def _along(op: str) -> Translation:
    """Softmax and its like: since operator set 13 along one axis, before over all dimensions from it on, as a matrix's rows."""

    def translate(c: Call) -> Results:
        x = c.input(0)
        if c.opset >= 13:
            return c.add(op, x, axis=c.axis(-1, x.rank))
        axis = c.axis(1, x.rank) if x.rank > 1 else 0
        if axis == x.rank - 1:
            return c.add(op, x, axis=axis)
        rows = c.reshape(x, [total(x.shape[:axis]), total(x.shape[axis:])])
        return c.reshape(c.add(op, rows, axis=1), x.shape)

    return translate


translates("Softmax")(_along("softmax"))
translates("LogSoftmax")(_along("log_softmax"))
translates("Hardmax")(_along("hardmax"))


def _running(op: str) -> Translation:
    """Sums or products up to each element."""

    def translate(c: Call) -> Results:
        x = c.input(0)
        how = {"exclusive": c.flag("exclusive", False), "reverse": c.flag("reverse", False)}
        if c.is_known(1):
            return c.add(op, x, axis=c.axis_of(c.ints_at(1, "axis")[0], x.rank), **how)
        return late_axes.along_named(c, x, c.input(1), lambda view: c.add(op, view, axis=1, **how))

    return translate


translates("CumSum")(_running("cumsum"))
translates("CumProd")(_running("cumprod"))


@translates("TopK")
def top_k(c: Call) -> Results:
    """The K largest (or smallest) elements along an axis, sorted, and where they are."""
    x = c.input(0)
    axis = c.axis(-1, x.rank)
    k = c.integer("k", 1) if c.opset < 10 else c.late_number(c.input(1), "k", "K")
    if isinstance(k, Expr):
        c.require(k <= x.shape[axis], f"takes {{0}} elements of dimension {axis}, which has {{1}}", k, x.shape[axis])
    return ordering.top_k(c, x, k, axis, largest=c.flag("largest", True))
