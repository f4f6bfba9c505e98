"""How fast tuners find fast schedules: best found against trials, as in figure 12 of the TVM paper (Chen et al., OSDI 2018).

    ../.venv/bin/python tuner_curves.py [--layers C2,C6] [--tuners random,ga,sa-xgb] [--trials 128] [--seeds 5] [--json FILE]

Each tuner searches the sketches of a layer, schedules that no rule has touched. Each is measured once, beside what the rules do,
and the time is kept in the folder cache and replayed to every tuner that comes to it, so that tuners differ in what they choose
alone. At the end: the best of each tuner after 32, 64, 128, ... trials relative to the best known of the layer, its geometric
mean over layers with a bootstrap interval of 90% (2,000 resamples of the seeds), and how much better annealing with trees is.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from tuner_layers import LAYERS, layer_task, sketches_of

from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.driver.hardware import hardware_of
from weft.targets import Target
from weft.tune.explore import Explorer
from weft.tune.features import Doubles
from weft.tune.measure import Limits, Outcome, local_executors
from weft.tune.models import CostModel, Samples, Shuffled, make_model
from weft.tune.space import PlanSpace
from weft.tune.strategies import TUNERS, Strategy
from weft.tune.task_tuner import TaskTuner
from weft.tune.tasks import Task

LIMITS = Limits(seconds=0.03, width=0.02)
FOLDER = Path(__file__).parent / "cache"
GUIDED = "sa-xgb"
LEAST = 1e-3
RESAMPLES = 2000


class Memory:
    """The outcomes of a layer's plans by the plans' texts, kept in a file: no plan is measured twice on a machine."""

    def __init__(self, layer: str, target: Target) -> None:
        self.path = FOLDER / f"tuner-{layer}-{hardware_of(target).digest[:12]}.pickle"
        self.known: dict[str, Outcome] = pickle.loads(self.path.read_bytes()) if self.path.exists() else {}

    @property
    def best(self) -> float:
        """The throughput of the best plan known, relative to the rules' schedule."""
        return max(1.0 / o.measured.ratio.middle for o in self.known.values() if o.measured is not None)

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Keeps the results of *outcomes*, not their code."""
        self.known.update({o.plan: replace(o, built=None) for o in outcomes})
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(pickle.dumps(self.known))


class ShuffledPredictions(Strategy):
    """A control: annealing on what the model predicts, given to other plans than those that it is predicted for."""

    def begin(self, space: PlanSpace, seed: int, known: Samples | None = None) -> tuple[Explorer, CostModel | None]:
        del known
        model = Shuffled(make_model(self.model, seed), seed)
        return self.explorer(space, model, seed), model


STRATEGIES = {**TUNERS, "shuffled": ShuffledPredictions(TUNERS["sa-xgb"].explorer, TUNERS["sa-xgb"].model)}


def curve(
    name: str, task: Task, tuner: str, seed: int, trials: int, memory: Memory, builder: Executor, runner: Executor
) -> list[float]:
    """Return the throughput of each trial relative to the rules' schedule, in order."""
    search = TaskTuner(task, STRATEGIES[tuner], builder, runner, seed=seed, limits=LIMITS, fixed=sketches_of(task))
    search.measurer.know(memory.known.values())
    started = perf_counter()
    found = list(search.run(lambda: search.begun < trials))
    seconds, scores = perf_counter() - started, [t.score for t in found]
    new = len({t.plan for t in found} - memory.known.keys())
    memory.add(t.outcome for t in found)
    print(
        f"{name} {tuner} seed {seed}: {search.space.count:.3g} plans, best {max(scores):.3f} after {len(scores)} trials, "
        f"{new} of them measured, {seconds:.0f} s",
        flush=True,
    )
    return scores


def best_after(scores: list[float], trials: int) -> float:
    """Return the best of the first *trials*."""
    return max(scores[:trials], default=0.0)


def logs(of: dict[str, list[list[float]]], tuner: str, trials: int, best: float) -> Doubles:
    """Return for each seed the logarithm of the best of a tuner after some trials, relative to the best known."""
    return np.log([max(best_after(c, trials), LEAST) / best for c in of[tuner]])


def mean_of(tables: Sequence[Doubles]) -> str:
    """Return the geometric mean of the logarithms of layers and seeds with its 90% interval, seeds resampled."""
    table = np.stack(tables)
    drawn = np.random.default_rng(0).integers(0, table.shape[1], (RESAMPLES, *table.shape))
    low, high = np.quantile(np.take_along_axis(table[None], drawn, axis=2).mean(axis=(1, 2)), [0.05, 0.95])
    return f"{np.exp(table.mean()):.3f} ({np.exp(low):.3f} - {np.exp(high):.3f})"


def show(curves: dict[str, dict[str, list[list[float]]]], best: dict[str, float], most: int) -> None:
    """Print what each tuner has reached after some trials: of all layers, the ratio to the first guided one, and by layer."""
    tuners = list(next(iter(curves.values())))
    for trials in [n for n in (32, 64, 128, 256, 512) if n <= most]:
        of = {t: [logs(curves[n], t, trials, best[n]) for n in curves] for t in tuners}
        for t in tuners:
            by_layer = "  ".join(f"{n} {np.exp(x.mean()):.3f}" for n, x in zip(curves, of[t], strict=True))
            guided = of.get(GUIDED, of[t])
            gain = mean_of([a - b for a, b in zip(guided, of[t], strict=True)])
            print(f"{trials:4} trials  {t:18} {mean_of(of[t])}  {GUIDED} / it {gain}  {by_layer}")


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
    parser.add_argument(
        "--tuners", default="random,ga,sa-xgb,sa-xgb-regression,sa-treernn,shuffled", help=", ".join(STRATEGIES)
    )
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    curves: dict[str, dict[str, list[list[float]]]] = {}
    best: dict[str, float] = {}
    builder, runner = local_executors()
    with builder, runner:
        for name in given.layers.split(","):
            target = target_here("cpu", None, default_cache())
            task, memory = layer_task(name, target), Memory(name, target)
            curves[name] = {
                tuner: [
                    curve(name, task, tuner, seed, given.trials, memory, builder, runner) for seed in range(given.seeds)
                ]
                for tuner in given.tuners.split(",")
            }
            best[name] = memory.best
            if given.json:
                given.json.write_text(json.dumps({"best_known": best, "curves": curves}))
    if given.picture:
        draw(curves, given.picture)
    show(curves, best, given.trials)


if __name__ == "__main__":
    main()
