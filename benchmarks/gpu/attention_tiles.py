"""Times tiles of an attention on a GPU with CUDA, each beside the estimate that the rule chooses by.

    .venv/bin/python benchmarks/gpu/attention_tiles.py                               of 512 and 2048 queries and keys
    .venv/bin/python benchmarks/gpu/attention_tiles.py --cases attention512_fp32 --plans 100 --json tiles.json
    .venv/bin/python benchmarks/gpu/attention_tiles.py --dry                         compiles the candidates only

Candidates are those in fragments, and of the others half the cheapest, half drawn at random among those that are not hopeless.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
from cases import case_of
from chosen_plan import compile_with
from device_time import kernel_seconds

import weft
from weft.cost import WHOLE_SOFTMAX, AttentionSizes, AttentionTile, Candidate, attention_tile_plans
from weft.targets import parse_target

CASES = "attention128_fp16,attention512_fp16,attention2048_fp16,attention512_fp32,attention2048_fp32"
HEADS, DEPTH = 12, 64
WITHIN = 4.0
"""How many times the cycles of the cheapest candidates that are drawn may have."""

Row = dict[str, Any]


def sample(name: str, plans: int, target: str) -> list[Candidate[AttentionTile]]:
    """Returns candidates for a case, the cheapest first."""
    length, narrow = int(name.split("_")[0].removeprefix("attention")), name.endswith("16")
    sizes = AttentionSizes(HEADS, length, length, DEPTH, DEPTH, narrow)
    known = [c for c in attention_tile_plans(sizes, parse_target(target)) if c.decision != WHOLE_SOFTMAX]
    ranked = sorted(known, key=lambda c: c.cycles)
    whole = [c for c in ranked if c.decision.warps]
    others = [c for c in ranked if not c.decision.warps]
    first, rest = others[: plans // 2], others[plans // 2 :]
    near = [c for c in rest if c.cycles < WITHIN * others[0].cycles]
    return [*whole, *([] if narrow else [*first, *random.Random(0).sample(near, min(len(near), plans - len(first)))])]


def compiled(name: str, tile: AttentionTile, target: str, path: str) -> str:
    """Writes the model of a case in a tile to a file; returns why not, or nothing."""
    return compile_with(case_of(name).model(), tile, target, path)


def swept(names: Sequence[str], options: argparse.Namespace, folder: str) -> Iterator[Row]:
    """Compiles and times the candidates of all cases."""
    stop, first = monotonic() + options.seconds, {}
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        pending = {}
        for name in names:
            for n, c in enumerate(sample(name, options.plans, options.target)):
                path = f"{folder}/{name}{n}.weft"
                pending[pool.submit(compiled, name, c.decision, options.target, path)] = (name, c, path)
        for job in as_completed(pending):
            name, c, path = pending[job]
            row: Row = {"case": name, "plan": str(c.decision), "predicted": c.cycles}
            why = str(job.exception() or job.result())
            if why:
                row["error"] = why
            elif not options.dry:
                row |= _timed(name, path, first)
            yield row
            if monotonic() > stop:
                pool.shutdown(wait=False, cancel_futures=True)
                return


def _timed(name: str, path: str, first: dict[str, np.ndarray[Any, Any]]) -> Row:
    case = case_of(name)
    inputs = list(case.inputs().values())
    try:
        model = weft.load(path)
        made = np.asarray(model.run(inputs)[0], np.float32)
        difference = float(np.abs(made - first.setdefault(name, made)).max())
        seconds, _ = kernel_seconds(model, inputs, 0.015)
    except Exception as error:  # the others are timed all the same
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    return {"ms": seconds * 1000, "tflops": case.flops / seconds / 1e12, "difference": difference}


def main() -> int:
    """Runs the sweep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--plans", type=int, default=30, help="candidates of each case that are in no fragments")
    parser.add_argument("--seconds", type=float, default=40.0, help="after which no other is timed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        rows = list(swept(options.cases.split(","), options, folder))
    for row in sorted(rows, key=lambda r: (r["case"], r.get("ms", np.inf))):
        print(json.dumps(row))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1), encoding="utf-8")
    return int(any("error" in r for r in rows))


if __name__ == "__main__":
    sys.exit(main())
