"""Layers without bottoms: learnt numbers, and fillings that are the same in each run."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.parameters import Parameters
from weft.frontends.caffe.registry import Tops, layer
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.sequences import concat
from weft.support.dtypes import f32

_MOST_HELD: Final = 1 << 16
"""Elements up to which a filling is a constant, which later layers may look at."""


@layer("Parameter")
def parameter(c: Call) -> Tops:
    """The layer's blob."""
    return c.blob(0, c.parameters("parameter_param").inner("shape").integers("dim", 0), "parameter")


@layer("DummyData")
def dummy_data(c: Call) -> Tops:
    """Blobs of one number each; those of random numbers are for training."""
    p = c.parameters("dummy_data_param")
    shapes = [Parameters(m, p.where).integers("dim", 0) for m in p.messages("shape")]
    if not shapes:
        shapes = [
            list(s) for s in zip(*(p.integers(n, 0) for n in ("num", "channels", "height", "width")), strict=False)
        ]
    fillers = [_number(c, Parameters(m, p.where)) for m in p.messages("data_filler")] or [0.0]
    if not shapes or max(len(shapes), len(fillers)) > c.tops:
        c.fail(
            f"it has {c.tops} tops, {len(shapes)} shapes and {len(fillers)} data_filler", "mend its dummy_data_param"
        )
    return tuple(_filled(c, shapes[k % len(shapes)], fillers[k % len(fillers)]) for k in range(c.tops))


def _number(c: Call, filler: Parameters) -> float:
    if filler.text("type", "constant") != "constant":
        c.fail(
            f"its data_filler draws numbers, of the type {filler.text('type', '')}",
            'give the deployed network, whose input is a layer { type: "Input" }',
        )
    return filler.number("value", 0.0)


def _filled(c: Call, shape: list[int], value: float) -> Operand:
    if math.prod(shape) > _MOST_HELD:
        return c.add("full", shape=tuple(shape), value=value, dtype=f32)
    return CompileTimeConstant(np.full(tuple(shape), value, np.float32), c.layer.text("name", ""))


@layer("ContinuationIndicator")
def continuation_indicator(c: Call) -> Tops:
    """`cont` of sequences that all begin with the run [time, batch]: zeros in the first row, then ones."""
    p = c.parameters("continuation_indicator_param")
    steps, batch = p.integer("time_step", 0, 1), p.integer("batch_size", 0, 1)
    first = _filled(c, [1, batch], 0.0)
    return first if steps == 1 else concat(c, [first, _filled(c, [steps - 1, batch], 1.0)], 0)
