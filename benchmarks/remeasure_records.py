"""Whether a record's ratio is found again: some records of a database, measured anew beside their incumbents.

    ../.venv/bin/python remeasure_records.py DB MODEL... [--count 50] [--seed 0] [--seconds 0.5] [--limit 0.03]

The records are drawn by chance from those whose kernels the models have: the models tell the loops, and which weights are cold
(`tune.cache_state`). Each is measured as winners are, one at a time, by a process of its own, in several places of memory. The
deviation is |ratio now / ratio recorded - 1|. Exits with 1 where its median is above --limit.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import weft
from weft.driver.cache.code_cache import default_cache
from weft.driver.hardware import hardware_of
from weft.records import Record, Store
from weft.tune.cache_state import cache_states
from weft.tune.measure import Measurer, local_executors
from weft.tune.task_tuner import VERIFIED
from weft.tune.tasks import Task, task_of
from weft.tune.tune_model import RULES


def tasks_by_workload(models: list[str]) -> dict[str, Task]:
    """Return the kernels of the models, by their workloads."""
    found: dict[str, Task] = {}
    for path in models:
        made = weft.build(path, "cpu", RULES, cache=default_cache())
        states = cache_states(made)
        for key, request in made.requests.items():
            found.setdefault(request.workload, task_of(request, made.target, caches=states[key]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("db", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=VERIFIED.seconds)
    parser.add_argument("--limit", type=float, default=0.03)
    asked = parser.parse_args()
    tasks = tasks_by_workload(asked.models)
    with Store(asked.db, read_only=True) as store:
        records: list[Record] = [r for r in store.records() if r.workload in tasks and r.baseline is not None]
    here = {hardware_of(t.target).digest for t in tasks.values()}
    records = [r for r in records if r.hardware in here]
    if not records:
        raise SystemExit(f"{asked.db} has no record of this machine for a kernel of these models")
    drawn = random.Random(asked.seed).sample(records, min(asked.count, len(records)))
    deviations = []
    builder, runner = local_executors(1)
    with builder, runner:
        for record in drawn:
            task = tasks[record.workload]
            measurer = Measurer(task.job, builder, runner, threads=record.threads)
            limits = task.caches.within(replace(VERIFIED, seconds=asked.seconds))
            measured = measurer.again(record.plan, limits).measured
            if measured is None:
                print(f"{task.name}: its plan no longer applies, or fails")
                continue
            then, now = record.seconds / (record.baseline or record.seconds), measured.ratio
            deviations.append(abs(now.middle / then - 1))
            print(
                f"{1e6 * record.seconds:9.1f} us  recorded {then:.3f}  now {now.middle:.3f} ({now.low:.3f} - {now.high:.3f})"
                f"  {deviations[-1]:6.1%}  {task.name}",
                flush=True,
            )
    if not deviations:
        raise SystemExit("none of the plans drawn applies any more")
    middle = median(deviations)
    print(f"{len(deviations)} records: median deviation {middle:.1%}, worst {max(deviations):.1%}")
    return int(middle > asked.limit)


if __name__ == "__main__":
    sys.exit(main())
