"""Computing with constants while compiling, by the very code that would compute them at run time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from functools import cached_property
from typing import Any

import numpy as np

from weft.codegen import link_here
from weft.driver.cache.code_cache import Cache
from weft.driver.kernel import Kernel, make_kernel
from weft.driver.kernel_request import KernelRequest
from weft.graph import Array, Fill
from weft.ir import Const
from weft.native import _rt
from weft.ops import Operator, TensorType, sized
from weft.support.dtypes import DType, from_numpy
from weft.support.errors import LoweringError
from weft.targets import Target, can_run, host
from weft.te import Tensor, placeholder


def evaluation_target(target: Target) -> Target:
    """Returns the machine that constants of a model for *target* are computed for: *target*, where its code runs here."""
    own = target if target.processor is None else target.processor
    return own if can_run(own) and not own.isa.language else host()


class NativeEvaluator:
    """Evaluates operators on arrays by compiling them for this machine; equal calls share their code.

    With *pool*, the backend compiles there while Python goes on, until the code is first run.
    """

    def __init__(
        self, target: Target, cache: Cache | None = None, *, verify: bool = False, pool: Executor | None = None
    ) -> None:
        self.target = target
        self.cache = cache
        self.verify = verify
        self.pool = pool
        self._codes: dict[str, _Code] = {}

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs* (None for an optional one that is absent)."""
        types = [None if x is None else TensorType(sized(*x.shape), from_numpy(x.dtype)) for x in inputs]
        code = self._code(op, types, attributes)
        made: list[Array] = [np.empty(shape, dtype.numpy) for shape, dtype in code.outputs]
        code.run(inputs, made)
        return made

    def prepare(self, op: Operator, inputs: Sequence[TensorType | None], attributes: dict[str, Any]) -> Fill:
        """Returns the function that computes *op* for inputs of these types (None for an optional one that is absent)."""
        return self._code(op, inputs, attributes).run

    def _code(self, op: Operator, inputs: Sequence[TensorType | None], attributes: dict[str, Any]) -> _Code:
        tensors = [None if t is None else placeholder(t.shape, t.dtype, f"x{n}") for n, t in enumerate(inputs)]
        given = [t for t in tensors if t is not None]
        description = f"{op.name} {[(t.name, _static_shape(t), t.dtype) for t in given]} {sorted(attributes.items())}"
        if description not in self._codes:
            outputs = op(tensors, attributes)
            request = KernelRequest(op.name, lambda: (given, outputs))
            kernel = make_kernel(request, self.target, self.cache, self.pool, verify=self.verify)
            self._codes[description] = _Code(kernel, self.target, [(_static_shape(t), t.dtype) for t in outputs])
        return self._codes[description]


class _Code:
    """The code of one call, which may still be compiling; `outputs` are the shapes and types of its results."""

    def __init__(self, kernel: Future[Kernel], target: Target, outputs: list[tuple[tuple[int, ...], DType]]) -> None:
        self.kernel = kernel
        self.target = target
        self.outputs = outputs

    @cached_property
    def _linked(self) -> tuple[_rt.Image, int]:
        kernel = self.kernel.result()
        image = link_here([kernel.module], self.target)
        return _rt.Image(image.code, image.readonly), image.symbols[kernel.name]

    def run(self, inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        """Computes the outputs, contiguous arrays, from the inputs; waits for the compiler if it must."""
        image, start = self._linked
        given = [np.ascontiguousarray(x) for x in inputs if x is not None]
        _rt.call(image, start, [*map(_bytes, given), *map(_bytes, outputs)])


def _static_shape(t: Tensor) -> tuple[int, ...]:
    sizes = [int(s.value) for s in t.shape if isinstance(s, Const)]
    if len(sizes) != t.rank:
        raise LoweringError(f"{t.name} has a symbolic size, so it can't be computed while compiling")
    return tuple(sizes)


def _bytes(x: Array) -> Array:
    """Returns an array as bytes, which any element type can be passed as; an empty one has none."""
    return x.reshape(-1).view(np.uint8)
