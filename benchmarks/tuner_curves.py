"""How fast tuners find fast schedules: best found against trials, as in figure 12 of the TVM paper (Chen et al., OSDI 2018).

    ../.venv/bin/python tuner_curves.py [--layers C2,C6] [--tuners random,ga:512,sa-xgb] [--trials 128] [--seeds 5] [--json FILE]
    taskset -c 3 ../.venv/bin/python tuner_curves.py --layers C6 --seeds 3-3 --memo DIR --one-by-one --seconds 200 --json part3
    ../.venv/bin/python tuner_curves.py --merge part* --json FILE --picture FILE

Each tuner searches the sketches of a layer, schedules that no rule has touched. Each is measured once, beside what the rules do,
and the time is kept in the folder --memo and replayed to every tuner that comes to it, so that tuners differ in what they choose
alone. Those that were the best of a search so far are then measured again at length, and count with that time. At the end:
the best of each tuner after 32, 64, 128, ... trials relative to the best known of the layer, its geometric mean over layers with
a bootstrap interval of 90% (2,000 resamples of the seeds), and how much better annealing with trees is; then layer by layer, and
after how many trials annealing, from default loops, has 95% of the speed of the rules.

Runs may be split among processes, each pinned to a core, by layers and seeds; --merge joins their files. With --one-by-one a
candidate is proposed when the last was measured, so that a search depends on nothing but the times: one that --seconds ended is
repeated from what --memo has, and goes on; with --resume, those that ended by themselves are not. Searches that were ended are
in no file.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from curve_tables import Curves, draw, joined, show
from measured_again import settled
from tuner_layers import LAYERS, layer_task, sketches_of
from tuner_memo import FOLDER, Memory

from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.tune.explore import Explorer
from weft.tune.measure import IN_FLIGHT, Limits, Measurer, local_executors
from weft.tune.models import CostModel, Samples, Shuffled, make_model
from weft.tune.space import PlanSpace
from weft.tune.strategies import TUNERS, Strategy
from weft.tune.task_tuner import TaskTuner
from weft.tune.tasks import Task

LIMITS = Limits(seconds=0.03, width=0.02)
AT_LENGTH = Limits(seconds=0.3, width=0.005, fewest=15)


class ShuffledPredictions(Strategy):
    """A control: annealing on what the model predicts, given to other plans than those that it is predicted for."""

    def begin(self, space: PlanSpace, seed: int, known: Samples | None = None) -> tuple[Explorer, CostModel | None]:
        del known
        model = Shuffled(make_model(self.model, seed), seed)
        return self.explorer(space, model, seed), model


STRATEGIES = {**TUNERS, "shuffled": ShuffledPredictions(TUNERS["sa-xgb"].explorer, TUNERS["sa-xgb"].model)}


@dataclass(frozen=True)
class Search:
    """What all searches of a run share: who builds and runs, the candidates on their way at once, and when it is over."""

    builder: Executor
    runner: Executor
    in_flight: int
    end: float

    def curve(
        self, task: Task, tuner: str, seed: int, trials: int, memory: Memory, again: Memory
    ) -> list[float] | None:
        """Return the throughput of each trial relative to the rules' schedule, in order; None where the time was over before.

        *memory* has what was measured for searches, and *again* what was measured at length.
        """
        search = TaskTuner(
            task,
            STRATEGIES[tuner],
            self.builder,
            self.runner,
            seed=seed,
            limits=LIMITS,
            fixed=sketches_of(task),
            in_flight=self.in_flight,
        )
        known = memory.known
        search.measurer.know(known.values())
        started = perf_counter()
        try:
            for _ in search.run(lambda: search.begun < trials and perf_counter() < self.end):
                pass
        finally:
            memory.add(t.outcome for t in search.trials)
        scores = settled([(t.plan, t.score) for t in search.trials], lambda plans: self.at_length(task, plans, again))
        seconds = perf_counter() - started
        new = len({t.plan for t in search.trials} - known.keys())
        print(
            f"{task.name} {tuner} seed {seed}: {search.space.count:.3g} plans, best {max(scores, default=0.0):.3f} after "
            f"{len(scores)} trials, {new} of them measured, {seconds:.0f} s",
            flush=True,
        )
        return scores if search.begun >= trials or perf_counter() < self.end else None

    def at_length(self, task: Task, plans: Sequence[str], memory: Memory) -> dict[str, float]:
        """Return the throughputs of *plans* beside the rules' schedule, each measured once at length."""
        limits = task.caches.within(AT_LENGTH)
        measurer = Measurer(task.job, self.builder, self.runner, limits=limits, in_flight=1, has_gaps=True)
        measurer.know(memory.known.values())
        outcomes = list(measurer.submit(plans))
        memory.add(outcomes)
        return {o.plan: 0.0 if o.measured is None else 1.0 / o.measured.ratio.middle for o in outcomes}


def seeds_of(text: str) -> range:
    """Return the seeds that *text* means: so many, or those from one number to another."""
    first, dash, last = text.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first))


def measured_curves(given: argparse.Namespace) -> Curves:
    """Return the curves of all layers, tuners and seeds that were asked for; the file of JSON grows with each."""
    end = perf_counter() + given.seconds
    curves = joined([given.json]) if given.resume and given.json.exists() else Curves()
    target = target_here("cpu", None, default_cache())
    builder, runner = local_executors()
    with builder, runner:
        search = Search(builder, runner, 1 if given.one_by_one else IN_FLIGHT, end)
        for name in given.layers.split(","):
            part = given.seeds if "-" in given.seeds else ""
            task, memory = layer_task(name, target), Memory(name, target, given.memo, part)
            again = Memory(f"{name}-again", target, given.memo, part)
            for seed in seeds_of(given.seeds):
                for asked in given.tuners.split(","):
                    tuner, _, own = asked.partition(":")
                    if curves.has(name, tuner, str(seed), int(own or given.trials)):
                        continue
                    scores = search.curve(task, tuner, seed, int(own or given.trials), memory, again)
                    if scores is not None:
                        curves.add(name, tuner, str(seed), scores)
                        curves.know(name, again.best)
                    if given.json:
                        curves.write(given.json)
                    if perf_counter() >= end:
                        return curves
    return curves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="C2,C4,C6,C9,C12,D3", help=", ".join(LAYERS))
    parser.add_argument(
        "--tuners",
        default="random,ga,sa-xgb,sa-xgb-regression,sa-treernn,shuffled",
        help=f"{', '.join(STRATEGIES)}; with trials of its own after a colon",
    )
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seeds", default="5", help="so many, or a range such as 3-3")
    parser.add_argument("--memo", type=Path, default=FOLDER, help="the folder of what was measured")
    parser.add_argument("--one-by-one", action="store_true", help="one candidate at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no candidate after so long")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the file --json: searches that it has are left out"
    )
    parser.add_argument("--merge", type=Path, nargs="+", help="measure nothing: join these files of JSON")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    if given.resume and not given.json:
        parser.error("--resume needs --json, the file of what was searched before")
    curves = joined(given.merge) if given.merge else measured_curves(given)
    if given.json:
        curves.write(given.json)
    if given.picture:
        draw(curves, given.picture)
    show(curves)


if __name__ == "__main__":
    main()
