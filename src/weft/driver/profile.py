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
from weft.driver.entry import entry_program, place_constants
from weft.graph.text import dim_text
from weft.ir.expr import Const, Expr
from weft.loop.nodes import Address, Call, Param, Seq, Stmt, View
from weft.loop.parser import parse_program
from weft.native import _rt
from weft.support.errors import InputError, RuntimeFailure
from weft.targets.target import Target

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

MOST_ROUNDS: Final = 200
FEWEST_ROUNDS: Final = 5


class Profiler:
    """The kernels of a compiled model of static shapes, each called as the model's entry program calls it, but one by one.

    Raises `InputError` for a model with symbolic shapes.
    """

    def __init__(self, made: Compilation, inputs: Mapping[str, np.ndarray]) -> None:
        self.target = made.target
        fused, plan, graph = made.fused, made.plan, made.fused.graph
        self.outputs = [np.zeros([_static(s) for s in v.shape], v.dtype.numpy) for v in graph.outputs]
        given = [np.ascontiguousarray(inputs[v.name]) for v in graph.inputs]
        arena = np.zeros(max(1, _static(plan.size)), np.uint8)
        memory = [_bytes(x) for x in (*given, *self.outputs)] + [arena, np.frombuffer(_weights(made), np.uint8)]
        names = {key: k.name for key, k in made.kernels.items()}
        main = entry_program(fused, plan, place_constants(fused), names).functions[0]
        images = {k.name: link([k.object]) for k in made.kernels.values()}
        self.calls = [_bound(s, images, dict(zip(main.params, memory, strict=False))) for s in calls_of(main.body)]

    def seconds(self, budget: float = 2.0) -> list[float]:
        """Returns the processor time of each group in order: the median over the rounds that fit into *budget* seconds."""
        nothing = _empty_call(self.target)
        taken: list[list[int]] = [[] for _ in self.calls]
        begin = perf_counter()
        for n in range(MOST_ROUNDS):
            if n > FEWEST_ROUNDS and perf_counter() - begin > budget:
                break
            for call, times in zip(self.calls, taken, strict=True):
                nothing()  # so that neither of the next two has to fetch the way there
                times.append(-_nanoseconds(nothing) + _nanoseconds(call))
        return [max(0.0, median(times[1:])) * 1e-9 for times in taken]  # the first round warms up


def calls_of(body: Stmt) -> list[Stmt]:
    """Returns the calls of an entry program in order, each with the views it is in."""
    return list(body.body) if isinstance(body, Seq) else [body]


def _bound(s: Stmt, images: Mapping[str, Image], memory: dict[Param, Bytes]) -> Callable[[], None]:
    """Returns a call, given where its buffers are."""
    while isinstance(s, View):
        memory[s.buffer] = memory[s.source][_static(s.offset) :]
        s = s.body
    if not isinstance(s, Call):
        raise RuntimeFailure(f"a model calls kernels, it does not {type(s).__name__}", hint="this is a bug in Weft")
    buffers = [
        memory[a.buffer][_static(a.indices[0]) * a.buffer.dtype.bytes :] for a in s.args if isinstance(a, Address)
    ]
    image = images[s.callee]
    return lambda: _rt.call(image.code, image.symbols[s.callee], buffers)


def _bytes(x: np.ndarray) -> Bytes:
    return x.reshape(-1).view(np.uint8)


def _weights(made: Compilation) -> Any:
    return made.package.constants


def _static(e: Expr) -> int:
    if not isinstance(e, Const):
        raise InputError(f"the size {dim_text(e)} is open", hint="fix the sizes of the model's inputs")
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
