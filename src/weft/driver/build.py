"""The whole way from a model to a package, one layer after another: the pipeline on one screen."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from weft.codegen.llvm.compile import compile_function_module
from weft.codegen.llvm.link import Image, link
from weft.driver.cache import Cache
from weft.driver.entry import Constants, entry_program, place_constants
from weft.driver.evaluate import NativeEvaluator
from weft.driver.kernel import Kernel, Request, make_kernel
from weft.driver.options import Options
from weft.graph.fuse import fuse
from weft.graph.graph import Graph, Value
from weft.graph.groups import FusedGraph, Group
from weft.graph.memory import MemoryPlan, plan_memory
from weft.graph.pipeline import optimize
from weft.graph.text import dim_text
from weft.runtime.package import Package, TensorSpec
from weft.targets.target import Target


class Progress(Protocol):
    """Hears how far a compilation is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tells that *done* of *total* steps of *stage* are finished."""


@dataclass(frozen=True, eq=False)
class Compilation:
    """Everything that compiling a model makes, for those who want to look: `package` is what runs."""

    source: Graph
    fused: FusedGraph
    plan: MemoryPlan
    kernels: Mapping[str, Kernel]
    package: Package
    seconds: Mapping[str, float] = field(default_factory=dict)


def build(
    graph: Graph, target: Target, options: Options, cache: Cache | None = None, progress: Progress | None = None
) -> Compilation:
    """Compiles *graph* for *target*; kernels are looked up in *cache* before they are scheduled."""
    clock = _Clock(progress)
    optimized = optimize(graph, target, NativeEvaluator(target, cache))
    clock.lap("graph")
    fused = fuse(optimized)
    plan = plan_memory(fused)
    clock.lap("plan")
    kernels = build_kernels(fused.groups, target, options, cache, clock)
    clock.lap("kernels")
    constants = place_constants(fused)
    names = {key: k.name for key, k in kernels.items()}
    entry = compile_function_module(entry_program(fused, plan, constants, names), target)
    image = link([entry, *[k.object for k in kernels.values()]])
    package = make_package(fused, constants, image, target)
    clock.lap("link")
    return Compilation(graph, fused, plan, kernels, package, clock.seconds)


def build_kernels(
    groups: Sequence[Group], target: Target, options: Options, cache: Cache | None, progress: Progress
) -> dict[str, Kernel]:
    """Returns the kernel of each distinct group by its key; LLVM works in other threads while Python goes on."""
    distinct = {g.key: g for g in groups}
    pending: dict[str, Future[Kernel]] = {}
    names: set[str] = set()
    with ThreadPoolExecutor(max_workers=max(1, target.cores)) as pool:
        for n, (key, group) in enumerate(distinct.items()):
            request = Request(_unique(group.name, names), key, group.tensors, group.sizes)
            pending[key] = make_kernel(request, target, cache, pool, verify=options.verify)
            progress("kernels", n + 1, len(distinct))
        return {key: f.result() for key, f in pending.items()}


def _unique(name: str, taken: set[str]) -> str:
    """Returns *name*, with a number if it is taken, and takes it."""
    made, n = name, 1
    while made in taken:
        n += 1
        made = f"{name}_{n}"
    taken.add(made)
    return made


def make_package(fused: FusedGraph, constants: Constants, image: Image, target: Target) -> Package:
    """Returns what the runtime needs of a compiled model."""
    graph = fused.graph
    parts = [(constants.offsets[c], c.array.reshape(-1).view("u1")) for c in fused.constants]
    return Package(
        image=image.code,
        plan=image.symbols["weft_plan"],
        main=image.symbols["weft_main"],
        constants=parts,
        inputs=input_specs(graph),
        outputs=_specs(zip(graph.output_names, graph.outputs, strict=True)),
        asserts=image.messages,
        target=target.name,
        machine=platform.machine(),
        features=target.features,
    )


def input_specs(graph: Graph) -> tuple[TensorSpec, ...]:
    """Returns the signature of the graph's inputs."""
    return _specs(zip([v.name for v in graph.inputs], graph.inputs, strict=True))


def _specs(values: Iterable[tuple[str, Value]]) -> tuple[TensorSpec, ...]:
    return tuple(
        [
            TensorSpec(name, v.dtype, tuple([int(t) if (t := dim_text(s)).isdigit() else t for s in v.shape]))
            for name, v in values
        ]
    )


class _Clock:
    """Times the stages and passes progress on."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}
        self.last = perf_counter()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)

    def lap(self, stage: str) -> None:
        """Ends *stage*."""
        now = perf_counter()
        self.seconds[stage] = now - self.last
        self.last = now
        self(stage, 1, 1)
