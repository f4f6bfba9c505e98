#!/usr/bin/env python3
"""Compare Weft with the better of its peers on random operators: contractions, reductions, convolutions of any rank.

    venv-ort/bin/python sweep.py --seed 1 [--count 200] [--engines weft,onnxruntime,openvino] [--json out.json]

Every operator is an ONNX model of its own; the engines load and time it in turn, in rounds, on one thread. Each engine is
one process for the whole sweep, stopped whenever it is not its turn. The figure of a case is the median over the rounds of
Weft's CPU time against the better peer's in that round: less than 1 is faster. Exits with 1 where outputs disagree, or a
bound of --bounds (median, 95th percentile, worst) is missed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx
from bench import Process, compare, processor, ratio_to
from engines import ENGINES
from random_operators import Case, random_cases

Figures = dict[str, Any]
WORST_SHOWN = 25


class Sweep:
    """The engines' processes, and what was found so far."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options, self.directory = options, directory
        self.engines: list[str] = [n for n in options.engines.split(",") if _is_there(n)]
        self.processes: dict[str, Process] = {}
        self.log = (directory / "log").open("w+")

    def process(self, name: str) -> Process:
        """Return an engine's process, started again if it is gone."""
        found = self.processes.get(name)
        if found is None or found.process.poll() is not None:
            found = self.processes[name] = Process(name, 1, sorted(os.sched_getaffinity(0)), self.log)
            started = found.read(120)
            if "error" in started:
                sys.exit(f"{name} does not start: {started['error']}")
        return found

    def run(self, number: int, case: Case) -> Figures:
        """Load a case everywhere, compare the outputs, and time it in rounds."""
        name = f"sweep{self.options.seed}_{number}"
        path = self.directory / f"{name}.onnx"
        onnx.save(case.model(name), path)
        row: Figures = {"n": number, "kind": case.kind, "case": case.label, "flops": case.flops, "errors": {}}
        live = [e for e in self.engines if self._load(e, path, case, row)]
        rounds: dict[str, list[float]] = {e: [] for e in live}
        for _ in range(self.options.rounds):
            for engine in live:
                answer = self.process(engine).ask(
                    60, cmd="time", warm=0.01, min_time=self.options.turn, min_iters=3, max_time=1.0
                )
                rounds[engine].append(answer["u"] * 1e6 if "u" in answer else float("nan"))
        path.unlink()
        return _with_ratios(row, rounds)

    def _load(self, engine: str, path: Path, case: Case, row: Figures) -> bool:
        """Load a case into one engine; return whether that worked. Outputs are compared with the first peer's."""
        out = self.directory / f"{engine}.npz"
        asked = {"cmd": "load", "path": str(path), "entry": case.entry(path.stem), "out": str(out)}
        answer = self.process(engine).ask(self.options.timeout, **asked)
        if "error" in answer:
            row["errors"][engine] = answer["error"]
            return False
        row.setdefault("compile_s", {})[engine] = answer["compile_s"]
        reference = self.directory / f"{self.engines[0]}.npz"
        if out != reference:
            found = compare(out, reference, self.options.tol)
            if not found["ok"]:
                row["errors"][engine] = found.get("why") or f"differs by {found['max_rel']:.1e}"
        return True

    def close(self) -> None:
        for process in self.processes.values():
            process.close()
        self.log.close()


def _is_there(engine: str) -> bool:
    if Path(ENGINES[engine].python).exists():
        return True
    print(f"{engine} is left out: there is no {ENGINES[engine].python}")
    return False


def _with_ratios(row: Figures, rounds: dict[str, list[float]]) -> Figures:
    """Add each engine's median microseconds and Weft's ratio to the better peer."""
    row["us"] = {e: statistics.median(r) for e, r in rounds.items()}
    peers = [r for e, r in rounds.items() if e != "weft"]
    if "weft" in rounds and peers:
        row["ratio"] = ratio_to(rounds["weft"], [min(r) for r in zip(*peers, strict=True)])
    return row


def line(row: Figures) -> str:
    """Return one case as a line of text."""
    times = " ".join(f"{e} {t:.1f}" for e, t in row["us"].items())
    rate = row["flops"] / row["us"]["weft"] / 1e3 if row["us"].get("weft") else 0.0
    errors = "".join(f"  {e}: {why}" for e, why in row["errors"].items())
    return f"{row.get('ratio', float('nan')):6.2f}  {row['kind']:<12} {row['case']}  [us: {times}; {rate:.0f} GFLOP/s]{errors}"


def percentile(values: list[float], share: float) -> float:
    """Return the value that *share* of *values* do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def summary(rows: list[Figures]) -> str:
    """Return the figures over all cases and over each class, and the worst cases."""
    lines = [f"{'':<12} {'cases':>6} {'median':>7} {'p95':>7} {'worst':>7}"]
    for kind in ["all", *dict.fromkeys(r["kind"] for r in rows)]:
        ratios = [r["ratio"] for r in rows if "ratio" in r and kind in ("all", r["kind"])]
        if ratios:
            figures = statistics.median(ratios), percentile(ratios, 0.95), max(ratios)
            lines.append(f"{kind:<12} {len(ratios):6} " + " ".join(f"{f:7.2f}" for f in figures))
    worst = sorted(rows, key=lambda r: -r.get("ratio", float("inf")))[:WORST_SHOWN]
    wrong = [r for r in rows if r["errors"]]
    lines += ["", "the worst:", *[line(r) for r in worst]]
    return "\n".join([*lines, f"{len(wrong)} with errors or disagreements", *[line(r) for r in wrong]])


def passes(rows: list[Figures], bounds: list[float]) -> bool:
    """Tell whether every case ran and agrees, and median, 95th percentile and worst are within *bounds*."""
    ratios = [r["ratio"] for r in rows if "ratio" in r]
    if any("weft" in r["errors"] for r in rows) or not ratios or any("ratio" not in r for r in rows):
        return False
    figures = statistics.median(ratios), percentile(ratios, 0.95), max(ratios)
    return all(f <= b for f, b in zip(figures, bounds, strict=True))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", default="", help="numbers of cases, or a class: 3,17 or depthwise")
    parser.add_argument("--engines", default="onnxruntime,openvino,weft")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.03, help="seconds of a turn")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--bounds", type=float, nargs=3, default=[0.95, 1.25, 2.0])
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[tuple[int, Case]]:
    """Return the cases that are asked for, with their numbers."""
    cases = list(enumerate(random_cases(options.seed, options.count)))
    wanted = [w for w in options.only.split(",") if w]
    return [(n, c) for n, c in cases if not wanted or str(n) in wanted or c.kind in wanted]


def main() -> None:
    options = parse_options()
    rows: list[Figures] = []
    start = time.time()
    with tempfile.TemporaryDirectory(prefix="sweep") as directory:
        sweep = Sweep(options, Path(directory))
        try:
            for number, case in chosen(options):
                rows.append(sweep.run(number, case))
                print(f"{number:3} {line(rows[-1])}", flush=True)
        finally:
            sweep.close()
    print(f"\nseed {options.seed}, {time.time() - start:.0f} s, {processor()}\n{summary(rows)}")
    if options.json:
        found = {"seed": options.seed, "machine": processor(), "rows": rows}
        options.json.write_text(json.dumps(found, indent=1))
    sys.exit(not passes(rows, options.bounds))


if __name__ == "__main__":
    main()
