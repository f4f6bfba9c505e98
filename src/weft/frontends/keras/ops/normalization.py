"""Normalisations by running statistics, and by those of each sample."""

from __future__ import annotations

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import translates
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.normalization import group_norm as by_groups


@translates("BatchNormalization")
def batch_norm(c: Call) -> Operand:
    """Normalises each channel by running statistics."""
    x = c.floats()
    axis = c.axis_of(_axis(c), x.rank)
    if axis not in (1, x.rank - 1):
        c.fail(f"normalising along dimension {axis} of {x!r} is not supported", "use the channels, first or last")
    is_last = axis == x.rank - 1 and x.rank > 2
    scales, shifts = c.flag("scale", True), c.flag("center", True)
    mean = c.variable(scales + shifts, 1)
    scale = c.variable(0, 1) if scales else _constant(mean, 1)
    shift = c.variable(int(scales), 1) if shifts else _constant(mean, 0)
    variance = c.variable(scales + shifts + 1, 1)
    epsilon = c.number("epsilon", 1e-3)
    y = c.add("batch_norm", c.first(x, last=is_last), scale, shift, mean, variance, epsilon=epsilon)
    return c.last(y, last=is_last)


def _axis(c: Call) -> int:
    """Returns the one axis, which old files have as a list."""
    found = c.layer.config.get("axis", -1)
    found = found[0] if isinstance(found, list) and len(found) == 1 else found
    if not isinstance(found, int):
        c.fail(f"its setting axis={found!r} is not supported", "give it one dimension")
    return found


def _constant(like: Operand, value: float) -> CompileTimeConstant:
    assert isinstance(like, CompileTimeConstant)
    return CompileTimeConstant(np.full_like(like.array, value))


@translates("LayerNormalization", "RMSNormalization")
def layer_norm(c: Call) -> Operand:
    """Normalises over the last dimensions."""
    x = c.floats()
    found = c.layer.config.get("axis", -1)
    axes = sorted(c.axis_of(a, x.rank) for a in (found if isinstance(found, list) else [found]))
    if axes != list(range(axes[0], x.rank)):
        c.fail(f"normalising over dimensions {axes} of {x!r} is not supported", "use the last dimensions")
    epsilon = c.number("epsilon", 1e-3 if c.layer.kind == "LayerNormalization" else 1e-6)
    if c.layer.kind == "RMSNormalization":
        return c.add("mul", c.add("rms_norm", x, axis=axes[0], epsilon=epsilon), c.variable(0, len(axes)))
    c.refuse("rms_scaling", False)
    scales, shifts = c.flag("scale", True), c.flag("center", True)
    scale = c.variable(0, len(axes)) if scales else None
    shift = c.variable(int(scales), len(axes)) if shifts else None
    return c.add("layer_norm", x, scale, shift, axis=axes[0], epsilon=epsilon)


@translates("GroupNormalization")
def group_norm(c: Call) -> Operand:
    """Normalises groups of channels of each sample."""
    x = c.floats()
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    if axis not in (1, x.rank - 1):
        c.fail(f"normalising along dimension {axis} of {x!r} is not supported", "use the channels, first or last")
    is_last = axis == x.rank - 1
    first, groups = c.first(x, last=is_last), c.integer("groups", 32)
    channels = getattr(x.shape[axis], "value", None)
    if channels is None or (groups != -1 and channels % groups):
        c.fail(f"{groups} groups of the channels of {x!r} are not supported", "use a divisor of the channels")
    scales, shifts = c.flag("scale", True), c.flag("center", True)
    scale = c.variable(0, 1) if scales else None
    shift = c.variable(int(scales), 1) if shifts else None
    epsilon = c.number("epsilon", 1e-3)
    y = by_groups(c, first, channels if groups == -1 else groups, scale, shift, epsilon)
    return c.last(y, last=is_last)


@translates("Normalization")
def normalization(c: Call) -> Operand:
    """(x - mean) / max(sqrt(variance), 1e-7), statistics given or learned from data; or (`invert`) x from that."""
    x = c.floats()
    found = c.layer.config.get("axis", -1)
    axes = [c.axis_of(a, x.rank) for a in ([] if found is None else found if isinstance(found, list) else [found])]
    mean, variance = (_statistic(c, name, i, len(axes)) for i, name in enumerate(("mean", "variance")))
    shape = [mean.shape[axes.index(d)] if d in axes else 1 for d in range(x.rank)] if mean.ndim else []
    deviation = np.maximum(np.sqrt(variance), np.float32(1e-7))
    low, scale = (CompileTimeConstant(np.ascontiguousarray(v.reshape(shape))) for v in (mean, 1 / deviation))
    if c.flag("invert"):
        return c.add("add", low, c.add("mul", x, CompileTimeConstant(deviation.reshape(shape))))
    return c.add("mul", c.add("sub", x, low), scale)


def _statistic(c: Call, name: str, i: int, rank: int) -> Array:
    given = c.layer.config.get(name)
    if given is not None:
        return np.asarray(given, np.float32).reshape([-1] * (1 if rank else 0))
    held = c.variable(i, rank)
    assert isinstance(held, CompileTimeConstant)
    return held.array


@translates("UnitNormalization")
def unit_normalization(c: Call) -> Operand:
    """Divides by the 2-norm along an axis."""
    x = c.floats()
    found = c.layer.config.get("axis", -1)
    axes = tuple(c.axis_of(a, x.rank) for a in (found if isinstance(found, list) else [found]))
    squares = c.add("reduce_sum_square", x, axes=axes, keepdims=True)
    return c.add("mul", x, c.add("rsqrt", c.add("maximum", squares, c.scalar(1e-12, x.dtype))))
