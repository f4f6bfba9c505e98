"""Imports damaged models, in processes of which memory and time are limited.

python -m tests.frontends.fuzz coreml darknet -n 10000 --seed 0 --jobs 2

Models are those of tests (`formats`; all formats if none is named), of which fields, settings, words or bytes are changed. With
`--passes`, what is imported goes through the graph passes. An exception that is no error of Weft's, the end of a process, or more
than `SECONDS` is a failure; so is a run in which fewer than one of 50 inputs is imported, or none is refused.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.frontends.fuzz.campaign import Outcome
from tests.frontends.fuzz.formats import FORMATS

CHUNK: Final = 1_000


def main(arguments: list[str]) -> int:
    """Runs the campaign; returns 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="fuzz-import")
    parser.add_argument(
        "formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(FORMATS)}; all of them if none is given"
    )
    parser.add_argument("-n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--passes", action="store_true", help="run the graph passes on what is imported")
    given = parser.parse_args(arguments)
    if unknown := set(given.formats) - set(FORMATS):
        parser.error(f"there is no format {sorted(unknown)[0]}; there are {', '.join(FORMATS)}")
    good = True
    with ThreadPoolExecutor(given.jobs) as pool:
        for name in given.formats or FORMATS:
            start, total = time.monotonic(), Outcome()
            chunks = [range(first, min(first + CHUNK, given.n)) for first in range(0, given.n, CHUNK)]
            for found in pool.map(
                lambda numbers, name=name: run_apart(name, given.seed, numbers, given.passes), chunks
            ):
                total += found
            print(f"{name}: {total} ({time.monotonic() - start:.0f} s)", flush=True)
            good = good and total.is_good
    return int(not good)


def run_apart(name: str, seed: int, numbers: range, passes: bool = False) -> Outcome:
    """Runs inputs in processes of their own: another one from the next input on, where one ended before its last."""
    total = Outcome()
    while numbers:
        span = [seed, numbers[0], numbers[-1] + 1, int(passes)]
        command = [sys.executable, "-m", "tests.frontends.fuzz.worker", name, *map(str, span)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        lines = done.stdout.splitlines()
        for line in lines[1::2]:
            found = json.loads(line)
            total += Outcome(found["count"], found["imported"], tuple(found["failures"]))
        if not lines:
            raise RuntimeError(f"{name}: the models can't be made: {done.stderr}")
        if len(lines) % 2:
            said = done.stderr.strip().rpartition("\n")[2]
            told = f"input {lines[-1]} of seed {seed} of {name}: the process ended with {done.returncode}: {said}"
            total += Outcome(1, 0, (told,))
        numbers = range(int(lines[-1 - (len(lines) % 2 == 0)]) + 1, numbers.stop)
    return total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
