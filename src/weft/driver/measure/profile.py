"""How long each kernel of a model takes in a run: all are called in turn, as the model calls them, with a clock between them.

The calls are those of one run of the model's host program, interpreted: of a loop, those of all of its iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from time import perf_counter, perf_counter_ns, thread_time_ns
from typing import Any, Final, TypeAlias

import numpy as np

from weft.codegen import Image, compile_program, link_here
from weft.codegen.interp import run
from weft.driver.build import Compilation
from weft.driver.progress import Progress, Span
from weft.graph import dim_text, host_nodes
from weft.ir import Const, Expr
from weft.loop import Buffer, parse_program
from weft.native import _rt
from weft.support.errors import InputError
from weft.targets import Target

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
KernelCall: TypeAlias = tuple[_rt.Image, int, Sequence[Bytes]]
"""A kernel's code, where it begins in it, and its buffers."""

MOST_ROUNDS: Final = 200
FEWEST_ROUNDS: Final = 2
ROUND: Final = 1e-3
"""Seconds that runs are repeated for before other work comes between them."""

FEWEST_REPEATS, MOST_REPEATS = 3, 50
TRACED: Final = 0.5
"""Seconds of runs of which the one of median duration is traced."""

COPIED: Final = 64
"""Bytes of a buffer that the calls of a loop have for themselves: those of single numbers, by which they read and write."""

CLEAR: Final = 100
"""How many times longer than reading the processor's time a kernel takes, on average, where that clock is used."""


@dataclass(frozen=True)
class Timing:
    """Where the time of a run goes, in seconds: medians over many runs.

    *kernels* has the time of each kernel, in order; *in_turn* is that of all of them in one run; *run* that of a call of the
    model, 0 where that was not asked for. All are processor time, or all are wall time.
    """

    kernels: tuple[float, ...]
    in_turn: float
    run: float = 0.0
    is_processor_time: bool = False

    @property
    def inside(self) -> float:
        """The time in kernels."""
        return sum(self.kernels)

    @property
    def interrupted(self) -> float:
        """The time by which a run exceeds the sum of the kernels' medians: other programs had the processor meanwhile."""
        return min(max(0.0, self.in_turn - self.inside), max(0.0, self.run - self.inside))

    @property
    def outside(self) -> float:
        """The time of a run outside of kernels: the call, checks of the inputs, and memory for the outputs."""
        return max(0.0, self.run - self.inside - self.interrupted)


class Profiler:
    """The kernels of a compiled model of static shapes, called in turn as the model's entry program calls them for *inputs*.

    `groups` has the group of each call. A call uses up to *threads* threads. Raises `InputError` for a model of symbolic shapes.
    """

    def __init__(self, made: Compilation, inputs: Mapping[str, np.ndarray], threads: int = 1) -> None:
        check_profiled(made)
        self.threads = threads
        self.flush = made.package.denormals == "flush"
        plan, graph = made.plan, made.fused.graph
        self.outputs = [_room([_static(s) for s in v.shape], v.dtype.numpy) for v in graph.outputs]
        given = [np.ascontiguousarray(inputs[v.name]) for v in graph.inputs]
        arena = _room([_static(plan.size)], np.dtype(np.uint8))
        memory = [_elements(x) for x in (*given, *self.outputs)] + [arena, np.frombuffer(_weights(made), np.uint8)]
        self.names = {key: k.name for key, k in made.kernels.items()}
        named = {k.name: key for key, k in made.kernels.items()}
        first = {g.key: g for g in reversed(made.fused.kernel_calls)}
        images = {k.name: _mapped(link_here([k.module], made.target), k.name) for k in made.kernels.values()}
        called, self.calls = self._trace(made, memory, images)
        self.groups = made.fused.calls if not made.fused.has_control_flow else [first[named[name]] for name in called]
        self._nothing = _empty_call(made.target)

    def _trace(
        self, made: Compilation, memory: Sequence[np.ndarray], images: Mapping[str, tuple[_rt.Image, int]]
    ) -> tuple[list[str], list[KernelCall]]:
        """Runs the model once; returns the names of the kernels that it calls, and the calls."""
        host = made.host
        names: list[str] = []
        calls: list[KernelCall] = []
        loops = made.fused.has_control_flow

        def call(name: str, *places: tuple[np.ndarray, int]) -> None:
            traced = (
                *images[name],
                [_as_it_is(_bytes(array[at:])) if loops else _bytes(array[at:]) for array, at in places],
            )
            self._stamps([traced], 1, processor_time=False)
            names.append(name)
            calls.append(traced)

        library = {name: partial(call, name) for name in images}
        further = [
            _room([_static(e) for e in p.shape], p.dtype.numpy)
            for p in host.entry.params[len(memory) :]
            if isinstance(p, Buffer)
        ]
        run(host, [*memory, *further], library=library)
        return names, calls

    def run(self, repeats: int = 1, *, processor_time: bool = False) -> list[list[int]]:
        """Runs the kernels; returns the nanoseconds on the clock before the first and after each, for each repeat."""
        return self._stamps(self.calls, repeats, processor_time=processor_time)

    def _stamps(self, calls: Sequence[KernelCall], repeats: int, *, processor_time: bool) -> list[list[int]]:
        return _rt.time_in_turn(calls, repeats, threads=self.threads, flush=self.flush, processor_time=processor_time)

    def measure(
        self, budget: float = 2.0, progress: Progress | None = None, run: Callable[[], object] | None = None
    ) -> Timing:
        """Returns the times of kernels, and of *run*, a call of the model: medians over the runs that fit into *budget*
        seconds.

        The runs of the kernels and those of the model alternate, so that other load on the machine affects both. One thread is
        timed by its processor time where kernels are long enough for this, all else by the clock on the wall.
        """
        duration = self._duration()
        use_processor_time = self._has_clear_processor_time(duration)
        now = thread_time_ns if use_processor_time else perf_counter_ns
        repeats = _between(FEWEST_REPEATS, ROUND / duration, MOST_REPEATS)
        taken: list[list[int]] = []
        runs: list[int] = []
        begin = perf_counter()
        for n in range(MOST_ROUNDS):
            gone = perf_counter() - begin
            if n >= FEWEST_ROUNDS and gone > budget:
                break
            if progress is not None:
                progress("profile", int(100 * max(n / MOST_ROUNDS, min(1.0, gone / budget))), 100)
            taken += map(
                _differences, self.run(repeats, processor_time=use_processor_time)[1:]
            )  # the first finds cold caches
            if run is not None:
                runs += _differences(_times_of(run, repeats, now))[1:]
        cost = self._cost(processor_time=use_processor_time)
        kernels = [max(0.0, median(of_one) - cost) * 1e-9 for of_one in zip(*taken, strict=True)]
        in_turn = median(map(sum, taken)) - cost * len(kernels)
        run_seconds = median(runs) * 1e-9 if runs else 0.0
        return Timing(tuple(kernels), max(0.0, in_turn) * 1e-9, run_seconds, use_processor_time)

    def spans(self) -> list[Span]:
        """Returns when each group began and ended in one run: that of median duration, of several."""
        runs = self.run(_between(FEWEST_REPEATS, TRACED / self._duration(), MOST_REPEATS))
        typical = sorted(runs, key=lambda stamps: stamps[-1] - stamps[0])[len(runs) // 2]
        return [
            Span(self.names[g.key], "run", begin * 1e-9, end * 1e-9, facts={"for": g.source})
            for g, (begin, end) in zip(self.groups, pairwise(typical), strict=True)
        ]

    def _duration(self) -> float:
        """Returns about how many seconds a run takes, the second of two."""
        stamps = self.run(2)[-1]
        return max(1, stamps[-1] - stamps[0]) * 1e-9

    def _has_clear_processor_time(self, duration: float) -> bool:
        """Tells whether to use processor time, which excludes other programs' time; reading it costs a system call."""
        return self.threads == 1 and duration * 1e9 > CLEAR * self._cost(processor_time=True) * len(self.calls)

    def _cost(self, *, processor_time: bool) -> float:
        """Returns the nanoseconds between two readings of the clock with a kernel between them that does nothing."""
        return median(
            x
            for stamps in self._stamps([self._nothing] * 16, 20, processor_time=processor_time)
            for x in _differences(stamps)
        )


def check_profiled(made: Compilation) -> None:
    """Raises `InputError` for a model whose kernels are not the same, on tensors of the same sizes, in each call."""
    if any(f.graph.late_sizes for f in made.fused.all_graphs):
        raise InputError(
            "the kernels of a model can't be timed one by one where it has sizes that only a run tells",
            hint="time the whole model: weft bench MODEL",
        )
    on_host = next(host_nodes(made.fused.graph), None)
    if on_host is not None:
        raise InputError(
            "the kernels of a model can't be timed one by one where it has strings, or random numbers without a seed "
            f"({on_host.source or on_host.op})",
            hint="time the whole model: weft bench MODEL",
        )


def _between(least: int, value: float, most: int) -> int:
    return int(min(most, max(least, value)))


def _differences(stamps: Sequence[int]) -> list[int]:
    return [b - a for a, b in pairwise(stamps)]


def _times_of(call: Callable[[], object], repeats: int, now: Callable[[], int]) -> list[int]:
    """Returns the readings of the clock before the first call and after each."""
    stamps = [now()]
    for _ in range(repeats):
        call()
        stamps.append(now())
    return stamps


def _mapped(image: Image, name: str) -> tuple[_rt.Image, int]:
    """Returns a kernel's code in memory, and where it begins there."""
    return _rt.Image(image.code), image.symbols[name]


def _room(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Returns zeros in memory such as models have: aligned, and in huge pages where it is large."""
    count = int(np.prod(shape, dtype=np.int64))
    made: Bytes = np.asarray(memoryview(_rt.Block(max(1, count) * dtype.itemsize)))
    made[:] = 0
    values: np.ndarray[Any, Any] = made.view(dtype)[:count]
    return values.reshape(shape)


def _as_it_is(x: Bytes) -> Bytes:
    """Returns a copy of a few bytes, as the number of an iteration, which the host program changes between calls."""
    return x.copy() if x.nbytes <= COPIED else x


def _elements(x: np.ndarray) -> np.ndarray:
    """Returns the elements of *x* as a host program takes them, in one dimension."""
    return x.reshape(-1)


def _bytes(x: np.ndarray) -> Bytes:
    return x.reshape(-1).view(np.uint8)


def _weights(made: Compilation) -> Any:
    return made.package.constants


def _static(e: Expr) -> int:
    if not isinstance(e, Const):
        raise InputError(f"the dimension {dim_text(e)} is dynamic", hint="fix the sizes of the model's inputs")
    return int(e.value)


def _empty_call(target: Target) -> KernelCall:
    """Returns a call of a kernel that does nothing."""
    program = parse_program("def nothing(x: u8[64], y: u8[64], z: u8[64]):\n    pass\n")
    image = link_here([compile_program(program, target)], target)
    return *_mapped(image, "nothing"), [np.zeros(64, np.uint8) for _ in range(3)]
