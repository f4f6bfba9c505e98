"""Tables and pictures of curves: what each tuner has found after some trials, relative to the best known of a layer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weft.tune.features import Doubles

GUIDED = "sa-xgb"
GENETIC = "ga"
RIVALS = ("random", GENETIC)
COMPARED = 128
"""Trials after which layers are compared one by one."""

OF_THE_RULES = 0.95
LEAST = 1e-3
RESAMPLES = 2000


@dataclass
class Curves:
    """The throughputs of the trials of each search, by layer, tuner and seed, and the best that is known of each layer."""

    best_known: dict[str, float] = field(default_factory=dict)
    searches: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)

    def add(self, layer: str, tuner: str, seed: str, scores: list[float]) -> None:
        """Adds a search."""
        self.searches.setdefault(layer, {}).setdefault(tuner, {})[seed] = scores

    def has(self, layer: str, tuner: str, seed: str, trials: int) -> bool:
        """Tells whether there is a search of so many trials."""
        return len(self.searches.get(layer, {}).get(tuner, {}).get(seed, [])) >= trials

    def know(self, layer: str, best: float) -> None:
        """Notes that a plan of *layer* has the throughput *best*."""
        self.best_known[layer] = max(best, self.best_known.get(layer, 0.0))

    def write(self, path: Path) -> None:
        """Writes all as JSON."""
        path.write_text(json.dumps({"best_known": self.best_known, "curves": self.searches}))

    def rows(self, layer: str) -> dict[str, list[list[float]]]:
        """Returns the curves of each tuner for the seeds that all tuners of *layer* have."""
        tuners = self.searches[layer]
        seeds = sorted(set.intersection(*[set(t) for t in tuners.values()]), key=int)
        return {t: [of[s] for s in seeds] for t, of in tuners.items()}


def joined(paths: Iterable[Path]) -> Curves:
    """Returns the curves of several files as those of one run."""
    whole = Curves()
    for path in paths:
        part = json.loads(path.read_text())
        for layer, best in part["best_known"].items():
            whole.know(layer, best)
        for layer, tuners in part["curves"].items():
            for tuner, seeds in tuners.items():
                for seed, scores in seeds.items():
                    whole.add(layer, tuner, seed, scores)
    return whole


def best_after(scores: list[float], trials: int) -> float:
    """Return the best of the first *trials*."""
    return max(scores[:trials], default=0.0)


def logs(curves: list[list[float]], trials: int, best: float) -> Doubles:
    """Return for each seed the logarithm of the best after some trials, relative to the best known."""
    return np.log([max(best_after(c, trials), LEAST) / best for c in curves])


def mean_of(tables: Sequence[Doubles]) -> str:
    """Return the geometric mean of the logarithms of layers and seeds with its 90% interval, seeds resampled."""
    rng = np.random.default_rng(0)
    drawn = np.mean([t[rng.integers(0, len(t), (RESAMPLES, len(t)))].mean(axis=1) for t in tables], axis=0)
    low, high = np.quantile(drawn, [0.05, 0.95])
    return f"{np.exp(np.mean([t.mean() for t in tables])):.3f} ({np.exp(low):.3f} - {np.exp(high):.3f})"


def show(curves: Curves) -> None:
    """Print what each tuner has reached after some trials: of all layers, the ratio to the guided one, and by layer.

    A tuner that made fewer trials counts with those that it made.
    """
    rows = {layer: of for layer in curves.searches if all((of := curves.rows(layer)).values())}
    if not rows:
        print("no layer has a seed that all tuners searched")
        return
    most = max(len(c) for of in rows.values() for t in of.values() for c in t)

    def table(tuner: str, trials: int) -> list[Doubles]:
        return [logs(of[tuner], trials, curves.best_known[layer]) for layer, of in rows.items()]

    tuners = [t for t in next(iter(rows.values())) if all(t in of for of in rows.values())]
    for trials in [n for n in (32, 64, 128, 256, 512) if n <= most]:
        for t in tuners:
            found, guided = table(t, trials), table(GUIDED if GUIDED in tuners else t, trials)
            by_layer = "  ".join(f"{n} {np.exp(x.mean()):.3f}" for n, x in zip(rows, found, strict=True))
            gain = mean_of([a - b for a, b in zip(guided, found, strict=True)])
            print(f"{trials:4} trials  {t:18} {mean_of(found)}  {GUIDED} / it {gain}  {by_layer}")
    if {GUIDED, GENETIC} <= set(tuners) and most >= 512:
        gain = mean_of([a - b for a, b in zip(table(GUIDED, 128), table(GENETIC, 512), strict=True)])
        print(f"{GUIDED} after 128 trials / {GENETIC} after 512: {gain}")
    if GUIDED in tuners:
        show_layers(curves, rows, tuners)


def show_layers(curves: Curves, rows: dict[str, dict[str, list[list[float]]]], tuners: Sequence[str]) -> None:
    """Print for each layer how the guided tuner compares with its best rival, and when it is as fast as the rules, nearly."""
    rivals = [t for t in tuners if t in RIVALS]
    for layer, of in rows.items():
        best = curves.best_known[layer]
        guided = logs(of[GUIDED], COMPARED, best).mean()
        others = {t: logs(of[t], COMPARED, best).mean() for t in rivals}
        against = "".join([f"  {GUIDED} / {t} {np.exp(guided - x):.3f}" for t, x in others.items()])
        needed = [trials_for(c, OF_THE_RULES) for c in of[GUIDED]]
        reached = sum(n <= len(c) for n, c in zip(needed, of[GUIDED], strict=True))
        print(
            f"{layer:8} after {COMPARED}:{against}  {OF_THE_RULES:.0%} of the rules' speed after {np.median(needed):.0f} trials"
            f" (median; {reached} of {len(needed)} seeds reached it)"
        )


def trials_for(scores: Sequence[float], wanted: float) -> int:
    """Return the trials until *wanted* is reached; one more than there are where it is not."""
    reached = np.flatnonzero(np.asarray(scores) >= wanted)
    return int(reached[0]) + 1 if len(reached) else len(scores) + 1


def draw(curves: Curves, path: Path) -> None:
    """Draw a panel a layer: the mean of the best so far over the seeds."""
    import matplotlib.pyplot as plt

    layers = list(curves.searches)
    figure, panels = plt.subplots(1, len(layers), figsize=(4 * len(layers), 3.2), squeeze=False)
    for panel, name in zip(panels[0], layers, strict=True):
        for tuner, of in curves.rows(name).items():
            shortest = min(map(len, of), default=0)
            if shortest:
                panel.plot(np.mean([np.maximum.accumulate(c[:shortest]) for c in of], axis=0), label=tuner)
        panel.set(title=name, xlabel="trials", ylabel="speed relative to the rules")
        panel.axhline(1.0, color="grey", lw=0.5)
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
