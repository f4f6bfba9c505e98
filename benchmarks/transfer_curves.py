"""Whether tuning other workloads before helps a new one: best found against trials, with and without what is known of them.

    ../.venv/bin/python transfer_curves.py [--cases C6,GEMM512] [--trials 64] [--before 64] [--seeds 3] [--json FILE]

The other workloads of a case are tuned first, for --before trials each. Then the new one is tuned, over sketches as in
`tuner_curves.py`: with nothing (`alone`), with their measured plans as samples of the model (`history`), beginning with
the best plans of those that have the same loops with other sizes (`hints`), and with both. A candidate that was measured
once is not measured again, so that the curves differ in what is chosen alone. At the end: the best after 8, 16, ... trials
relative to the best known, the geometric mean over cases and seeds, and how many trials each needs for 90% and 95% of that.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from statistics import median

import numpy as np
from curve_tables import best_after, trials_for
from tuner_curves import LIMITS
from tuner_layers import layer_task, sketches_of
from tuner_memo import Memory

from weft.cost import Plan, parse_plan
from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.tune.measure import local_executors
from weft.tune.strategies import strategy
from weft.tune.task_tuner import TaskTuner

CASES = {"C6": ("C2", "C4", "C9"), "GEMM512": ("GEMM256", "GEMM384", "GEMM1024")}
"""The workloads that are tuned before a new one."""

KINDS = ("alone", "history", "hints", "both")


def tuner_of(
    name: str, seed: int, builder: Executor, runner: Executor, before: Sequence[TaskTuner], kind: str, tuner: str
) -> TaskTuner:
    """Return the tuner of a layer that knows of those *before* as much as *kind* says."""
    task = layer_task(name, target_here("cpu", None, default_cache()))
    history = [t.samples for t in before] if kind in ("history", "both") else []
    hints: list[Plan] = []
    if kind in ("hints", "both"):
        alike = [t for t in before if t.task.workload.structure == task.workload.structure and t.best is not None]
        hints = [parse_plan(t.best[0]) for t in alike if t.best is not None]
    return TaskTuner(
        task,
        strategy(tuner),
        builder,
        runner,
        seed=seed,
        limits=LIMITS,
        fixed=sketches_of(task),
        history=history,
        hints=hints,
    )


def scores_of(search: TaskTuner, trials: int, memory: Memory) -> list[float]:
    """Return the throughput of each trial relative to the rules' schedule, in order."""
    search.measurer.know(memory.known.values())
    found = list(search.run(lambda: search.begun < trials))
    memory.add(t.outcome for t in found)
    return [t.score for t in found]


def case_curves(
    name: str, asked: argparse.Namespace, executors: tuple[Executor, Executor]
) -> dict[str, list[list[float]]]:
    """Return the curves of a case by kind, one a seed."""
    before, target = [], target_here("cpu", None, default_cache())
    for other in CASES[name]:
        search = tuner_of(other, 100, *executors, (), "alone", asked.tuner)
        found = scores_of(search, asked.before, Memory(other, target))
        before.append(search)
        print(f"{other}: best {max(found):.3f} after {len(found)}", flush=True)
    memory = Memory(name, target)
    curves: dict[str, list[list[float]]] = {kind: [] for kind in asked.kinds.split(",")}
    for seed in range(asked.seeds):
        for kind, of in curves.items():
            of.append(scores_of(tuner_of(name, seed, *executors, before, kind, asked.tuner), asked.trials, memory))
            told = ", ".join([f"{best_after(of[-1], n):.3f}" for n in _marks(asked.trials)])
            print(f"{name} {kind} seed {seed}: best after {_marks(asked.trials)}: {told}", flush=True)
    return curves


def _marks(trials: int) -> list[int]:
    return [n for n in (8, 16, 32, 64, 128, 256) if n <= trials]


def show(curves: dict[str, dict[str, list[list[float]]]], trials: int) -> None:
    """Print a row for each kind: the mean best after some trials, and the median trials for a part of the best known."""
    known = {name: max(max(c) for of in kinds.values() for c in of) for name, kinds in curves.items()}
    for kind in next(iter(curves.values())):
        means = []
        for n in _marks(trials):
            table = [best_after(c, n) / known[name] for name, kinds in curves.items() for c in kinds[kind]]
            means.append(f"{n}: {np.exp(np.log(np.maximum(table, 1e-3)).mean()):.3f}")
        needed = []
        for part in (0.9, 0.95):
            counts = [trials_for(c, part * known[name]) for name, kinds in curves.items() for c in kinds[kind]]
            needed.append(f"{part:.0%} after {median(counts):.0f}")
        print(f"{kind:<8} best after {'  '.join(means)}   {', '.join(needed)} trials")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES), help=", ".join(CASES))
    parser.add_argument("--kinds", default=",".join(KINDS), help=", ".join(KINDS))
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--before", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tuner", default="sa-xgb")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    curves: dict[str, dict[str, list[list[float]]]] = {}
    with_builder, with_runner = local_executors()
    with with_builder, with_runner:
        for name in asked.cases.split(","):
            curves[name] = case_curves(name, asked, (with_builder, with_runner))
            if asked.json:
                asked.json.write_text(json.dumps(curves))
    show(curves, asked.trials)


if __name__ == "__main__":
    main()
