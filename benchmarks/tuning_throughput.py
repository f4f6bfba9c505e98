"""How many candidates a second are built, checked and timed: random plans of a float32 matrix product, or of a layer.

    ../.venv/bin/python tuning_throughput.py [--size 512 | --layer C6] [--plans 150] [--builders 2]

Beside the rate by the clock stands the one that two whole cores would give, from the processor time that all processes take:
where others use the machine, it is the figure to go by.
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter, process_time

from tuner_layers import LAYERS, layer_task

from weft.cost import Choosing
from weft.loop import parse_program
from weft.schedule import carry_out
from weft.support.dtypes import f32
from weft.targets import host
from weft.te import compute, placeholder, reduce_axis, sum_, to_program
from weft.tune.measure import BuildJob, Measurer, Outcome, local_executors, shares_text, stage_seconds


def product(n: int) -> str:
    a, b, k = placeholder((n, n), f32, "A"), placeholder((n, n), f32, "B"), reduce_axis(n, "k")
    c = compute((n, n), lambda i, j: sum_(a[i, k] * b[k, j], [k]), "C")
    return str(to_program([a, b], [c], "matmul"))


def product_job(n: int) -> BuildJob:
    return BuildJob(product(n), None, host())


def random_plans(text: str, count: int, seed: int) -> Iterator[str]:
    program, source, seen = parse_program(text), random.Random(seed), set[str]()
    while len(seen) < count:
        planner = Choosing(host(), source.choice)
        carry_out(program, planner)
        if str(planner.plan) not in seen:
            seen.add(str(planner.plan))
            yield str(planner.plan)


def processor_seconds(pids: list[int]) -> float:
    """Returns the processor time of this process, of the workers *pids*, and of those that were ended before."""
    ticks = [Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split()[11:13] for p in pids]
    ended = getrusage(RUSAGE_CHILDREN)
    return (
        sum(int(t) for pair in ticks for t in pair) / os.sysconf("SC_CLK_TCK")
        + process_time()
        + ended.ru_utime
        + ended.ru_stime
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--layer", choices=LAYERS, help="a layer of the TVM paper in place of the product")
    parser.add_argument("--plans", type=int, default=150)
    parser.add_argument("--builders", type=int, default=2)
    asked = parser.parse_args()
    job = replace(layer_task(asked.layer, host()).job, plan=None) if asked.layer else product_job(asked.size)
    text = job.program
    builder, runner = local_executors(asked.builders)
    with builder, runner:
        measurer = Measurer(job, builder, runner)
        list(measurer.submit(random_plans(text, 6, seed=1)))  # warms all workers
        plans = list(random_plans(text, asked.plans, seed=2))
        before, begin = processor_seconds(builder.pids + runner.pids), perf_counter()
        found = list(measurer.submit(plans))
        seconds, work = perf_counter() - begin, processor_seconds(builder.pids + runner.pids) - before
    print(f"{len(found) / seconds:.1f} candidates a second on {work / seconds:.2f} cores")
    print(f"{2 * len(found) / work:.1f} a second on two whole cores: {1e3 * work / len(found):.1f} ms each")
    show(found)


def show(found: list[Outcome]) -> None:
    stages = stage_seconds(found)
    print(shares_text(stages))
    print(", ".join(f"{name} {1e3 * s / len(found):.2f} ms" for name, s in stages.items()))
    measured = [o.measured for o in found if o.measured is not None]
    print(
        dict(Counter("early" if m.is_early else "measured" for m in measured)), f"{len(found) - len(measured)} failed"
    )
    whole = [m for m in measured if not m.is_early]
    if whole:
        print(f"median width of the ratio's interval: {median(m.ratio.width for m in whole):.1%}")


if __name__ == "__main__":
    main()
