"""Runs a candidate: its results are checked first, then it is timed in turns with the incumbent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

from weft.native import _rt
from weft.support.errors import DeviceError, WeftError
from weft.targets import Target
from weft.tune.measure.build_candidate import read_program
from weft.tune.measure.device_timing import DeviceKernel, DeviceTimer
from weft.tune.measure.expected_outputs import Reference
from weft.tune.measure.jobs import Built, Failed, Kind, Measured, RunJob
from weft.tune.measure.stage_clock import StageClock
from weft.tune.measure.timing import Call, Timer
from weft.tune.measure.turns import C, TurnTimer

_ALONE = Lock()
"""Held by the measurement that a process makes: two would disturb each other, and they share the buffers."""


@dataclass(frozen=True, eq=False)
class Bench:
    """All that the candidates for one program are measured with, and the incumbents that were found right on it."""

    reference: Reference
    right: set[bytes]


def run(job: RunJob) -> Measured | Failed:
    """Checks and times the candidate of *job*; a process does this for one at a time."""
    clock = StageClock()
    with _ALONE:
        try:
            return replace(_measured(job, clock), stages=clock.seconds)
        except MemoryError:
            return Failed("memory", "there is no memory left to run it in", clock.seconds)
        except _WrongResults as error:
            return Failed("wrong", str(error), clock.seconds)
        except _rt.Failed as error:
            kind: Kind = "memory" if error.args[0] == _rt.NO_MEMORY else "raised"
            return Failed(kind, f"the kernel returned the status {error.args[0]}", clock.seconds)
        except DeviceError as error:
            return Failed("raised", str(error), clock.seconds)
        except WeftError as error:
            return Failed("error", str(error), clock.seconds)


class _WrongResults(Exception):
    """A kernel computes something else than its program, or writes where it may not."""


def _measured(job: RunJob, clock: StageClock) -> Measured:
    with clock.stage("inputs"):
        bench = _bench(job.program, job.target, job.seed)
    if job.target.kind == "grid":
        return _timed(job, bench, _on_device, DeviceTimer(job.limits), clock)
    timer = Timer(bench.reference.arguments.sizes, job.threads, job.limits, job.target)
    return _timed(job, bench, _call, timer, clock)


def _timed(
    job: RunJob, bench: Bench, call: Callable[[Built, Bench], C], timer: TurnTimer[C], clock: StageClock
) -> Measured:
    """Checks and times the candidate of *job*, which *call* makes ready to be called."""
    with clock.stage("check"):
        candidate = call(job.candidate, bench)
        first, error = _check(candidate, bench, timer)
        incumbent = None
        if job.incumbent is not None:
            incumbent = call(job.incumbent, bench)
            if job.incumbent.digest not in bench.right:
                _check(incumbent, bench, timer, who="the incumbent: ")
                bench.right.add(job.incumbent.digest)
    with clock.stage("time"):
        measured = timer.measure(candidate, incumbent, first)
    return replace(measured, error=error)


@lru_cache(maxsize=4)
def _bench(program: str, target: Target, seed: int) -> Bench:
    return Bench(Reference(read_program(program), program, target, seed), set())


@lru_cache(maxsize=4)
def _mapped(code: bytes) -> _rt.Image:
    """Returns *code* as it can be called; that of the last few, the incumbent's among them, stays mapped."""
    return _rt.Image(code)


def _call(built: Built, bench: Bench) -> Call:
    return _mapped(built.code), built.offset, bench.reference.arguments.arrays(built.workspaces)


def _on_device(built: Built, bench: Bench) -> DeviceKernel:
    return _loaded(built.code, bench)


@lru_cache(maxsize=4)
def _loaded(saved: bytes, bench: Bench) -> DeviceKernel:
    """Returns a kernel on its device; the last few stay there."""
    arguments = bench.reference.arguments
    return DeviceKernel(saved, [m.values for m in arguments.inputs], [m.values for m in arguments.outputs])


def _check(call: C, bench: Bench, timer: TurnTimer[C], who: str = "") -> tuple[float, float]:
    """Calls a kernel once; returns the seconds it took, and the error of its results. Raises `_WrongResults`."""
    arguments = bench.reference.arguments
    arguments.clear_outputs()
    taken = timer.first(call)
    damage = arguments.damage()
    if damage is not None:
        _bench.cache_clear()  # the next candidate gets memory of its own
        raise _WrongResults(f"{who}{damage}")
    error = bench.reference.error()
    if error > 1:
        raise _WrongResults(f"{who}the largest error is {error:.3g} times what rounding explains")
    return taken, error
