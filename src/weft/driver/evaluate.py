"""Computing with constants while compiling, by the very code that would compute them at run time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from weft.codegen.llvm.link import Image, link
from weft.driver.cache import Cache
from weft.driver.kernel import Request, make_kernel
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

    def __init__(self, target: Target, cache: Cache | None = None, *, verify: bool = False) -> None:
        self.target = target
        self.cache = cache
        self.verify = verify
        self._images: dict[str, Image] = {}

    def evaluate(self, op: Operator, inputs: Sequence[Array | None], attributes: dict[str, Any]) -> list[Array]:
        """Returns the outputs of *op* for *inputs* (None for an optional one that is absent)."""
        tensors = [None if x is None else _placeholder(x, n) for n, x in enumerate(inputs)]
        outputs = op(tensors, attributes)
        image = self._image(op, [t for t in tensors if t is not None], outputs, attributes)
        given = [np.ascontiguousarray(x) for x in inputs if x is not None]
        made = [np.empty(_static_shape(t), t.dtype.numpy) for t in outputs]
        _rt.call(image.code, image.symbols[op.name], [*map(_bytes, given), *map(_bytes, made)])
        return made

    def _image(
        self, op: Operator, inputs: list[Tensor], outputs: Sequence[Tensor], attributes: dict[str, Any]
    ) -> Image:
        shapes = [(t.name, _static_shape(t), t.dtype) for t in inputs]
        description = f"{op.name} {shapes} {sorted(attributes.items())}"
        if description not in self._images:
            request = Request(op.name, description, lambda: (inputs, outputs))
            with ThreadPoolExecutor(max_workers=1) as pool:
                kernel = make_kernel(request, self.target, self.cache, pool, verify=self.verify).result()
            self._images[description] = link([kernel.object])
        return self._images[description]


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
