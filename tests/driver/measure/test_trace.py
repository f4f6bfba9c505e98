"""The trace is a valid file of the Trace Event Format: named tracks, and events on each that lie within one another or apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models import conv_bn_relu, mlp

import weft
from weft.driver.cache.code_cache import Cache
from weft.driver.measure.chrome_trace import chrome_trace
from weft.driver.measure.profile import Profiler
from weft.driver.progress import Span


def check_trace(trace: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Raises `AssertionError` unless a viewer can show *trace*; returns its events by process and thread, in their order."""
    trace = json.loads(json.dumps(trace, allow_nan=False))
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    tracks: dict[tuple[int, int], list[dict[str, Any]]] = {}
    named: dict[str, set[tuple[int, int]]] = {"process_name": set(), "thread_name": set()}
    for e in trace["traceEvents"]:
        assert isinstance(e["pid"], int)
        assert isinstance(e["tid"], int)
        assert isinstance(e["name"], str)
        assert e["name"]
        if e["ph"] == "M":
            named[e["name"]].add((e["pid"], e["tid"]))
            assert e["args"]["name"]
        else:
            assert e["ph"] == "X"
            assert e["ts"] >= 0
            assert e["dur"] >= 0
            assert isinstance(e["args"], dict)
            tracks.setdefault((e["pid"], e["tid"]), []).append(e)
    assert named["thread_name"] == set(tracks)
    assert {p for p, _ in named["process_name"]} == {p for p, _ in tracks}
    for events in tracks.values():
        check_nesting(events)
    return tracks


def check_nesting(events: list[dict[str, Any]]) -> None:
    """Checks that of any two events of a track, one holds the other, or they are apart; an outer one comes first."""
    ends: list[float] = []
    for e in events:
        while ends and e["ts"] >= ends[-1] - 0.001:  # microseconds
            ends.pop()
        assert not ends or e["ts"] + e["dur"] <= ends[-1] + 0.001, e
        ends.append(e["ts"] + e["dur"])


def test_compiling(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    made = weft.build(mlp(), cache=cache)
    tracks = check_trace(chrome_trace(made.spans, {"model": "mlp"}))
    main = tracks[1, 1]
    stages = [e["name"] for e in main if e["cat"] == "stage"]
    assert stages == ["read", "optimize", "plan", "kernels", "link"]
    scheduled = [e["name"] for e in main if e["cat"] == "kernel" and e["args"]]
    compiled = [e["name"] for events in tracks.values() for e in events if e["cat"] == "LLVM"]
    assert scheduled == [k.name for k in made.kernels.values()]
    assert sorted(compiled) == sorted(scheduled)
    assert all(e["tid"] > 1 for events in tracks.values() for e in events if e["cat"] == "LLVM")
    passes = [e for e in main if e["cat"] == "pass"]
    assert len(passes) > 10 * len(scheduled)
    assert {e["args"]["changed"] for e in passes} == {True, False}
    again = weft.build(mlp(), cache=cache)
    assert {s.kind for s in again.spans} == {"stage", "graph pass"}  # all kernels came from the cache


@pytest.mark.parametrize("threads", [1, 2])
def test_running(threads: int) -> None:
    made = weft.build(conv_bn_relu())
    x = {v.name: np.ones((1, 4, 9, 9), np.float32) for v in made.package.inputs}
    spans = Profiler(made, x, threads).spans()
    (events,) = check_trace(chrome_trace(spans, {})).values()
    assert [e["name"] for e in events] == [made.kernels[g.key].name for g in made.fused.groups]
    assert [e["args"]["for"] for e in events] == [g.source for g in made.fused.groups]
    assert events[0]["ts"] == 0


def test_the_run_that_is_traced_is_a_typical_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = weft.build(conv_bn_relu())
    profiler = Profiler(made, {v.name: np.ones((1, 4, 9, 9), np.float32) for v in made.package.inputs})
    ends = [9_000_000, 2_000, 1_000, 3_000, 2_000_000]
    monkeypatch.setattr(profiler, "run", lambda repeats, **_: [[0, *[end] * len(profiler.calls)] for end in ends])
    span = profiler.spans()[0]
    assert span.begin == 0.0
    assert span.end == pytest.approx(3e-6)


def test_threads_have_tracks_of_their_own() -> None:
    spans = [Span("a", "stage", 5.0, 9.0, 77), Span("b", "LLVM", 6.0, 9.5, 33), Span("c", "run", 10.0, 11.0, 77)]
    tracks = check_trace(chrome_trace(spans[::-1], {}))
    found = {place: [(e["name"], e["ts"], e["dur"]) for e in events] for place, events in tracks.items()}
    assert found == {(1, 1): [("a", 0.0, 4e6)], (1, 2): [("b", 1e6, 3.5e6)], (2, 1): [("c", 5e6, 1e6)]}


def test_no_spans() -> None:
    assert check_trace(chrome_trace([], {})) == {}


def test_the_check_sees_what_is_wrong() -> None:
    with pytest.raises(AssertionError):
        check_trace(chrome_trace([Span("a", "stage", 0.0, 2.0, 1), Span("b", "stage", 1.0, 3.0, 1)], {}))
    with pytest.raises(AssertionError):
        check_trace(chrome_trace([Span("a", "stage", 2.0, 1.0, 1)], {}))
