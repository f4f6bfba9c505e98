"""How long each kernel of a model takes, in the model: run one by one in their order, over the model's own arena and weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter, thread_time_ns
from typing import Any, Final

import numpy as np

from weft.codegen.llvm.compile import compile_function_module
from weft.codegen.llvm.link import Image, link
from weft.driver.build import Compilation
from weft.driver.entry import place_constants
from weft.graph.graph import Constant, Value
from weft.graph.groups import Group
from weft.graph.memory import Place
from weft.graph.text import dim_text
from weft.ir.expr import Const, Expr
from weft.loop.parser import parse_program
from weft.native import _rt
from weft.support.errors import InputError
from weft.targets.target import Target

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

MOST_ROUNDS: Final = 200
FEWEST_ROUNDS: Final = 5


class Profiler:
    """The kernels of a compiled model of static shapes, each with its own parameters in the memory where the model has them.

    Raises `InputError` for a model with symbolic shapes.
    """

    def __init__(self, made: Compilation, inputs: Mapping[str, np.ndarray]) -> None:
        self.made = made
        graph = made.fused.graph
        self.inputs = [np.ascontiguousarray(inputs[v.name]) for v in graph.inputs]
        self.outputs = [np.zeros([_static(s, v) for s in v.shape], v.dtype.numpy) for v in graph.outputs]
        self.arena = _all_bytes(_rt.Block(max(1, _static(made.plan.size, None))))
        self.arena.fill(0)
        self.weights = _all_bytes(made.package.constants)
        self.offsets = place_constants(made.fused).offsets
        images = {key: link([k.object]) for key, k in made.kernels.items()}
        self.calls = [self._call(n, g, images[g.key]) for n, g in enumerate(made.fused.groups)]

    def seconds(self, budget: float = 2.0) -> list[float]:
        """Returns the processor time of each group in order: the median over the rounds that fit into *budget* seconds."""
        nothing = _empty_call(self.made.target)
        taken: list[list[int]] = [[] for _ in self.calls]
        idle: list[int] = []
        begin = perf_counter()
        for n in range(MOST_ROUNDS):
            if n > FEWEST_ROUNDS and perf_counter() - begin > budget:
                break
            idle.append(_nanoseconds(nothing))
            for call, times in zip(self.calls, taken, strict=True):
                times.append(_nanoseconds(call))
        overhead = median(idle)
        return [max(0.0, median(times[1:]) - overhead) * 1e-9 for times in taken]  # the first round warms up

    def _call(self, step: int, group: Group, image: Image) -> Callable[[], None]:
        """Returns a call of the group's kernel."""
        buffers = [self._bytes(v) for v in (*group.inputs, *group.outputs, *self.made.plan.workspaces.get(step, ()))]
        offset = image.symbols[self.made.kernels[group.key].name]
        return lambda: _rt.call(image.code, offset, buffers)

    def _bytes(self, v: Value) -> Bytes:
        """Returns the memory of a value."""
        root = self.made.fused.root(v)
        place = self.made.plan.locations[root]
        begin = self.made.fused.offset(v)
        if isinstance(root, Constant):
            memory, begin = self.weights, begin + self.offsets[root]
        elif place.place is Place.ARENA:
            memory, begin = self.arena, begin + _static(place.offset, v)
        else:
            arrays = self.inputs if place.place is Place.INPUT else self.outputs
            memory = arrays[place.number].reshape(-1).view(np.uint8)
        size = v.dtype.bytes
        for s in v.shape:
            size *= _static(s, v)
        return memory[begin : begin + size]


def _all_bytes(block: Any) -> Bytes:
    return np.frombuffer(block, np.uint8)


def _static(e: Expr, v: Value | None) -> int:
    if not isinstance(e, Const):
        name = f"the size {dim_text(e)} of {v.name}" if v is not None else f"the size {dim_text(e)} of the arena"
        raise InputError(f"{name} is open", hint="fix the sizes of the model's inputs")
    return int(e.value)


def _nanoseconds(call: Callable[[], None]) -> int:
    start = thread_time_ns()
    call()
    return thread_time_ns() - start


def _empty_call(target: Target) -> Callable[[], None]:
    """Returns a call of a kernel that does nothing: what calling takes from here."""
    program = parse_program("def nothing(x: u8[64], y: u8[64], z: u8[64]):\n    pass\n")
    image = link([compile_function_module(program, target)])
    buffers = [np.zeros(64, np.uint8) for _ in range(3)]
    return lambda: _rt.call(image.code, image.symbols["nothing"], buffers)
