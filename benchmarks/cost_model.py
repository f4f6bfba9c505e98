#!/usr/bin/env python3
"""Judge the cost model where it chooses: the decisions of the schedule rules, and the prediction for scheduled programs.

    ../.venv/bin/python cost_model.py [--seed 1] [--operators 40] [--threads 2] [--count 100] [--least 0.8] [--verbose]

For random operators, prints how the costs of each kind of decision rank its candidates: the part of pairs that are ranked as
their times are, and the regret, how much longer the chosen candidate takes than the best. "by program" ranks the same pairs by
the prediction for whole kernels. With --threads, sharing loops among that many is judged, too: it takes idle cores.
For random shapes x schedules, prints Spearman's rank correlation of the prediction with the measured time, over all samples and
over each kind of operator. Exits with 1 where the first is less than --least.
"""

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
from decisions import Decided, decided, summary
from random_schedules import KINDS, Sample, random_sample

from weft.cost import cost_of, nests, predict_cycles
from weft.driver.function import NativeFunction
from weft.ir import Const
from weft.loop import Buffer
from weft.targets import host


@dataclass(frozen=True)
class Measured:
    """A sample's predicted cycles and the microseconds that it took."""

    kind: str
    label: str
    cycles: float
    microseconds: float
    parts: str


def spearman(a: list[float], b: list[float]) -> float:
    """Return the correlation of the ranks; equal values share their mean rank."""
    ranks = [np.array([np.mean(np.flatnonzero(np.sort(x) == v)) for v in x]) for x in map(np.asarray, (a, b))]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def measure(sample: Sample) -> float:
    """Return the microseconds of processor time that a sample takes."""
    function, rng = NativeFunction(sample.program, host()), np.random.default_rng(0)
    arrays = [
        rng.standard_normal([int(s.value) for s in p.shape if isinstance(s, Const)]).astype(np.float32)
        for p in function.params
        if isinstance(p, Buffer)
    ]
    once = function.time(*arrays, repeats=1)
    return function.time(*arrays, repeats=max(3, min(50, int(0.02 / max(once, 1e-7))))) * 1e6


def measured(seed: int, count: int) -> list[Measured]:
    """Return *count* samples, of all kinds in turn."""
    rng = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        sample = random_sample(rng, n)
        cycles = predict_cycles(sample.program, host())
        parts = "; ".join(
            f"{x.demand} {x.overhead:.3g}" for x in (cost_of(nest, host()) for nest in nests(sample.program.entry.body))
        )
        rows.append(Measured(KINDS[n % len(KINDS)].__name__, sample.label, cycles, measure(sample), parts))
    return rows


def print_decisions(seed: int, operators: int, threads: int, verbose: bool) -> None:
    """Print how well decisions on random operators are ranked, by kind and over all."""
    rows: list[Decided] = []
    for row in decided(seed, operators, threads):
        rows.append(row)
        if verbose:
            print(f"{row.regret:6.3f} {row.kind} {row.label}")
            for a in row.alternatives:
                print(f"       {a.microseconds:9.1f} us {a.cycles:12.1f} {a.predicted:12.0f} {a.decision}")
    kinds = sorted({r.kind for r in rows})
    print(f"{len(rows)} decisions on {operators} operators, seed {seed}")
    print(f"  {'':<14} count pairs  right  by program  regret: mean    90%  worst")
    for kind, chosen in [*[(k, [r for r in rows if r.kind == k]) for k in kinds], ("all", rows)]:
        x = summary(chosen)
        print(
            f"  {kind:<14} {len(chosen):5} {x.pairs:5}  {x.right:5.2f}       {x.by_program:5.2f}  "
            f"        {x.regret:6.3f} {x.high:6.3f} {x.worst:6.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operators", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--least", type=float, default=0.8)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.operators:
        print_decisions(options.seed, options.operators, options.threads, options.verbose)
    start = time.time()
    rows = measured(options.seed, options.count)
    if options.verbose:
        for r in sorted(rows, key=lambda r: r.cycles / r.microseconds):
            print(f"{r.cycles / r.microseconds / 4000:6.2f} {r.microseconds:9.1f} us {r.label} [{r.parts}]")
    total = spearman([r.cycles for r in rows], [r.microseconds for r in rows])
    print(f"{len(rows)} samples in {time.time() - start:.0f} s, seed {options.seed}: Spearman {total:.3f}")
    for kind in KINDS:
        chosen = [r for r in rows if r.kind == kind.__name__]
        if len(chosen) > 2:
            found = spearman([r.cycles for r in chosen], [r.microseconds for r in chosen])
            print(f"  {kind.__name__:<12} {len(chosen):4} {found:.3f}")
    sys.exit(not total >= options.least)


if __name__ == "__main__":
    main()
