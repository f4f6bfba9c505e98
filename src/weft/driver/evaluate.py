"""Computing with constants while compiling, by the very code that would compute them at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.codegen.llvm.link import Image, link
from weft.driver.kernel import lower_kernel
from weft.graph.graph import Array
from weft.ir.expr import Const
from weft.native import _rt
from weft.ops.registry import Operator
from weft.support.dtypes import from_numpy
from weft.support.errors import LoweringError
from weft.targets.target import Target
from weft.te import Tensor, placeholder


class NativeEvaluator:
    """Evaluates operators on arrays by compiling them for this machine; equal calls share their code."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._images: dict[object, tuple[Image, tuple[Tensor, ...]]] = {}

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs* (None for an optional one that is absent)."""
        image, outputs = self._compiled(op, inputs, attributes)
        given = [np.ascontiguousarray(x) for x in inputs if x is not None]
        made = [np.empty(_static_shape(t), t.dtype.numpy) for t in outputs]
        _rt.call(image.code, image.symbols[op.name], [*map(_bytes, given), *map(_bytes, made)])
        return made

    def _compiled(
        self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]
    ) -> tuple[Image, tuple[Tensor, ...]]:
        shapes = tuple([None if x is None else (x.shape, str(x.dtype)) for x in inputs])
        key = (op.name, shapes, tuple(sorted(attributes.items(), key=lambda kv: kv[0])))
        if key not in self._images:
            tensors = [None if x is None else _placeholder(x, n) for n, x in enumerate(inputs)]
            outputs = op(tensors, attributes)
            lowered = lower_kernel(op.name, [t for t in tensors if t is not None], outputs, self.target)
            self._images[key] = link([lowered.emit().object]), outputs
        return self._images[key]


def _placeholder(x: Array, n: int) -> Tensor:
    return placeholder(x.shape, from_numpy(x.dtype), f"x{n}")


def _static_shape(t: Tensor) -> tuple[int, ...]:
    sizes = [int(s.value) for s in t.shape if isinstance(s, Const)]
    if len(sizes) != t.rank:
        raise LoweringError(f"{t.name} has a symbolic size, so it can't be computed while compiling")
    return tuple(sizes)


def _bytes(x: Array) -> Array:
    """Returns an array as bytes, which any element type can be passed as; an empty one has none."""
    return x.reshape(-1).view(np.uint8)
