"""A compiled model run by the loop interpreter: the very programs that machine code was made from."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from weft.codegen.interp import run
from weft.codegen.interp.machine import evaluate
from weft.driver.build import Compilation
from weft.graph import Constant, Value
from weft.ir import Var
from weft.loop import parse_program

Array = np.ndarray[Any, Any]


def interpret(made: Compilation, inputs: Mapping[str, Array]) -> list[Array]:
    """Returns the outputs of a model, kernel by kernel; each value is an array of its own."""
    fused = made.fused
    known: dict[Value, Array] = {v: inputs[v.name] for v in fused.graph.inputs}
    sizes = {
        s: n for v in fused.graph.inputs for s, n in zip(v.shape, known[v].shape, strict=True) if isinstance(s, Var)
    }

    def shape(v: Value) -> list[int]:
        return [evaluate(s, sizes) for s in v.shape]

    def array(v: Value) -> Array:
        root = fused.root(v)
        whole = root.array if isinstance(root, Constant) else known[root]
        begin = fused.offset(v) // v.dtype.bytes
        return np.ascontiguousarray(whole).reshape(-1)[begin : begin + prod(shape(v))]

    for group in fused.groups:
        results = [np.zeros(prod(shape(v)), v.dtype.numpy) for v in group.outputs]
        program = parse_program(made.kernels[group.key].flat)
        run(program, [*map(array, group.inputs), *results, *[sizes[s] for s in group.sizes]])
        known.update(zip(group.outputs, results, strict=True))
    return [array(v).reshape(shape(v)) for v in fused.graph.outputs]
