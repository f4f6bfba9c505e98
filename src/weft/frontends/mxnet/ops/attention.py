"""Attention of several heads, whose queries, keys and values stand head by head in one tensor; in floats, and quantised."""

from __future__ import annotations

import math

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.ops.quantized.quantization import Quantized
from weft.frontends.mxnet.quantized_ranges import calibrated, in_steps, range_at
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.quantized.quantization import integer_matmul
from weft.graph.composites.sequences import element
from weft.ir import Const
from weft.support.dtypes import f32, i8


@translates("_contrib_interleaved_matmul_selfatt_qk")
def attention_scores(c: Call) -> Operand:
    """Products of queries and keys [batch * heads, time, time], scaled; the input is [time, batch, 3 * width]."""
    q, k, _ = _heads(c, c.input(0, rank=3), 3)
    return _scores(c, q, k)


@translates("_contrib_interleaved_matmul_encdec_qk")
def scores_of_another(c: Call) -> Operand:
    """The same of queries [time, batch, width] and the keys of another sequence [other time, batch, 2 * width]."""
    (q,), (k, _) = _heads(c, c.input(0, rank=3), 1), _heads(c, c.input(1, rank=3), 2)
    return _scores(c, q, k)


def _scores(c: Call, q: Operand, k: Operand) -> Operand:
    scaled = c.add("mul", q, c.add("rsqrt", c.cast(c.size(q.shape[-1]), q.dtype)))
    return c.add("matmul", scaled, c.transpose(k, [0, 2, 1]))


@translates("_contrib_interleaved_matmul_selfatt_valatt")
def attention_values(c: Call) -> Operand:
    """Products of the second input's weights and the values [time, batch, width]."""
    *_, v = _heads(c, c.input(0, rank=3), 3)
    return _joined(c, c.add("matmul", c.input(1, rank=3), v))


@translates("_contrib_interleaved_matmul_encdec_valatt")
def values_of_another(c: Call) -> Operand:
    """The same of the values of another sequence [other time, batch, 2 * width]."""
    _, v = _heads(c, c.input(0, rank=3), 2)
    return _joined(c, c.add("matmul", c.input(1, rank=3), v))


def _joined(c: Call, made: Operand) -> Operand:
    """Returns results of heads [batch * heads, time, depth] side by side [time, batch, heads * depth]."""
    heads, (_, time, depth), batch = c.integer("heads"), made.shape, c.input(0).shape[1]
    apart = c.transpose(c.reshape(made, [batch, heads, time, depth]), [2, 0, 1, 3])
    return c.reshape(apart, [time, batch, depth * heads])


def _heads(c: Call, x: Operand, kinds: int) -> tuple[Operand, ...]:
    """Returns so many *kinds* of vectors [batch * heads, time, depth], which stand head by head in *x*."""
    heads = c.integer("heads")
    time, batch, width = x.shape
    if heads < 1:
        c.fail(f"it has {heads} heads", "save the network again")
    depth = width // (kinds * heads)
    apart = c.transpose(c.reshape(x, [time, batch, heads, kinds, depth]), [3, 1, 2, 0, 4])
    return tuple([c.reshape(element(c, apart, 0, k), [batch * heads, time, depth]) for k in range(kinds)])


@translates("_sg_mkldnn_selfatt_qk")
def fused_scores(c: Call) -> Quantized | tuple[Operand, ...]:
    """Scores of vectors in bytes, as bytes or floats."""
    if not c.flag("quantized"):
        return tuple(c.subgraph(0, c.all_inputs(), c))
    x = c.input(0, rank=3)
    q, k, _ = _heads(c, x, 3)
    depth = q.shape[-1]
    if not isinstance(depth, Const):
        c.fail(f"its input should be of a known width: {x!r}", "give numbers: shapes={...}")
    sums, steps = integer_matmul(c, q, c.transpose(k, [0, 2, 1]), None, None), range_at(c, 1).steps(c, x.dtype)
    return _rescaled(c, sums, c.add("mul", steps, steps), math.sqrt(int(depth.value)))


@translates("_sg_mkldnn_selfatt_valatt")
def fused_values(c: Call) -> Quantized | tuple[Operand, ...]:
    """Values in bytes, mixed by weights in bytes, as bytes or floats."""
    if not c.flag("quantized"):
        return tuple(c.subgraph(0, c.all_inputs(), c))
    x, weights = c.input(0, rank=3), c.input(1, rank=3)
    *_, v = _heads(c, x, 3)
    steps = c.add("mul", range_at(c, 2).steps(c, x.dtype), range_at(c, 4).steps(c, weights.dtype))
    return _rescaled(c, _joined(c, integer_matmul(c, weights, v, None, None)), steps, 1.0)


def _rescaled(c: Call, sums: Operand, steps: Operand, divisor: float) -> Quantized | tuple[Operand, ...]:
    """Returns sums in so many *steps* a unit, divided by a number: floats, or bytes in a range that was calibrated."""
    found = calibrated(c)
    if found is None and not c.flag("enable_float_output"):
        c.fail("it has no range that was calibrated", "quantise the network with calib_mode='naive' or 'entropy'")
    after = c.scalar(1, f32) if found is None else found.steps(c, i8)
    by = c.add("div", c.add("div", after, steps), c.scalar(divisor, f32))
    if found is None:
        return (c.add("mul", c.cast(sums, f32), by),)
    return found.results(c, in_steps(c, sums, by, i8))
