"""How long each pass of the compiler takes: a benchmark a pass, for pytest-benchmark to keep and compare.

    ../.venv/bin/python -m pytest benchmark_passes.py --benchmark-autosave
    ../.venv/bin/python -m pytest benchmark_passes.py --benchmark-compare --benchmark-compare-fail=median:20%

Each graph pass runs on a model as the passes before it left it, each lowering pass on a handful of kernels likewise: those of
the model that are different in kind. What it takes to schedule, to write LLVM's text, and LLVM itself is measured on the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.models import tiny_bert_layer

from weft.cli.demo_models import resnet18
from weft.codegen.llvm.ir_module import write_module
from weft.codegen.llvm.object_code import compile_function_module
from weft.cost import Choosing
from weft.driver.evaluate import NativeEvaluator
from weft.driver.host.entry import place_constants
from weft.frontends import to_graph
from weft.graph import GRAPH_PASSES, FusedGraph, Graph, Group, find_in_place, fuse, plan_memory
from weft.graph.passes.manager import GraphContext, GraphPass
from weft.loop import Program
from weft.lower import PASSES, lower
from weft.schedule import schedule_program
from weft.support.passes import EVERYTHING
from weft.targets import host
from weft.te import to_program

MODELS: dict[str, Callable[[], Any]] = {
    "resnet18": resnet18,
    "transformer_layer": lambda: tiny_bert_layer(tokens=128, heads=12, width=768),
}
ROUNDS = 5
CONTEXT = GraphContext(host(), NativeEvaluator(host()), EVERYTHING, Choosing(host()))


@cache
def source(model: str) -> bytes:
    return bytes(MODELS[model]().SerializeToString())


def run_pass(p: GraphPass, graph: Graph) -> Graph:
    with graph.fold_budget.lent():
        return p.call(graph, CONTEXT, EVERYTHING)


@cache
def graphs(model: str) -> list[Graph]:
    """Return the graph that each pass gets, and the one that the last of them makes."""
    found = [to_graph(source(model))]
    for p in GRAPH_PASSES:
        found.append(run_pass(p, found[-1]))
    return found


@cache
def fused(model: str) -> FusedGraph:
    return fuse(graphs(model)[-1])


@cache
def groups(model: str) -> list[Group]:
    """Return the groups that differ in kind, the first of each."""
    return list({g.name: g for g in reversed(fused(model).groups)}.values())


@cache
def programs(model: str) -> list[Program]:
    return [to_program(*g.tensors(), g.name, g.sizes) for g in groups(model)]


@cache
def scheduled(model: str) -> list[Program]:
    return [schedule_program(p, host()).program for p in programs(model)]


@cache
def lowered(model: str) -> list[list[Program]]:
    """Return, for each lowering pass and the end, the programs that it gets."""
    rows = [scheduled(model)]
    for p in PASSES:
        rows.append([p.call(program, host(), EVERYTHING) for program in rows[-1]])
    return rows


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def measure(benchmark: Any, model: str) -> Callable[..., None]:
    """Times a function in rounds, after one to warm up, in a group of benchmarks of the model's name."""
    benchmark.group = model

    def run(function: Callable[..., object], *arguments: object) -> None:
        benchmark.pedantic(function, arguments, rounds=ROUNDS, warmup_rounds=1)

    return run


def test_read(measure: Callable[..., None], model: str) -> None:
    measure(to_graph, source(model))


@pytest.mark.parametrize("n", range(len(GRAPH_PASSES)), ids=[p.name for p in GRAPH_PASSES])
def test_graph_pass(measure: Callable[..., None], model: str, n: int) -> None:
    measure(run_pass, GRAPH_PASSES[n], graphs(model)[n])


def test_fuse(measure: Callable[..., None], model: str) -> None:
    measure(fuse, graphs(model)[-1])


def test_plan_memory(measure: Callable[..., None], model: str) -> None:
    measure(lambda: plan_memory(fused(model), in_place=find_in_place(fused(model))))


def test_place_constants(measure: Callable[..., None], model: str) -> None:
    measure(place_constants, fused(model))


def test_formulas_to_loops(measure: Callable[..., None], model: str) -> None:
    measure(lambda: [to_program(*g.tensors(), g.name, g.sizes) for g in groups(model)])


def test_schedule(measure: Callable[..., None], model: str) -> None:
    measure(lambda: [schedule_program(p, host()) for p in programs(model)])


@pytest.mark.parametrize("n", range(len(PASSES)), ids=[p.name for p in PASSES])
def test_lowering_pass(measure: Callable[..., None], model: str, n: int) -> None:
    measure(lambda: [PASSES[n].call(p, host(), EVERYTHING) for p in lowered(model)[n]])


def test_lower(measure: Callable[..., None], model: str) -> None:
    measure(lambda: [lower(p, host()) for p in scheduled(model)])


def test_write_llvm(measure: Callable[..., None], model: str) -> None:
    measure(lambda: [write_module(p, host()) for p in lowered(model)[-1]])


def test_llvm(measure: Callable[..., None], model: str) -> None:
    measure(lambda: [compile_function_module(p, host()) for p in lowered(model)[-1]])
