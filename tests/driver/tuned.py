"""Databases of tuning records for the tests of compilations: other plans than the rules take, as if they had been measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

import weft
from weft.cost import Candidate, Choose, Choosing
from weft.driver.build import Compilation
from weft.driver.cache.code_cache import default_cache
from weft.driver.hardware import hardware_of
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.driver.recorded.workloads import graph_workload, kernel_workload
from weft.records import Record, Store, Workload
from weft.schedule import carry_out
from weft.targets import Target


def dearest(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
    """The most expensive candidate, which the rules do not take where there is a choice."""
    return max(candidates, key=lambda c: c.cycles)


def plan_of(request: KernelRequest, target: Target, choose: Choose = dearest) -> str:
    """The text of the plan that *choose* gives a kernel."""
    planner = Choosing(target, choose)
    carry_out(request.program, planner)
    return str(planner.plan)


def record_of(workload: Workload, target: Target, plan: str, **facts: Any) -> Record:
    """A record that a compilation for *target* follows."""
    seconds, here = facts.pop("seconds", 1e-5), hardware_of(target).digest
    made = Record(workload.digest, here, weft.__version__, plan, seconds, seconds, seconds, 2e-5, 20, True, time=1.8e9)
    return replace(made, **facts)


def tune(
    db: Path, model: onnx.ModelProto, plan: Callable[[KernelRequest, Target], str] = plan_of, **facts: Any
) -> Compilation:
    """Records a plan for each kernel of *model*, and returns the model as the rules compile it."""
    made = weft.build(model, "cpu", cache=default_cache())
    with Store(db) as store:
        for request in made.requests.values():
            workload = kernel_workload(request)
            record = record_of(workload, made.target, plan(request, made.target), **facts)
            store.add(hardware_of(made.target), workload, record)
    return made


def tune_graph(db: Path, model: onnx.ModelProto, plan: str, **facts: Any) -> Compilation:
    """Records a plan for the graph of *model*, and returns the model as the rules compile it."""
    made = weft.build(model, "cpu", cache=default_cache())
    workload = graph_workload(made.source, CompileOptions())
    with Store(db) as store:
        store.add(hardware_of(made.target), workload, record_of(workload, made.target, plan, **facts))
    return made
