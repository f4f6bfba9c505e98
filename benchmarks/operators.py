#!/usr/bin/env python3
"""Time every ONNX operator at three sizes against ONNX Runtime: one thread, processor time, in turns within one run.

    ../.venv/bin/python operators.py [--only TopK,CumSum] [--size large] [--seconds 0.1] [--json out.json]

Each operator is a model of one node. Weft is called as anybody calls it; ONNX Runtime's inputs and outputs are bound beforehand.
Outputs are compared first. The figure of a case is the median over the turns of Weft's time divided by ONNX Runtime's in that
turn: less than 1 is faster. Prints the worst ten, the geometric mean of all, and what could not be compared. Exits with 1 where
outputs disagree, or a ratio is above --bound.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from operator_cases import cases
from operator_table import MICROSOFT, OPSETS, SIZES, WITHOUT_TIME, Case

import weft
from weft.frontends.onnx.translations import TABLE

Figures = dict[str, Any]
TURNS = 7
WORST_SHOWN = 10


class Bound:
    """A session of ONNX Runtime, its inputs and outputs bound once."""

    def __init__(self, model: bytes, inputs: dict[str, np.ndarray]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = 1, 1, 4
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.held = {n: onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a)) for n, a in inputs.items()}
        self.binding = self.session.io_binding()
        for name, value in self.held.items():
            self.binding.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name, "cpu")
        self()
        self.results = self.binding.get_outputs()
        for output, value in zip(self.session.get_outputs(), self.results, strict=True):
            self.binding.bind_ortvalue_output(output.name, value)
        for _ in range(2):  # GroupQueryAttention refuses its outputs then: a reason not to compare it
            self()

    def __call__(self) -> None:
        self.session.run_with_iobinding(self.binding)


def runtime_for(case: Case) -> tuple[int, Bound] | str:
    """Return the version of the operators that ONNX Runtime takes, and its session; else why there is none."""
    why = ""
    for opset in OPSETS:
        try:
            return opset, Bound(case.model(opset).SerializeToString(), case.given)
        except Exception as error:
            why = why or str(error).strip().splitlines()[-1][:160]
    return why


def taken(call: Callable[[], Any], count: int) -> float:
    """Return the seconds of processor time of one of *count* calls."""
    begin = time.thread_time()
    for _ in range(count):
        call()
    return (time.thread_time() - begin) / count


def count_for(call: Callable[[], Any], seconds: float) -> int:
    """Return how many calls take about *seconds*."""
    count = 1
    while (spent := taken(call, count) * count) < seconds / 4 and count < 1 << 16:
        count *= 2
    return max(1, int(count * seconds / max(spent, 1e-9)))


def differs(ours: Any, theirs: list[np.ndarray]) -> str:
    """Return where outputs disagree, or nothing."""
    made = [np.asarray(y) for y in (ours if isinstance(ours, tuple) else (ours,))]
    for k, (a, b) in enumerate(zip(made, theirs, strict=False)):
        if a.shape != b.shape:
            return f"output {k} has the shape {a.shape}, not {b.shape}"
        x, y = a.astype(np.float64), b.astype(np.float64)
        limit = 1e-3 * max(1.0, float(np.nanmax(np.abs(y), initial=0, where=np.isfinite(y)))) + (b.dtype.kind in "iu")
        if not np.all((np.abs(x - y) <= limit) | (x == y) | (np.isnan(x) & np.isnan(y))):
            return f"output {k} differs by {np.nanmax(np.abs(x - y)):.3g}"
    return ""


def measure(case: Case, seconds: float) -> Figures:
    """Return the figures of a case: microseconds of both, their ratio, the seconds of compiling, or why there are none."""
    row: Figures = {"operator": case.operator, "size": case.size, "case": case.label}
    found = runtime_for(case)
    if isinstance(found, str):
        return row | {"skipped": f"ONNX Runtime: {found}"}
    opset, runtime = found
    try:
        begin = time.process_time()
        model = weft.compile(case.model(opset), threads=1)
        row["compile_s"] = time.process_time() - begin
        ours = model(**case.given)
    except weft.WeftError as error:
        return row | {"skipped": f"weft: {str(error).splitlines()[0][:160]}"}
    if why := differs(ours, [value.numpy() for value in runtime.results]):
        return row | {"error": why}
    given = case.given
    calls: list[Callable[[], Any]] = [lambda: model(**given), runtime]
    counts = [count_for(c, seconds / TURNS / 2) for c in calls]
    times = [[taken(c, n) for c, n in zip(calls, counts, strict=True)] for _ in range(TURNS)]
    row["weft_us"], row["onnxruntime_us"] = (statistics.median(t) * 1e6 for t in zip(*times, strict=True))
    row["ratio"] = statistics.median([a / b for a, b in times])
    return row


def summary(rows: list[Figures]) -> str:
    """Return the worst ratios, the geometric means, and what was left out, as text."""
    timed = sorted([r for r in rows if "ratio" in r], key=lambda r: -r["ratio"])
    lines = [f"{r['ratio']:8.2f}  {r['weft_us']:11.1f} us  {r['onnxruntime_us']:11.1f} us  {r['case']}" for r in timed]
    shown = ["   ratio         weft     ONNX Runtime", *lines[:WORST_SHOWN]]
    for size in [None, *dict.fromkeys(r["size"] for r in timed)]:
        ratios = [r["ratio"] for r in timed if size in (None, r["size"])]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        above = sum(x > 2 for x in ratios)
        shown.append(f"{size or 'all'}: geometric mean {mean:.3f} of {len(ratios)}, {above} above 2")
    shown += [f"disagrees: {r['case']}: {r['error']}" for r in rows if "error" in r]
    skipped = [r for r in rows if "skipped" in r]
    shown += [f"not compared: {r['case']}: {r['skipped']}" for r in skipped]
    return "\n".join(shown)


def without_case(rows: list[Figures]) -> list[str]:
    """Return the operators of the table that no case is of."""
    have = {r["operator"] for r in rows}
    return sorted({name for domain, name in TABLE if domain in ("", MICROSOFT)} - have - WITHOUT_TIME)


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="operators, separated by commas")
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each case")
    parser.add_argument("--bound", type=float, default=math.inf, help="a ratio above it is a failure")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Figures] = []
    names = options.only.split(",") if options.only else None
    for case in cases(names, SIZES if options.size is None else (options.size,)):
        rows.append(measure(case, options.seconds))
        if sys.stderr.isatty():
            print(f"\r{len(rows)} {rows[-1]['case'][:70]:70}", end="", file=sys.stderr)
    print(summary(rows))
    if not options.only:
        print(f"no case: {', '.join(without_case(rows))}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    return int(any("error" in r or r.get("ratio", 0) > options.bound for r in rows))


def machine() -> str:
    """Return the processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
