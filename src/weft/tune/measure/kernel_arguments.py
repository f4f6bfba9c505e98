"""The arguments that a kernel is measured with: inputs made from a seed, in memory such as models have, with guards around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from weft.cost import FALLBACK_SIZE
from weft.ir import Const, Expr, Mul, Node, Var, free_vars, index, simplify, substitute
from weft.loop import Buffer, Function, Load, Store, own_exprs, statements, stores
from weft.native import _rt
from weft.support.errors import InputError
from weft.tune.measure.guarded_memory import GuardedMemory

Array = np.ndarray[Any, Any]

LARGEST: Final = 4
"""The largest magnitude of inputs: sums of their products are exact in f32 for up to a million terms."""


class KernelArguments:
    """The buffers and sizes of one call of *function*, the unscheduled loops, with inputs made from *seed*.

    A symbolic size has the value that the cost model assumes. With *positive*, no input is below 1. Raises `InputError` for
    parameters whose shape is not known.
    """

    def __init__(self, function: Function, seed: int, *, positive: bool = False) -> None:
        buffers = [p for p in function.params if isinstance(p, Buffer)]
        self.sizes = [FALLBACK_SIZE for p in function.params if isinstance(p, Var)]
        written = written_buffers(function)
        self.memory = [GuardedMemory(element_count(b), b.dtype.numpy, n) for n, b in enumerate(buffers)]
        self.outputs = [m for b, m in zip(buffers, self.memory, strict=True) if b in written]
        self.inputs = [m for b, m in zip(buffers, self.memory, strict=True) if b not in written]
        self._workspaces: list[GuardedMemory] = []
        rng, bounds = np.random.default_rng(seed), index_bounds(function)
        for b, m in zip(buffers, self.memory, strict=True):
            if b not in written:
                m.values[:] = random_values(rng, b, m.values.size, bounds.get(b), positive=positive)
        self._sum = self._checksum()

    def arrays(self, workspaces: Sequence[int] = ()) -> list[Array]:
        """Returns the buffers of a kernel that takes *workspaces* of so many bytes besides."""
        for n, nbytes in enumerate(workspaces):
            if n == len(self._workspaces) or self._workspaces[n].bytes.size < nbytes:
                room = GuardedMemory(nbytes, np.dtype(np.uint8), len(self.memory) + n)
                self._workspaces[n : n + 1] = [room]
        used = [w.bytes for w in self._workspaces[: len(workspaces)]]
        return [*[m.bytes for m in self.memory], *used]

    def clear_outputs(self) -> None:
        """Makes the outputs such that an element that is not written shows."""
        for m in self.outputs:
            m.clear()

    def damage(self) -> str | None:
        """Returns a description of memory that a kernel wrote to illegally; None if it did not."""
        if not all(m.is_intact for m in (*self.memory, *self._workspaces)):
            return "it writes outside of its buffers"
        return "it writes to its inputs" if self._checksum() != self._sum else None

    def _checksum(self) -> list[int]:
        return [_rt.checksum(m.bytes) for m in self.inputs]


def written_buffers(function: Function) -> set[Buffer]:
    """Returns the buffers that the loops of *function* write, its outputs among them."""
    return {s.buffer for s in stores(function.body)}


def element_count(b: Buffer) -> int:
    """Returns the number of elements of a buffer, with the cost model's guesses for symbolic sizes."""
    return prod(static_size(s) for s in b.shape)


def static_size(e: Expr) -> int:
    """Returns an extent as a number, with the cost model's guesses for symbolic sizes."""
    known = simplify(substitute(e, {v: index(FALLBACK_SIZE) for v in free_vars(e)}))
    if not isinstance(known, Const):
        raise InputError(f"the extent {e} is not known before the kernel runs", hint="tune it with fixed shapes")
    return int(known.value)


def random_values(rng: np.random.Generator, buffer: Buffer, count: int, bound: int | None, *, positive: bool) -> Array:
    """Returns *count* values for *buffer*: indices below *bound* where that is given, else small whole numbers other than 0."""
    dtype = buffer.dtype
    if bound is not None:
        return rng.integers(0, bound, count).astype(dtype.numpy)
    if dtype.is_bool:
        return rng.integers(0, 2, count).astype(dtype.numpy)
    values = rng.integers(1, LARGEST + 1, count)
    if not positive and dtype.kind != "uint":
        values *= rng.choice([-1, 1], count)
    return values.astype(dtype.numpy)


def index_bounds(function: Function) -> Mapping[Buffer, int]:
    """Returns the buffers of integers that others are indexed by, and a bound that keeps all of these accesses in range.

    A number that is an index as it stands, but for conversions and for an extent added to negative ones, may be any below the
    extent. Of one that is computed with, only 0 and 1 are known to be good: those that models are checked with.
    """
    bounds: dict[Buffer, int] = {}
    for access in _accesses(function):
        for place, extent in zip(access.indices, access.buffer.shape, strict=True):
            inner = [n for n in _nodes(place) if isinstance(n, Load) and n.buffer.dtype.is_int]
            if not inner:
                continue
            direct = not any(isinstance(n, Mul | Var) for n in _nodes(place, into_loads=False))
            size = static_size(extent)
            for n in inner:
                bounds[n.buffer] = max(1, min(bounds.get(n.buffer, size), size if direct else 2))
    return bounds


def _accesses(function: Function) -> list[Load | Store]:
    found: list[Load | Store] = list(stores(function.body))
    for s in statements(function.body):
        for e in own_exprs(s):
            found += [n for n in _nodes(e) if isinstance(n, Load)]
    return found


def _nodes(e: Expr, *, into_loads: bool = True) -> list[Node]:
    """Returns the nodes of *e*; without *into_loads*, those of the indices of loads are left out."""
    seen: dict[Node, None] = {}
    stack: list[Node] = [e]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen[n] = None
            stack += [] if isinstance(n, Load) and not into_loads else n.children()
    return list(seen)
