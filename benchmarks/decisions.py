"""The decisions of the schedule rules on random operators, and the time that each of their candidates takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, log
from typing import Any

import numpy as np
from random_operators import random_cases

from weft.cost import Candidate, Choosing, Parallel, Question, predict_cycles
from weft.driver.build import fuse_graph, kernel_requests, optimize_graph, values_in_place
from weft.driver.function import NativeFunction
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.ir import Const
from weft.loop import Buffer, Program, canonical_text
from weft.native import _rt
from weft.schedule import apply_plan, carry_out, plan_with
from weft.targets import host

MOST_CANDIDATES = 5
"""Of a question: the chosen one, the two next in cost, and others by chance."""

TURNS, SECONDS = 12, 0.004
"""How often the candidates of a question are timed in turn, and for how long each time; the least time counts."""

NOISE = 0.03
"""Two times nearer to each other than this are not told apart."""


@dataclass(frozen=True)
class Alternative:
    """A candidate: what it was estimated to cost, the cycles predicted for the kernel with it, and the microseconds of that."""

    decision: str
    cycles: float
    predicted: float
    microseconds: float


@dataclass(frozen=True)
class Decided:
    """A decision of one kernel: its kind, the kernel, and the candidates, of which the first was chosen."""

    kind: str
    label: str
    alternatives: tuple[Alternative, ...]

    @property
    def regret(self) -> float:
        """How much longer the chosen candidate takes than the best."""
        return self.alternatives[0].microseconds / min(a.microseconds for a in self.alternatives) - 1

    def pairs(self) -> list[tuple[float, float]]:
        """Return, for each pair whose times differ, how right its costs are and how right its predictions: 1, 0, or a half."""
        return [
            (_ranked(a.cycles - b.cycles, a, b), _ranked(a.predicted - b.predicted, a, b))
            for a, b in combinations(self.alternatives, 2)
            if abs(log(a.microseconds / b.microseconds)) >= NOISE
        ]


def _ranked(difference: float, a: Alternative, b: Alternative) -> float:
    return 0.5 if difference == 0 else float((difference < 0) == (a.microseconds < b.microseconds))


def kernels(seed: int, count: int) -> Iterator[tuple[str, Program]]:
    """Yield the kernels of *count* random operators of known sizes."""
    options, target = CompileOptions(), host()
    for n, case in enumerate(random_cases(seed, count)):
        graph = optimize_graph(to_graph(case.model(f"decisions-{seed}-{n}")), target, options, cache=None)
        fused = fuse_graph(graph, target, options)
        for request in kernel_requests(fused, options, values_in_place(fused, options, target)).values():
            yield f"{case.label}: {request.name}", request.program


def decided(seed: int, count: int, threads: int = 1) -> Iterator[Decided]:
    """Yield the decisions, on the kernels of random operators, in which candidates make different programs.

    Those to share loops are timed on so many *threads*, which takes as many idle cores; on one they are left out.
    """
    rng = np.random.default_rng(seed)
    for label, program in kernels(seed, count):
        best = Choosing(host())
        carry_out(program, best)
        for n, question in enumerate(best.questions):
            shares = isinstance(question.chosen.decision, Parallel)
            if shares and threads == 1:
                continue
            made = _alternatives(program, best.questions[:n], question, rng, threads if shares else 1)
            if made is not None:
                yield replace(made, label=f"{label}, {question.subject}")


def _alternatives(
    program: Program, before: Sequence[Question], question: Question, rng: np.random.Generator, threads: int
) -> Decided | None:
    """Return the candidates of one question with their times; None if they all make the same program."""
    others = sorted((c for c in question.candidates if c is not question.chosen), key=lambda c: c.cycles)
    chosen = [question.chosen, *others[:2]]
    chosen += [others[2:][n] for n in rng.permutation(len(others[2:]))[: MOST_CANDIDATES - len(chosen)]]
    made: dict[str, tuple[Candidate[Any], Program]] = {}
    for c in chosen:
        scheduled = apply_plan(program, plan_with(program, host(), before, c)).program
        made.setdefault(canonical_text(scheduled), (c, scheduled))
    if len(made) < 2:
        return None
    times = timed([s for _, s in made.values()], threads)
    rows = [
        Alternative(str(c.decision), c.cycles, predict_cycles(s, host()), t)
        for (c, s), t in zip(made.values(), times, strict=True)
    ]
    return Decided(type(question.chosen.decision).__name__, "", tuple(rows))


def timed(programs: Sequence[Program], threads: int) -> list[float]:
    """Return the microseconds of each program, measured in turns: processor time on one thread, wall time on more."""
    functions = [NativeFunction(p, host()) for p in programs]
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal([int(s.value) for s in p.shape if isinstance(s, Const)]).astype(p.dtype.numpy)
        for p in functions[0].params
        if isinstance(p, Buffer)
    ]
    least = [float("inf")] * len(functions)
    for _ in range(TURNS):
        for n, f in enumerate(functions):
            once = f.time(*arrays, threads=threads, repeats=1)
            repeats = max(3, min(200, int(SECONDS / max(once, 1e-7))))
            found = _rt.time_kernel(f.image.code, f.offset, arrays, [], threads=threads, repeats=repeats)
            least[n] = min(least[n], min(found) * 1e-3)
    return least


@dataclass(frozen=True)
class Summary:
    """The pairs of candidates that differ, the part that costs and predictions rank right, and the regret.

    The regret is the geometric mean of the times' ratios, less one; the 90th percentile; and the worst.
    """

    pairs: int
    right: float
    by_program: float
    regret: float
    high: float
    worst: float


def summary(rows: Sequence[Decided]) -> Summary:
    """Return how well *rows* were decided."""
    pairs = [p for r in rows for p in r.pairs()]
    right, by_program = np.mean(pairs, axis=0) if pairs else (float("nan"), float("nan"))
    regrets = [r.regret for r in rows]
    mean = exp(float(np.mean([log(1 + r) for r in regrets]))) - 1
    return Summary(len(pairs), float(right), float(by_program), mean, float(np.quantile(regrets, 0.9)), max(regrets))
