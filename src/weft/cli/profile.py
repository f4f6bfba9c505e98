"""`weft run --profile` and `--trace`: the time of each kernel, and a timeline of compilation and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

import numpy as np

import weft
from weft.cli.compile_options import CommandOptions
from weft.cli.console import print_table, print_text
from weft.cli.models import Opened
from weft.cli.output_files import write_json
from weft.driver.build import read_model
from weft.driver.cache.cache_key import Shapes
from weft.driver.measure.chrome_trace import chrome_trace
from weft.driver.measure.profile import Profiler, Timing
from weft.driver.measure.random_inputs import example_sizes
from weft.driver.measure.roofline import work_of
from weft.driver.progress import Span
from weft.graph import Group
from weft.native import _rt
from weft.runtime.artifact import is_artifact
from weft.runtime.model import Model
from weft.support.dim import Dim
from weft.support.errors import InputError

Arrays: TypeAlias = Mapping[str, np.ndarray]

COLUMNS = ("#", "kernel", "calls", "us", "of all", "GFLOP/s", "first for")
"""The columns of a kernel: "us" and "GFLOP/s" are those of one call, "of all" is the part of the kernels' time."""


@dataclass(frozen=True)
class Row:
    """A kernel, by its name and its number in `weft inspect --kernels`: its calls, and the time, rate and text of one."""

    number: int
    name: str
    calls: int
    seconds: float
    gflops: float
    first_call: str

    @property
    def total(self) -> float:
        """The seconds of all calls."""
        return self.calls * self.seconds


@dataclass(frozen=True)
class ProfileOptions:
    """The measurements asked for: the kernels' times (*profile*), measured for *seconds*, and a *trace*, with the file for it."""

    profile: bool = False
    trace: Path | None = None
    seconds: float = 2.0


def profiled(
    path: Path,
    asked: CommandOptions,
    threads: int | None,
    arrays: Arrays,
    profile: bool,
    trace: Path | None,
    seconds: float,
) -> Profiled:
    """Opens a model to be profiled; the arguments are those of `Profiled` and `ProfileOptions`."""
    return Profiled(path, asked, threads, arrays, ProfileOptions(profile, trace, seconds))


class Profiled(Opened):
    """A model that was compiled for the shapes of its inputs, with all that was made on the way."""

    def __init__(
        self, path: Path, asked: CommandOptions, threads: int | None, arrays: Arrays, wish: ProfileOptions
    ) -> None:
        """Compiles a model for the inputs in *arrays*; dynamic dimensions then have sizes as with `--random`."""
        if is_artifact(path):
            raise InputError(
                f"{path} is compiled: its kernels can't be told apart", hint="profile the model it was made from"
            )
        start = perf_counter()
        given: dict[str, object] = {**asked.sizes, **{name: a.shape for name, a in arrays.items()}}
        shapes: Shapes = {n: s for n, s in given.items() if isinstance(s, int | tuple | Dim)}
        with asked.progress() as progress:
            graph, _ = read_model(str(path), shapes)
            fixed: Shapes = {**shapes, **example_sizes(graph, asked.sizes)}
            self.made = weft.build(str(path), asked.machine(), asked.options, fixed, asked.cache(), progress)
        super().__init__(Model(self.made.package, threads=threads), perf_counter() - start)
        self.asked, self.wish, self.path = asked, wish, path
        self.threads = _rt.threads(threads or 0)
        self.rows: list[Row] = []
        self.timing = Timing((), 0.0)

    def look(self, arrays: Arrays) -> dict[str, object]:
        """Times the kernels, and writes the trace, as wished."""
        if self.wish.trace is not None:
            write_json(self.wish.trace, self.trace(arrays))
        if not self.wish.profile:
            return {}
        with self.asked.progress() as progress:
            profiler = Profiler(self.made, arrays, self.threads)
            self.timing = profiler.measure(self.wish.seconds, progress, partial(self.model, **arrays))
        self.rows = self.kernels(profiler.groups, self.timing.kernels)
        return {"profile": profile_facts(self.rows, self.timing, self.threads)}

    def show(self) -> None:
        """Prints the kernels' times, and where the trace is."""
        if self.wish.profile:
            show_profile(self.rows, self.timing, self.threads)
        if self.wish.trace is not None and not self.asked.quiet:
            print_text(f"wrote {self.wish.trace}: open it in ui.perfetto.dev or chrome://tracing")

    def kernels(self, groups: Sequence[Group], times: Sequence[float]) -> list[Row]:
        """Returns the kernels that are called, the most expensive first, given the group of each call and its seconds.

        A search for an index outside its limits, and the kernels that only it needs, are in no call that succeeds.
        """
        made = self.made
        taken: dict[str, list[float]] = {}
        for group, time in zip(groups, times, strict=True):
            taken.setdefault(group.key, []).append(time)
        first = {g.key: g for g in reversed(groups)}
        rows = []
        for n, key in enumerate(made.kernels, 1):
            if (of_key := taken.get(key)) is None:
                continue
            mean = sum(of_key) / len(of_key)
            rate = work_of(first[key], made.target).operations / mean / 1e9 if mean else 0.0
            rows.append(Row(n, made.kernels[key].name, len(of_key), mean, rate, first[key].source))
        return sorted(rows, key=lambda r: -r.total)

    def trace(self, arrays: Arrays) -> dict[str, object]:
        """Returns the trace of compiling, as far as it was not in the cache, and of a typical run, kernel by kernel."""
        kernels = Profiler(self.made, arrays, self.threads).spans()
        whole = [Span("run", "run", kernels[0].begin, kernels[-1].end)] if kernels else []
        facts = {"model": str(self.path), "target": self.asked.target, "threads": self.threads}
        return chrome_trace([*self.made.spans, *whole, *kernels], facts)


def show_profile(rows: list[Row], timing: Timing, threads: int) -> None:
    """Prints the result of `Profiled.kernels`, and where the rest of a run goes."""
    total = sum(r.total for r in rows)
    cells = [
        [
            str(r.number),
            r.name,
            str(r.calls),
            _microseconds(r.seconds),
            f"{r.total / total:.1%}" if total else "-",
            f"{r.gflops:.1f}",
            r.first_call,
        ]
        for r in rows
    ]
    print_text("")
    print_table(COLUMNS, cells, elastic="first for")
    for line in account(timing, threads):
        print_text(line)


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.{1 if seconds >= 1e-5 else 2}f}"


def account(timing: Timing, threads: int) -> list[str]:
    """Returns in words where the time of a run goes: times that add up."""
    clock = " of processor time" if timing.is_processor_time else ""
    workers = f"{threads} thread{'s' if threads > 1 else ''}"
    unit, scale = ("us", 1e6) if timing.run < 1e-3 else ("ms", 1e3)
    parts = {
        "kernels": timing.inside,
        "the rest of the call: checks of the inputs, memory for the outputs": timing.outside,
        "interruptions: other programs want the processors and caches too": timing.interrupted,
    }
    return [
        f"a run takes {timing.run * scale:.2f} {unit}{clock} on {workers}, the median of many:",
        *[f"{seconds * scale:9.2f} {unit}  {what}" for what, seconds in parts.items()],
    ]


def profile_facts(rows: list[Row], timing: Timing, threads: int) -> dict[str, object]:
    """Returns the same for JSON."""
    kernels = [
        {
            "number": r.number,
            "name": r.name,
            "calls": r.calls,
            "seconds": r.seconds,
            "gflops": r.gflops,
            "first_call": r.first_call,
        }
        for r in rows
    ]
    return {
        "threads": threads,
        "run_seconds": timing.run,
        "kernel_seconds": timing.inside,
        "outside_seconds": timing.outside,
        "interrupted_seconds": timing.interrupted,
        "kernels": kernels,
    }
