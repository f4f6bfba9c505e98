"""Gradients against finite differences, in float64 by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.te.running import Array

from weft import te
from weft.codegen.interp import run
from weft.codegen.interp.machine import evaluate
from weft.ir import Var
from weft.loop import Buffer, verify
from weft.te import Tensor

STEP = 1e-5
CHECKED = 10
"""Of each input, at most so many elements are moved."""


class Function:
    """Tensors as a function of others, by the interpreter."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.program = te.to_program(inputs, outputs)
        verify(self.program)
        self.inputs = len(inputs)

    def __call__(self, arrays: Sequence[Array], **sizes: int) -> list[Array]:
        values: list[Any] = list(arrays)
        params = self.program.entry.params
        known = {p: sizes[p.name] for p in params if isinstance(p, Var)}
        for p in params[self.inputs :]:
            if isinstance(p, Buffer):
                values.append(np.full([evaluate(s, known) for s in p.shape], np.nan, p.dtype.numpy))
            else:
                values.append(known[p])
        run(self.program, values)
        return [v for v in values[self.inputs :] if isinstance(v, np.ndarray)]


def check_gradient(
    output: Tensor,
    wanted: Sequence[Tensor],
    arrays: Sequence[Array],
    others: Sequence[tuple[Tensor, Array]] = (),
    *,
    tolerance: float = 1e-6,
    **sizes: int,
) -> list[Tensor]:
    """Compares the gradients of a random projection of *output* by *wanted*, whose values are *arrays*, with differences.

    *others* are inputs that no gradient is asked of. Returns the gradients; their head is a placeholder called H.
    """
    made = np.random.default_rng(7)
    inputs, values = [*wanted, *[t for t, _ in others]], [*arrays, *[v for _, v in others]]
    forward = Function(inputs, [output])
    head = te.placeholder(output.shape, output.dtype, "H")
    h = made.standard_normal(forward(values, **sizes)[0].shape)
    gradients = te.gradient(output, wanted, head)
    found = Function([*inputs, head], gradients)([*values, h], **sizes)
    for k, (t, a) in enumerate(zip(wanted, arrays, strict=True)):
        assert found[k].shape == a.shape
        assert not np.isnan(found[k]).any()
        for place in made.permutation(a.size)[:CHECKED]:
            moved = [_moved(a, place, sign * STEP) for sign in (1, -1)]
            up, down = (forward([*values[:k], m, *values[k + 1 :]], **sizes)[0] for m in moved)
            slope = float((h * (up - down)).sum() / (2 * STEP))
            np.testing.assert_allclose(found[k].flat[place], slope, rtol=tolerance, atol=tolerance, err_msg=t.name)
    return gradients


def _moved(a: Array, place: int, by: float) -> Array:
    result = a.copy()
    result.flat[place] += by
    return result
