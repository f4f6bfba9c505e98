#!/usr/bin/env python3
"""Check that `weft bench --peak` agrees with peak.c, a program of its own, both measured in turn.

    ../.venv/bin/python check_peak.py [--rounds 5] [--tol 0.03] [--plain]

Each program runs once in a round; the best of the rounds is compared, for a disturbance only ever lowers a rate, and so does a
process whose pages happen to share sets of the second-level cache. Both read memory in huge pages, as models' weights lie: peak.c
is run with GLIBC_TUNABLES set so that glibc gives it such pages, or with --plain in the environment as it is. In small pages, a
core of Zen 4 reads up to a tenth less, and the two agree less well. Exits with 1 where a figure of one core differs by more than
--tol. Needs AVX-512, as peak.c does. Where there is AMX, the rates of its tiles by peak.c follow, without a comparison.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
WEFT = Path(sys.executable).with_name("weft")
ARITHMETIC = {
    "f32 multiply-add, 512-bit vectors": "fp32 fma zmm GFLOP/s",
    "f32 multiply-add, 256-bit vectors": "fp32 fma ymm GFLOP/s",
}


HUGE_PAGES = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=2147483648:glibc.malloc.top_pad=4194304:glibc.malloc.arena_max=1"
"""What makes glibc give all memory from one heap in huge pages, small buffers included."""


def run_ours(directory: Path) -> dict[str, tuple[float, float]]:
    """Return the figures of `weft bench --peak` of one core and of all, by the names that peak.c has for them."""
    written = directory / "peak.json"
    subprocess.run([WEFT, "bench", "--peak", "--quiet", "--json", written], check=True, stdout=subprocess.DEVNULL)
    limits = json.loads(written.read_text())["limits"]
    return {their_name(x["name"], x["nbytes"]): (x["one_core"], x["all_cores"]) for x in limits}


def their_name(name: str, nbytes: int) -> str:
    """Return what peak.c calls a limit."""
    return f"read bw {nbytes >> 10} KiB" if nbytes else ARITHMETIC.get(name, "")


def build_theirs(directory: Path) -> Path:
    """Return the path of peak.c, compiled for this machine."""
    program = directory / "peak"
    subprocess.run(["cc", "-O2", "-march=native", "-pthread", HERE / "peak.c", "-o", program], check=True)
    return program


def run_theirs(program: Path, tunables: str = "") -> dict[str, tuple[float, float]]:
    """Return peak.c's figures of one core and of two, by name; *tunables* are glibc's, if any are to be set."""
    told = {**os.environ, **({"GLIBC_TUNABLES": tunables} if tunables else {})}
    printed = subprocess.run([program], check=True, capture_output=True, text=True, env=told).stdout
    found = re.findall(r"^(.*): 1c (\S+) 2c (\S+)", printed, re.M)
    return {name: (float(one), float(two)) for name, one, two in found}


def best(rounds: list[dict[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Return the best of each figure."""
    return {n: (max(r[n][0] for r in rounds), max(r[n][1] for r in rounds)) for n in rounds[0]}


def measure(rounds: int, tunables: str) -> tuple[dict[str, tuple[float, float]], dict[str, tuple[float, float]]]:
    """Return the best figures of Weft and of peak.c."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as directory:
        program = build_theirs(Path(directory))
        for _ in range(rounds):
            ours.append(run_ours(Path(directory)))
            theirs.append(run_theirs(program, tunables))
    return best(ours), best(theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tol", type=float, default=0.03)
    parser.add_argument("--plain", action="store_true", help="run peak.c in the environment as it is")
    options = parser.parse_args()
    tunables = "" if options.plain else HUGE_PAGES
    print(f"peak.c with GLIBC_TUNABLES={tunables}" if tunables else "peak.c in the environment as it is", flush=True)
    ours, theirs = measure(options.rounds, tunables)
    failed = 0
    for name in [n for n in ours if n in theirs]:
        (one, all_), (their_one, their_two) = ours[name], theirs[name]
        wrong = abs(one / their_one - 1) > options.tol
        failed += wrong
        verdict = "DIFFERS" if wrong else "ok"
        print(
            f"{name:<22} one core {one:7.1f} peak.c {their_one:7.1f} {one / their_one - 1:+6.1%} {verdict:<8}"
            f" all {all_:7.1f} peak.c {their_two:7.1f} {all_ / their_two - 1:+6.1%}"
        )
    for name in [n for n in theirs if "amx" in n and theirs[n][0]]:
        print(
            f"{name:<22} one core                peak.c {theirs[name][0]:7.1f}, matrix registers, which Weft has no figure for"
        )
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
