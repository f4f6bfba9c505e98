"""Imports damaged models, in processes of which memory and time are limited.

python -m tests.frontends.onnx.fuzz -n 50000 --seed 0 --jobs 2

Models are ONNX's own cases, those of strings and regions among them, of which fields are changed (`mutations`), or bytes. What is
imported goes through the graph passes. An exception that is no error of Weft's, the end of a process, or more than `SECONDS` is a
failure; so is a run in which fewer than half of the inputs are read by protobuf, or fewer than a tenth reach the passes.
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing import get_context

from tests.frontends.onnx.fuzz.campaign import CHUNK, Outcome, run_chunk


def main(arguments: list[str]) -> int:
    """Runs the campaign; returns 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="fuzz-import")
    parser.add_argument("-n", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    total = Outcome()
    with get_context("spawn").Pool(given.jobs, maxtasksperchild=20) as pool:
        chunks = [(given.seed, first, min(CHUNK, given.n - first)) for first in range(0, given.n, CHUNK)]
        for k, found in enumerate(pool.imap_unordered(run_chunk, chunks), 1):
            total += found
            if k % 10 == 0:
                print(f"{total.count} of {given.n}", file=sys.stderr, flush=True)
    print(total)
    return int(not total.is_good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
