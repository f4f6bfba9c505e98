"""All that the page shows of a compilation, as JSON knows it: the page's scripts only draw it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import weft
from weft.cli.report.graphs import draw_calls, draw_model, draw_optimized
from weft.cli.report.outline import outline
from weft.driver.build import Compilation
from weft.driver.measure.roofline import Roofs, Standing
from weft.graph import Place, Value, type_text
from weft.ir import Const, Expr


@dataclass(frozen=True)
class Timing:
    """The times of the kernels on this machine, and its peak rates."""

    roofs: Roofs
    kernels: Sequence[Standing]


def report_facts(
    title: str, made: Compilation, machine: Mapping[str, object], timing: Timing | None = None
) -> dict[str, Any]:
    """Returns the facts of *made*, a model of static shapes; without *timing*, nothing is said of times."""
    keys = _by_time(made, timing)
    number = {key: n for n, key in enumerate(keys)}
    return {
        "title": title,
        "version": weft.__version__,
        "target": made.package.target,
        "machine": dict(machine),
        "inputs": list(map(str, made.package.inputs)),
        "outputs": list(map(str, made.package.outputs)),
        "sizes": _sizes(made),
        "stages": dict(made.seconds),
        "cached": made.cached,
        "graphs": {
            "model": draw_model(made.source, made.fused).facts(),
            "optimized": draw_optimized(made.fused).facts(),
            "calls": draw_calls(made.fused).facts(),
        },
        "calls": [{"kernel": number.get(g.key, 0), "source": g.source} for g in made.fused.calls],
        "kernels": _kernels(made, keys, timing),
        "roofs": None if timing is None else _roofs(timing.roofs),
        "memory": _memory(made),
    }


def _by_time(made: Compilation, timing: Timing | None) -> list[str]:
    """Returns the groups' keys, those of kernels that take the most time first; as they come where no time is known."""
    if timing is None:
        return list(made.kernels)
    rank = {s.name: n for n, s in enumerate(timing.kernels)}
    return sorted(made.kernels, key=lambda key: rank[made.kernels[key].name])


def _sizes(made: Compilation) -> dict[str, int]:
    return {
        "nodes": len(made.source.nodes),
        "optimized": len(made.fused.graph.nodes),
        "calls": len(made.fused.calls),
        "kernels": len(made.kernels),
        "weights": sum(c.nbytes for c in made.source.constants()),
        "constants": sum(c.nbytes for c in made.fused.constants),
        "code": len(made.package.image),
        "arena": _number(made.plan.size),
        "bound": _number(made.plan.bound),
    }


def _number(e: Expr) -> int:
    return int(e.value) if isinstance(e, Const) else 0


def _kernels(made: Compilation, keys: Sequence[str], timing: Timing | None) -> list[dict[str, Any]]:
    standings = {} if timing is None else {s.name: s for s in timing.kernels}
    calls = Counter(g.key for g in made.fused.kernel_calls)
    first = {g.key: g for g in reversed(made.fused.kernel_groups)}
    number = {key: n for n, key in enumerate(made.kernels, 1)}  # as `weft inspect` has it
    return [
        {
            "name": k.name,
            "number": number[key],
            "calls": calls[key],
            "source": first[key].source,
            "code": k.code_bytes,
            "made": k.seconds,
            "scheduled": k.scheduled,
            "trace": k.trace,
            "flat": k.flat,
            "outline": outline(k.scheduled),
            "inputs": [type_text(v.type) for v in first[key].inputs],
            "outputs": [type_text(v.type) for v in first[key].outputs],
            "timing": _standing(standings[k.name]) if k.name in standings else None,
        }
        for key, k in ((key, made.kernels[key]) for key in keys)
    ]


def _standing(s: Standing) -> dict[str, Any]:
    return {
        "seconds": s.seconds,
        "operations": s.operations,
        "bytes": s.nbytes,
        "limits": dict(s.limits),
        "limit": s.limit,
        "share": s.share,
        "cause": s.cause,
        "bound": s.bound,
    }


def _roofs(roofs: Roofs) -> dict[str, Any]:
    levels = [
        {"name": x.name, "bandwidth": x.bandwidth, "capacity": x.capacity if isfinite(x.capacity) else None}
        for x in roofs.levels
    ]
    return {"peak": roofs.peak, "levels": levels}


def _memory(made: Compilation) -> dict[str, Any]:
    """Returns the buffers of the arena: where and when each is, and which values it holds one after another."""
    plan = made.plan
    working = {v: step for step, values in plan.workspaces.items() for v in values}
    held: dict[Value, list[str]] = {}
    for v, taken in plan.in_place.items():
        held.setdefault(_owner(taken, plan.in_place), []).append(v.name)
    buffers = [
        {
            "name": b.value.name,
            "type": type_text(b.value.type),
            "bytes": b.size * _factor(b.factor),
            "offset": _number(plan.locations[b.value].offset),
            "first": b.start,
            "last": b.end,
            "workspace": b.value in working,
            "later": held.get(b.value, []),
        }
        for b in plan.buffers
        if plan.locations[b.value].place is Place.ARENA
    ]
    return {"size": _number(plan.size), "bound": _number(plan.bound), "buffers": buffers}


def _owner(v: Value, in_place: Mapping[Value, Value]) -> Value:
    while v in in_place:
        v = in_place[v]
    return v


def _factor(e: Expr) -> int:
    return int(e.value) if isinstance(e, Const) else 1
