"""Running tensor expressions, by lowering them to loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft import te
from weft.codegen.interp import run
from weft.ir import Const, Expr, Var
from weft.loop import Buffer, verify
from weft.te import Tensor

Array = npt.NDArray[Any]


def results(inputs: Sequence[Tensor], outputs: Sequence[Tensor], *arrays: Array, **sizes: int) -> list[Array]:
    """Computes *outputs* for the values of *inputs*, at *sizes* of what is symbolic."""
    program = te.to_program(inputs, outputs)
    verify(program)
    values: dict[str, Any] = dict(sizes)
    for p, a in zip(program.entry.params, arrays, strict=False):
        values[p.name] = a
    names = []
    for p in program.entry.params[len(arrays) :]:
        if isinstance(p, Buffer):
            values[p.name] = np.full([_size(s, sizes) for s in p.shape], 77).astype(p.dtype.numpy)
            names.append(p.name)
    run(program, values)
    return [values[n] for n in names]


def _size(e: Expr, sizes: dict[str, int]) -> int:
    if isinstance(e, Var):
        return sizes[e.name]
    assert isinstance(e, Const)
    return int(e.value)
