"""A timeline of compiling and running, as a file that Perfetto (ui.perfetto.dev) and chrome://tracing show.

The format is Google's Trace Event Format (JSON object format): complete events (`"ph": "X"`) with their times in microseconds,
each on the track of its thread, and metadata events (`"ph": "M"`) that name the tracks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.driver.progress import Span

RUNS = ("load", "run")
"""The kinds of spans that belong to running; all others belong to compiling."""

COMPILING, RUNNING = 1, 2


def chrome_trace(spans: Sequence[Span], facts: Mapping[str, object]) -> dict[str, object]:
    """Returns a trace of *spans*, the first of which begins at 0, for `json.dump`; *facts* are kept with it."""
    origin = min([s.begin for s in spans], default=0.0)
    threads: dict[tuple[int, int], int] = {}
    events = [_event(s, origin, threads) for s in sorted(spans, key=lambda s: (s.begin, -s.end))]
    named = [
        _name("process_name", p, 0, {COMPILING: "compile", RUNNING: "run"}[p]) for p in sorted({p for p, _ in threads})
    ]
    for (process, _), number in threads.items():
        word = "main" if number == 1 else f"LLVM {number - 1}"
        named.append(_name("thread_name", process, number, word if process == COMPILING else "kernels"))
    return {"traceEvents": [*named, *events], "displayTimeUnit": "ms", "otherData": dict(facts)}


def _event(s: Span, origin: float, threads: dict[tuple[int, int], int]) -> dict[str, object]:
    """Returns a span as an event; threads are numbered from 1 in each process, in the order in which they begin."""
    process = RUNNING if s.kind in RUNS else COMPILING
    of_process = sum(p == process for p, _ in threads)
    number = threads.setdefault((process, s.thread), of_process + 1)
    return {
        "name": s.name,
        "cat": s.kind,
        "ph": "X",
        "ts": (s.begin - origin) * 1e6,
        "dur": (s.end - s.begin) * 1e6,
        "pid": process,
        "tid": number,
        "args": dict(s.facts),
    }


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
