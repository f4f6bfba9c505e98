"""One engine's process: loads a model and times it when told to, over JSON lines on standard input and output.

{"cmd": "load", "path", "entry", "out"}                           -> compile_s, first_ms, rss_mb; outputs into `out`
{"cmd": "time", "warm", "min_time", "min_iters", "max_time"}     -> s (seconds a run), u (CPU), cpu, rss_mb
"""

import json
import os
import resource
import statistics
import sys
import time
import traceback
from typing import Any

import numpy as np
from engines import ENGINES, Engine
from inputs import make_inputs

MOST_WARM_UPS = 200
MOST_SAMPLES = 2000


def pin(cpus: list[int]) -> None:
    """Hold all threads of this process to `cpus`."""
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cpus)
        except ProcessLookupError:  # it ended meanwhile
            continue


def peak_rss_mb() -> float:
    """Return the peak memory of this process or of its largest child."""
    usages = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(usages) / 1024


def load(engine: Engine, threads: int, cpus: list[int], command: dict[str, Any]) -> dict[str, Any]:
    inputs = make_inputs(command["entry"])
    start = time.perf_counter()
    engine.load(command["path"], command["entry"], inputs, threads)
    compiled = time.perf_counter()
    result = engine.run()
    first = time.perf_counter()
    np.savez(command["out"], **{str(i): array for i, array in enumerate(engine.outputs(result))})
    pin(cpus)
    return {"compile_s": compiled - start, "first_ms": (first - compiled) * 1e3, "rss_mb": peak_rss_mb()}


def warm_up(engine: Engine, seconds: float, most: float) -> None:
    start, count = time.perf_counter(), 0
    while count < 2 or (time.perf_counter() - start < seconds and count < MOST_WARM_UPS):
        if count and time.perf_counter() - start > most:
            return
        engine.run()
        count += 1


def measure(engine: Engine, threads: int, command: dict[str, Any]) -> dict[str, Any]:
    """Time runs, each alone, until both the least time and the least count, or the most time, are reached."""
    wall, cpu, run = time.perf_counter, time.process_time, engine.run
    walls: list[float] = []
    cpus: list[float] = []
    warm_up(engine, command["warm"], command["max_time"] / 2)
    first_cpu, first = cpu(), wall()
    while True:
        start_cpu, start = cpu(), wall()
        run()
        end = wall()
        walls.append(end - start)
        cpus.append(cpu() - start_cpu)
        enough = end - first >= command["min_time"] and len(walls) >= command["min_iters"]
        if enough or end - first >= command["max_time"]:
            break
    total = cpu() - first_cpu
    busy = total / (wall() - first)
    each = statistics.median(cpus) if threads == 1 else total / len(walls)
    stride = len(walls) // MOST_SAMPLES + 1  # a small record, without bias
    return {"s": walls[::stride], "u": each, "cpu": busy, "rss_mb": peak_rss_mb()}


def main() -> None:
    name, threads, cpus = sys.argv[1], int(sys.argv[2]), [int(cpu) for cpu in sys.argv[3].split(",")]
    replies = os.fdopen(os.dup(1), "w", buffering=1)  # the protocol keeps the real output;
    os.dup2(2, 1)  # whatever an engine prints goes to the log
    engine = ENGINES[name]()
    if engine.pins_before_loading:
        cpus = cpus[:threads]
        pin(cpus)
    start = time.perf_counter()
    engine.imports()
    print(json.dumps({"import_s": time.perf_counter() - start, "version": engine.version()}), file=replies)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["cmd"] == "load":
                answer = load(engine, threads, cpus, command)
            else:
                answer = measure(engine, threads, command)
        except Exception as error:  # whatever went wrong is this engine's result
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), file=replies)


if __name__ == "__main__":
    main()
