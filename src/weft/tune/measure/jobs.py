"""The jobs of measurement, and their results: plain values that can be pickled.

build(BuildJob) -> Built | Failed
run(RunJob) -> Measured | Failed
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Literal, TypeAlias

from weft.targets import Target
from weft.tune.measure.ratio_interval import Interval

Seconds: TypeAlias = tuple[tuple[str, float], ...]
"""The processor seconds of each stage of a job, in order."""

Kind: TypeAlias = Literal["plan", "error", "wrong", "raised", "memory", "timeout", "crash"]


@dataclass(frozen=True)
class BuildJob:
    """A kernel to build: its loops, and the plan that they are scheduled by, as texts.

    Without *plan*, the rules take their cheapest candidates; one that *has_gaps* is completed by them. With
    *template*, the name of a function as `tune.template.name_of` has it, that schedules instead of the rules. The flags are those
    of `driver.kernel.KernelRequest`. A job that is *trusted* is scheduled without the proofs that only refuse
    (`schedule.legality.trust`): for kernels whose results are compared.
    """

    program: str
    plan: str | None
    target: Target
    may_alias: bool = False
    parallel: bool = True
    lift: bool = False
    passes: tuple[str, ...] = ()
    has_gaps: bool = False
    template: str = ""
    trusted: bool = False


@dataclass(frozen=True)
class Built:
    """A kernel's machine code: position-independent bytes in which it begins at *offset*.

    `workspaces` are the bytes of each buffer that it takes after its inputs and outputs. `plan` is the plan as it was followed;
    `trace` has the steps that made the schedule, as JSON.
    """

    code: bytes
    offset: int
    workspaces: tuple[int, ...]
    plan: str
    trace: str
    stages: Seconds = ()

    @cached_property
    def digest(self) -> bytes:
        """A number that only kernels of the same code share."""
        return sha256(self.code).digest()


@dataclass(frozen=True)
class Failed:
    """A job without a result, and why.

    `kind` is "plan" for a plan of another program, "error" for any other error of the compiler, "wrong" for other results than
    those of the unscheduled loops, "raised" for a status that the kernel returned, "memory" where that ran out; a worker that is
    killed after its time is a "timeout", one that dies a "crash".
    """

    kind: Kind
    message: str
    stages: Seconds = ()

    @property
    def spoils(self) -> bool:
        """Whether the process that it happened in can't be trusted any more."""
        return self.kind in ("wrong", "memory")


@dataclass(frozen=True)
class Limits:
    """When a measurement ends.

    It ends after *seconds* in kernels; once the interval of the ratio's median, which holds with *confidence*, is narrower than
    *width* of it; or at once where the candidate is clearly worse, by the factor *worse*. There are *fewest* to *most* repeats.
    Between two readings of the clock a kernel is called for *between* seconds. *evict* is how many bytes are read before each
    call, so that the kernel's operands are in the caches as in a model whose other kernels touch so much; None leaves that
    to the kernel's model, and is 0 where there is none (see `tune.cache_state`). *weights* are the numbers of the parameters that
    are found so; all other buffers are read again before the call, since the kernels before have just used their memory.
    """

    seconds: float = 0.02
    width: float = 0.02
    worse: float = 1.5
    confidence: float = 0.95
    fewest: int = 3
    most: int = 200
    between: float = 50e-6
    evict: int | None = None
    weights: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunJob:
    """A kernel to check and to time, in turns with *incumbent* where there is one; *program* is the text of its loops.

    Inputs are made from *seed*. One thread is timed by its processor time, several by the clock on the wall.
    """

    candidate: Built
    incumbent: Built | None
    program: str
    target: Target
    seed: int = 0
    threads: int = 1
    limits: Limits = Limits()


@dataclass(frozen=True)
class Measured:
    """A kernel's times, in seconds a call: `times` of each repeat, and `incumbent` those of the incumbent beside them.

    `ratio` is the interval of the median of candidate / incumbent. `is_early` tells that it was clearly worse, so that it was
    measured no further. `error` is the largest error relative to the allowed error, 0 for results that are equal to the last bit.
    """

    times: tuple[float, ...]
    incumbent: tuple[float, ...]
    ratio: Interval
    is_early: bool
    error: float
    stages: Seconds = ()

    @cached_property
    def seconds(self) -> float:
        """The median of the times."""
        return sorted(self.times)[len(self.times) // 2]
