"""How long each kernel of a model takes, in the model: run one by one in their order, over the model's own arena and weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter, perf_counter_ns, thread_time_ns
from typing import Any, Final

import numpy as np

from weft.codegen.llvm.compile import compile_function_module
from weft.codegen.llvm.link import Image, link
from weft.driver.build import Compilation
from weft.driver.entry import entry_program, place_constants
from weft.driver.function import NativeFunction
from weft.driver.progress import Progress, Span
from weft.graph.groups import Group
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

    A call uses up to *threads* threads: one is timed by its processor time, several by the clock on the wall. Raises `InputError`
    for a model with symbolic shapes.
    """

    def __init__(self, made: Compilation, inputs: Mapping[str, np.ndarray], threads: int = 1) -> None:
        self.target = made.target
        self.groups = made.fused.groups
        self.threads = threads
        fused, plan, graph = made.fused, made.plan, made.fused.graph
        self.outputs = [np.zeros([_static(s) for s in v.shape], v.dtype.numpy) for v in graph.outputs]
        given = [np.ascontiguousarray(inputs[v.name]) for v in graph.inputs]
        arena = np.zeros(max(1, _static(plan.size)), np.uint8)
        memory = [_bytes(x) for x in (*given, *self.outputs)] + [arena, np.frombuffer(_weights(made), np.uint8)]
        self.names = {key: k.name for key, k in made.kernels.items()}
        main = entry_program(fused, plan, place_constants(fused), self.names).functions[0]
        images = {k.name: link([k.object]) for k in made.kernels.values()}
        self.calls = [
            _bound(s, images, dict(zip(main.params, memory, strict=False)), threads) for s in calls_of(main.body)
        ]

    def seconds(self, budget: float = 2.0, progress: Progress | None = None) -> list[float]:
        """Returns the time of each group in order: the median over the rounds that fit into *budget* seconds."""
        nothing, now = _empty_call(self.target), thread_time_ns if self.threads == 1 else perf_counter_ns
        wake = _waking_call(self.target, self.threads)
        taken: list[list[int]] = [[] for _ in self.calls]
        begin = perf_counter()
        for n in range(MOST_ROUNDS):
            gone = perf_counter() - begin
            if n > FEWEST_ROUNDS and gone > budget:
                break
            if progress is not None:
                progress("profile", int(100 * max(n / MOST_ROUNDS, min(1.0, gone / budget))), 100)
            for call, times in zip(self.calls, taken, strict=True):
                wake()
                nothing()  # so that neither of the next two has to fetch the way there
                times.append(-_nanoseconds(nothing, now) + _nanoseconds(call, now))
        return [max(0.0, median(times[1:])) * 1e-9 for times in taken]  # the first round warms up

    def spans(self) -> list[Span]:
        """Returns when each group began and ended in one run, the second of two."""
        for call in self.calls:
            call()
        return [self._span(g, call) for g, call in zip(self.groups, self.calls, strict=True)]

    def _span(self, group: Group, call: Callable[[], None]) -> Span:
        begin = perf_counter()
        call()
        return Span(self.names[group.key], "run", begin, perf_counter(), facts={"for": group.source})


def calls_of(body: Stmt) -> list[Stmt]:
    """Returns the calls of an entry program in order, each with the views it is in; not what it checks between them."""
    steps = list(body.body) if isinstance(body, Seq) else [body]
    return [s for s in steps if isinstance(_inner(s), Call)]


def _inner(s: Stmt) -> Stmt:
    while isinstance(s, View):
        s = s.body
    return s


def _bound(s: Stmt, images: Mapping[str, Image], memory: dict[Param, Bytes], threads: int) -> Callable[[], None]:
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
    return lambda: _rt.call(image.code, image.symbols[s.callee], buffers, threads=threads)


def _bytes(x: np.ndarray) -> Bytes:
    return x.reshape(-1).view(np.uint8)


def _weights(made: Compilation) -> Any:
    return made.package.constants


def _static(e: Expr) -> int:
    if not isinstance(e, Const):
        raise InputError(f"the size {dim_text(e)} is open", hint="fix the sizes of the model's inputs")
    return int(e.value)


def _nanoseconds(call: Callable[[], None], now: Callable[[], int]) -> int:
    start = now()
    call()
    return now() - start


def _empty_call(target: Target) -> Callable[[], None]:
    """Returns a call of a kernel that does nothing: what calling takes from here."""
    program = parse_program("def nothing(x: u8[64], y: u8[64], z: u8[64]):\n    pass\n")
    image = link([compile_function_module(program, target)])
    buffers = [np.zeros(64, np.uint8) for _ in range(3)]
    return lambda: _rt.call(image.code, image.symbols["nothing"], buffers)


def _waking_call(target: Target, threads: int) -> Callable[[], None]:
    """Returns a call that has all threads at work, as a model's parallel loops have: those that slept are awake after it."""
    if threads == 1:
        return lambda: None
    text = f"def wake(x: f32[{threads * 64}]):\n    for i in parallel(0, {threads}):\n        x[i * 64] = 1.0\n"
    made = NativeFunction(parse_program(text), target)
    room = np.zeros(threads * 64, np.float32)
    return lambda: made(room, threads=threads)
