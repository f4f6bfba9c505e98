#!/usr/bin/env python3
"""Time engines side by side, interleaved in rounds (A B C A B C ...).

    python bench.py --models resnet18,mlp --engines weft,onnxruntime,openvino --threads 1,2 --rounds 5 --json out.json

Each engine is a process in its own environment, and loads and compiles once per model and thread count. It is stopped
(SIGSTOP) whenever it is not its turn, so that a spinning pool can't disturb another's turn, and all its threads are
pinned to the first N of --cpus. A turn: warm up, then run until both --min-time and --min-iters (or --max-time) are
reached, each run timed alone.

ms              median of all runs of all rounds; min_ms the fastest
ratio           median over rounds of (engine's round median / onnxruntime's): less than 1 is faster
best_ratio      the same against the better of onnxruntime and openvino in each round; best_cpu_ratio in CPU time
cpu_ms          CPU time of the process a run (median; with several threads the mean of a turn): with one thread, on
                a machine that others use, a better figure than ms; with two it counts spinning too
cpu             CPU time / wall time in the timed runs (N busy threads: N; well under it: held up by others)
max_abs         largest |y - reference| over the outputs, the reference being onnxruntime's; max_rel: divided by the
                largest |reference|; the outputs agree when that is less than --tol
"""

import argparse
import json
import os
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from engines import ENGINES
from engines.base import CACHE, HERE
from inputs import Entry

from report import report

REFERENCE = "onnxruntime"
PEERS = ("onnxruntime", "openvino")
Figures = dict[str, Any]


class Process:
    """An engine's process, stopped except while it answers."""

    def __init__(self, engine: str, threads: int, cpus: list[int], log: TextIO) -> None:
        cls = ENGINES[engine]
        self.process = subprocess.Popen(
            [cls.python, str(HERE / "worker.py"), engine, str(threads), ",".join(map(str, cpus))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **cls.env(threads), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=HERE,
            start_new_session=True,  # so that a signal reaches what it started, and nothing else
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def read(self, timeout: float) -> Figures:
        """Return the next answer, or why there is none."""
        if not self.selector.select(timeout):
            return {"error": f"no answer in {timeout:.0f} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"process ended, code {self.process.wait()}"}

    def ask(self, timeout: float, **command: Any) -> Figures:
        """Let the process run until it has answered `command`."""
        try:
            self.signal(signal.SIGCONT)
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError) as error:
            return {"error": f"process gone: {error}"}
        answer = self.read(timeout)
        self.signal(signal.SIGSTOP)
        return answer

    def signal(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.selector.close()
        self.process.stdin.close()
        self.process.stdout.close()


class Comparison:
    """One model at one thread count: starts the engines, times them in turns, derives the ratios."""

    def __init__(self, entry: Entry, path: Path, threads: int, options: argparse.Namespace, log: TextIO) -> None:
        self.entry, self.path, self.threads, self.options, self.log = entry, path, threads, options, log
        named = options.engines.split(",")
        # The reference is first, for the others' outputs are compared with its.
        self.names = [REFERENCE, *(name for name in named if name != REFERENCE)]
        self.figures: dict[str, Figures] = {}
        self.live: dict[str, Process] = {}

    def run(self) -> dict[str, Figures]:
        """Return each engine's figures."""
        try:
            with tempfile.TemporaryDirectory(prefix="bench") as directory:
                for name in self.names:  # one at a time
                    self.start(name, Path(directory))
            for _ in range(self.options.rounds):
                for name in [n for n in self.names if n in self.live]:
                    time.sleep(0.02)
                    self.take_turn(name)
        finally:
            for process in self.live.values():
                process.close()
        self.summarise()
        return self.figures

    def start(self, name: str, directory: Path) -> None:
        """Start an engine, load the model into it and compare its outputs with the reference's."""
        every = sorted(os.sched_getaffinity(0))
        cpus = every if self.options.no_pin else [int(cpu) for cpu in self.options.cpus.split(",")][: self.threads]
        try:
            process = Process(name, self.threads, cpus, self.log)
        except FileNotFoundError as error:
            self.fail(name, f"no interpreter {error.filename} (setup.sh makes the peers'; WEFT_PYTHON names Weft's)")
            return
        figures = self.figures[name] = process.read(120)
        if "error" not in figures:
            out = str(directory / f"{name}.npz")
            timeout = self.options.compile_timeout
            figures.update(process.ask(timeout, cmd="load", path=str(self.path), entry=self.entry, out=out))
        if "error" in figures:
            process.close()
            self.fail(name, figures["error"])
            return
        if (directory / f"{REFERENCE}.npz").exists():
            figures.update(compare(directory / f"{name}.npz", directory / f"{REFERENCE}.npz", self.options.tol))
        figures.update(rounds=[], cpu_rounds=[], runs=[], shares=[])
        self.live[name] = process

    def take_turn(self, name: str) -> None:
        """Time one engine for a round."""
        limits = {key: getattr(self.options, key) for key in ("warm", "min_time", "min_iters", "max_time")}
        answer = self.live[name].ask(self.options.max_time * 3 + 120, cmd="time", **limits)
        figures = self.figures[name]
        if "error" in answer:
            self.live.pop(name).close()
            self.fail(name, answer["error"])
            return
        figures["rounds"].append(statistics.median(answer["s"]) * 1e3)
        figures["cpu_rounds"].append(answer["u"] * 1e3)
        figures["runs"] += answer["s"]
        figures["shares"].append(answer["cpu"])
        figures["rss_mb"] = max(figures["rss_mb"], answer["rss_mb"])

    def fail(self, name: str, why: str) -> None:
        self.figures.setdefault(name, {})["error"] = why
        print(f"  {self.entry['name']} t{self.threads} {name}: {why[:200]}", flush=True)

    def summarise(self) -> None:
        """Turn the rounds of every engine into medians and ratios."""
        peers = [self.figures[n] for n in PEERS if self.figures.get(n, {}).get("rounds")]
        reference = self.figures.get(REFERENCE, {})
        gflop = self.entry["flops"] / 1e6  # a millisecond
        for figures in self.figures.values():
            runs, shares = figures.pop("runs", None), figures.pop("shares", None)
            if not runs:
                continue
            figures["ms"], figures["min_ms"] = statistics.median(runs) * 1e3, min(runs) * 1e3
            figures["n"], figures["cpu"] = len(runs), statistics.median(shares)
            figures["cpu_ms"] = statistics.median(figures["cpu_rounds"])
            figures["gflops"] = gflop / figures["ms"]
            figures["cpu_gflops"] = gflop / max(1e-9, figures["cpu_ms"])
            for key, ratio in (("rounds", "ratio"), ("cpu_rounds", "cpu_ratio")):
                figures[ratio] = ratio_to(figures[key], reference.get(key, []))
                best = [min(round_) for round_ in zip(*(peer[key] for peer in peers), strict=False)]
                figures[f"best_{ratio}"] = ratio_to(figures[key], best)


def ratio_to(rounds: list[float], base: list[float]) -> float:
    """Return the median of the rounds' ratios; not a number where there is nothing to compare with."""
    ratios = [x / y for x, y in zip(rounds, base, strict=False) if y > 0]
    return statistics.median(ratios) if ratios else float("nan")


def compare(path: Path, reference: Path, tolerance: float) -> Figures:
    """Return how far the outputs at `path` are from the reference's, and whether that is within the tolerance."""
    largest = relative = 0.0
    with np.load(path) as ours, np.load(reference) as theirs:
        if len(ours.files) != len(theirs.files):
            return {"ok": False, "why": f"{len(ours.files)} outputs, not {len(theirs.files)}"}
        for key in theirs.files:
            x, y = ours[key].astype(np.float64), theirs[key].astype(np.float64)
            if x.shape != y.shape:
                return {"ok": False, "why": f"output {key}: shape {x.shape}, not {y.shape}"}
            error = float(np.abs(x - y).max()) if x.size else 0.0
            if not np.isfinite(error):
                return {"ok": False, "why": f"output {key}: not finite"}
            largest = max(largest, error)
            relative = max(relative, error / max(float(np.abs(y).max(initial=0.0)), 1e-30))
    return {"max_abs": largest, "max_rel": relative, "ok": relative < tolerance}


def chosen(patterns: str, manifest: dict[str, Entry]) -> list[str]:
    """Return the models meant by a comma list of names, prefixes*, "nets" and "ops"."""
    names: list[str] = []
    for pattern in patterns.split(","):
        if pattern in ("ops", "nets"):
            names += [name for name in manifest if name.startswith("op_") == (pattern == "ops")]
        elif pattern.endswith("*"):
            names += [name for name in manifest if name.startswith(pattern[:-1])]
        else:
            names.append(pattern)
    unknown = [name for name in names if name not in manifest]
    if unknown:
        sys.exit(f"no such model: {', '.join(unknown)}; there are {', '.join(manifest)}")
    return names


def one_line(name: str, threads: int, seconds: float, figures: dict[str, Figures]) -> str:
    """Return the progress line of one finished comparison."""
    parts = []
    for engine, f in figures.items():
        if "ms" in f:
            mark = "" if f.get("ok", True) else "!" + f.get("why", f"{f.get('max_rel', 0):.1e}")
            parts.append(f"{engine} {f['ms']:.4g}{mark}")
    return f"{name} t{threads} ({seconds:.0f}s load {os.getloadavg()[0]:.1f}): {'  '.join(parts)}"


def processor() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=HERE / "onnx", help="where models.py wrote the models")
    parser.add_argument(
        "--models", default="resnet18", help="comma list; 'ops' = the one-operator set, 'nets' = the rest, or a prefix*"
    )
    parser.add_argument("--engines", default="weft,onnxruntime,openvino", help="of " + ",".join(ENGINES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--cpus", default="1,0", help="CPUs to pin to, first N of them")
    parser.add_argument(
        "--no-pin", action="store_true", help="leave placement to the kernel (a machine that others use)"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=float, default=0.2, metavar="S", help="seconds of warm-up a turn")
    parser.add_argument("--min-time", type=float, default=0.5, metavar="S")
    parser.add_argument("--min-iters", type=int, default=5)
    parser.add_argument("--max-time", type=float, default=10, metavar="S")
    parser.add_argument("--compile-timeout", type=float, default=600, metavar="S")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--json", type=Path, default=HERE / "bench.json")
    parser.add_argument("--log", type=Path, default=HERE / "bench.log")
    parser.add_argument("--show", type=Path, help="only print the tables of this JSON file")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if options.show:
        print(report(json.loads(options.show.read_text())["results"]))
        return
    manifest = json.loads((options.dir / "manifest.json").read_text())
    CACHE.mkdir(parents=True, exist_ok=True)
    settings = {key: str(value) for key, value in vars(options).items()}
    document = {"args": settings, "cpu": processor(), "started": time.time(), "results": []}
    with options.log.open("a") as log:
        for name in chosen(options.models, manifest):
            for threads in map(int, options.threads.split(",")):
                start, entry = time.time(), manifest[name]
                figures = Comparison(entry, options.dir / f"{name}.onnx", threads, options, log).run()
                facts = {"model": name, "threads": threads, "flops": entry["flops"], "loadavg": os.getloadavg()}
                document["results"].append({**facts, "took_s": time.time() - start, "engines": figures})
                print(one_line(name, threads, time.time() - start, figures), flush=True)
                options.json.write_text(json.dumps(document, indent=1))
    print("\n" + report(document["results"]))


if __name__ == "__main__":
    main()
