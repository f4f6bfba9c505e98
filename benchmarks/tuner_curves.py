"""How fast tuners find fast schedules: best found against trials, as in figure 12 of the TVM paper (Chen et al., OSDI 2018).

    ../.venv/bin/python tuner_curves.py [--layers C2,C6] [--tuners random,ga,sa-xgb] [--trials 128] [--seeds 5] [--json FILE]

Each tuner searches the sketches of a layer, schedules that no rule has touched. Each is measured once, beside what the rules do,
and the time is kept in the folder cache and replayed to every tuner that comes to it, so that tuners differ in what they choose
alone. At the end: the best of
each tuner after 32, 64, 128, ... trials relative to the best known of the layer, and the geometric mean over layers with its
bootstrap interval (2,000 resamples of the seeds).
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from tuner_layers import LAYERS, layer_task

from weft.cost import Rule, Step
from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.driver.hardware import hardware_of
from weft.targets import Target
from weft.tune.measure import Limits, Outcome, local_executors
from weft.tune.strategies import TUNERS, strategy
from weft.tune.task_tuner import TaskTuner
from weft.tune.tasks import Task

LIMITS = Limits(seconds=0.03, width=0.02)
FOLDER = Path(__file__).parent / "cache"


class Memory:
    """The outcomes of a layer's plans by the plans' texts, kept in a file: no plan is measured twice on a machine."""

    def __init__(self, layer: str, target: Target) -> None:
        self.path = FOLDER / f"tuner-{layer}-{hardware_of(target).digest[:12]}.pickle"
        self.known: dict[str, Outcome] = pickle.loads(self.path.read_bytes()) if self.path.exists() else {}

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Keeps the results of *outcomes*, not their code."""
        self.known.update({o.plan: replace(o, built=None) for o in outcomes})
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(pickle.dumps(self.known))


def curve(
    task: Task, tuner: str, seed: int, trials: int, memory: Memory, builder: Executor, runner: Executor
) -> list[float]:
    """Return the throughput of each trial relative to the rules' schedule, in order."""
    fixed = [Step(s.subject, Rule("sketch")) for s in task.plan.steps if isinstance(s.decision, Rule)]
    search = TaskTuner(task, strategy(tuner), builder, runner, seed=seed, limits=LIMITS, fixed=fixed)
    search.measurer.know(memory.known.values())
    started = perf_counter()
    found = list(search.run(lambda: search.begun < trials))
    seconds, scores = perf_counter() - started, [t.score for t in found]
    new = len({t.plan for t in found} - memory.known.keys())
    memory.add(t.outcome for t in found)
    print(
        f"{task.name} {tuner} seed {seed}: {search.space.count:.3g} plans, best {max(scores):.3f} after {len(scores)} trials, "
        f"{new} of them measured, {seconds:.0f} s",
        flush=True,
    )
    return scores


def best_after(scores: list[float], trials: int) -> float:
    """Return the best of the first *trials*."""
    return max(scores[:trials], default=0.0)


def means(curves: dict[str, dict[str, list[list[float]]]], trials: int) -> dict[str, tuple[float, float, float]]:
    """Return for each tuner the geometric mean over layers of the best, relative to the best known, with a 90% interval."""
    known = {name: max(max(c) for of in tuners.values() for c in of) for name, tuners in curves.items()}
    rng = np.random.default_rng(0)
    found = {}
    for tuner in next(iter(curves.values())):
        table = np.array([[best_after(c, trials) / known[n] for c in curves[n][tuner]] for n in curves])
        drawn = rng.integers(0, table.shape[1], (2000, *table.shape))
        resampled = np.exp(np.log(np.take_along_axis(table[None], drawn, axis=2)).mean(axis=(1, 2)))
        low, high = np.quantile(resampled, [0.05, 0.95])
        found[tuner] = float(np.exp(np.log(table).mean())), float(low), float(high)
    return found


def draw(curves: dict[str, dict[str, list[list[float]]]], path: Path) -> None:
    """Draw a panel a layer: the mean of the best so far over the seeds."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.2), squeeze=False)
    for panel, (name, tuners) in zip(panels[0], curves.items(), strict=True):
        for tuner, of in tuners.items():
            shortest = min(map(len, of))
            panel.plot(np.mean([np.maximum.accumulate(c[:shortest]) for c in of], axis=0), label=tuner)
        panel.set(title=name, xlabel="trials", ylabel="speed relative to the rules")
        panel.axhline(1.0, color="grey", lw=0.5)
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="C2,C4,C6,C9,C12,D3", help=", ".join(LAYERS))
    parser.add_argument("--tuners", default="random,ga,sa-xgb,sa-xgb-regression,sa-treernn", help=", ".join(TUNERS))
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    curves: dict[str, dict[str, list[list[float]]]] = {}
    builder, runner = local_executors()
    with builder, runner:
        for name in given.layers.split(","):
            target = target_here("cpu", None, default_cache())
            task, memory = layer_task(name, target), Memory(name, target)
            curves[name] = {
                tuner: [curve(task, tuner, seed, given.trials, memory, builder, runner) for seed in range(given.seeds)]
                for tuner in given.tuners.split(",")
            }
            if given.json:
                given.json.write_text(json.dumps(curves))
    if given.picture:
        draw(curves, given.picture)
    for trials in (32, 64, 128, 256, 512):
        if trials <= given.trials:
            for tuner, (middle, low, high) in means(curves, trials).items():
                print(f"{trials:4} trials  {tuner:20} {middle:.3f}  ({low:.3f} - {high:.3f})")


if __name__ == "__main__":
    main()
