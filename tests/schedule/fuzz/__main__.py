"""Fuzzes the schedule language: random computations, random steps, each result compared with NumPy.

python -m tests.schedule.fuzz -n 20000 --seed 0 --jobs 2
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from tests.schedule.fuzz.cases import Failure, Outcome, Tally, drawn, run_case
from tests.schedule.fuzz.shrink import shrunk
from tests.schedule.fuzz.table import shortcomings, table

SHOWN = 10
"""So many failures are shrunk and printed; the rest are only listed."""


@dataclass
class Worker:
    """A process that runs every *step*-th case, from *number* on; it is started anew if a case ends it."""

    campaign: int
    number: int
    end: int
    step: int
    process: multiprocessing.Process | None = None
    results: Connection | None = None

    def start(self) -> Connection:
        """Starts the process; returns where its outcomes come from."""
        self.results, there = multiprocessing.Pipe(duplex=False)
        wanted = range(self.number, self.end, self.step)
        self.process = multiprocessing.Process(target=_work, args=(self.campaign, wanted, there), daemon=True)
        self.process.start()
        there.close()
        return self.results

    def died(self) -> Outcome:
        """What to make of a case in which the process ended."""
        family, seed, _ = drawn(self.campaign, self.number)
        code = self.process.exitcode if self.process else None
        return Outcome(Tally(), Failure(self.number, family, seed, f"the process ended with {code}", (), ""))


def _work(campaign: int, numbers: range, results: Connection) -> None:
    for n in numbers:
        results.send(run_case(campaign, n))
    results.close()


def outcomes(campaign: int, numbers: range, jobs: int) -> Iterator[Outcome]:
    """Yields the outcome of each case, as they come, from *jobs* processes."""
    workers = [Worker(campaign, numbers.start + k, numbers.stop, jobs) for k in range(jobs)]
    running = {w.start(): w for w in workers if w.number < w.end}
    while running:
        for c in wait(list(running)):
            if not isinstance(c, Connection):
                continue
            w = running[c]
            try:
                yield c.recv()
            except EOFError:
                del running[c]
                if w.number >= w.end:
                    continue
                if w.process:
                    w.process.join()
                yield w.died()
                w.number += w.step
                if w.number < w.end:
                    running[w.start()] = w
                continue
            w.number += w.step


def main() -> int:
    """Runs a campaign and prints its table; the exit code is 1 if anything failed or fell short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20000, help="the number of cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=0, help="the number of the campaign")
    parser.add_argument("--jobs", type=int, default=2, help="the number of processes")
    options = parser.parse_args()
    total, failures, begin, done = Tally(), list[Failure](), time.monotonic(), 0
    for outcome in outcomes(options.seed, range(options.first, options.first + options.n), options.jobs):
        done += 1
        total.add(outcome.tally)
        if outcome.failure:
            failures.append(outcome.failure)
            _show(outcome.failure, len(failures), options.seed)
        if done % 500 == 0:
            print(f"{done} cases, {len(failures)} failures, {time.monotonic() - begin:.0f} s", flush=True)
    print(table(total))
    short = shortcomings(total, options.n)
    print(*short, sep="\n", end="\n" if short else "")
    print(f"{done} cases, {len(failures)} failures, {time.monotonic() - begin:.0f} s")
    return 1 if failures or short else 0


def _show(failure: Failure, count: int, campaign: int) -> None:
    """Prints a failure, shrunk, as a script; beyond the first few only where it is."""
    print(f"FAILED: case {failure.number} of campaign {campaign}: {failure.error.splitlines()[0]}", flush=True)
    if count <= SHOWN and failure.calls:
        small = shrunk(failure)
        print(f"{small.error}\n\n{small.script()}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
