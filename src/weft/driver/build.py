"""The whole way from a model to a package, one layer after another: the pipeline on one screen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from weft.codegen.llvm.compile import compile_function_module
from weft.codegen.llvm.link import Image, link
from weft.driver.cache import Cache
from weft.driver.entry import Constants, entry_program, place_constants, write_constants
from weft.driver.evaluate import NativeEvaluator
from weft.driver.export_notes import arena_bytes, hash_files, notes_of
from weft.driver.interpreter import tuned_for_compiling
from weft.driver.kernel import Kernel, Request, make_kernel
from weft.driver.key import Shapes
from weft.driver.options import Options
from weft.driver.progress import Clock, Progress, Span
from weft.frontends import files_of, to_graph
from weft.graph.fuse import fuse
from weft.graph.graph import Graph, Value
from weft.graph.groups import FusedGraph
from weft.graph.in_place import find_in_place
from weft.graph.memory import MemoryPlan, plan_memory
from weft.graph.order_groups import order_groups
from weft.graph.passes.eliminate_dead_code import eliminate_dead_code
from weft.graph.passes.guard_indices import guard_indices
from weft.graph.passes.replace_empty_tensors import replace_empty_tensors
from weft.graph.pipeline import Options as GraphOptions
from weft.graph.pipeline import optimize
from weft.graph.place_concats import place_concats
from weft.graph.put_checks_last import put_checks_last
from weft.graph.text import dim_text
from weft.graph.verify import verify_graph
from weft.native import _rt
from weft.runtime.artifact import is_artifact
from weft.runtime.package import Package, TensorSpec
from weft.support.errors import ModelError
from weft.targets.cpu import can_run, host, needed_flags, parse_target
from weft.targets.target import Target


@dataclass(frozen=True, eq=False)
class Compilation:
    """Everything that compiling a model makes, for those who want to look; `package` is what runs.

    `kernels` are those of the groups of `fused`, by the groups' keys; `seconds` is what each stage took; `files` are those that
    the model was read from; `spans` tell when each stage, and each step of each kernel that was not in the cache, was done.
    """

    source: Graph
    fused: FusedGraph
    plan: MemoryPlan
    kernels: Mapping[str, Kernel]
    package: Package
    target: Target
    seconds: Mapping[str, float] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def cached(self) -> int:
        """How many of the kernels were taken from the cache."""
        return sum(not k.spans for k in self.kernels.values())


def build(
    model: object,
    target: str | Target = "cpu",
    options: Options | None = None,
    shapes: Shapes | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Compilation:
    """Compiles *model* and returns all that is made on the way; only its kernels are taken from *cache*, where it has them.

    The arguments are as in `weft.compile`; a model may also be a `Graph`.
    """
    machine = parse_target(target) if isinstance(target, str) else target
    chosen = options if options is not None else Options()
    clock = Clock(progress)
    with tuned_for_compiling(), ThreadPoolExecutor(max_workers=max(1, machine.cores)) as pool:
        clock.begin("read")
        source, files = read_model(model, shapes)
        hashes = pool.submit(hash_files, files)
        clock.begin("optimize")
        optimized = optimize_graph(source, machine, chosen, cache, pool)
        clock.begin("plan")
        fused = fuse_graph(optimized, chosen)
        constants = place_constants(fused)
        weights = start_packing(fused, constants, pool)
        kernels = build_kernels(kernel_requests(fused, chosen), machine, chosen, cache, pool, clock)
        clock.begin("link")
        plan = plan_calls(fused, {key: k.workspaces for key, k in kernels.items()}, chosen)
        image = link_image(fused, plan, constants, kernels, machine)
        package = make_package(fused, weights.result(), image, machine)
        notes = notes_of(hashes.result(), source.metadata, chosen, plan)
        package = replace(package, arena=arena_bytes(plan), denormals=chosen.denormals, notes=notes)
        clock.end()
    spans = (*clock.spans, *[s for k in kernels.values() for s in k.spans])
    return Compilation(source, fused, plan, kernels, package, machine, clock.seconds, files, spans)


def read_model(model: object, shapes: Shapes | None) -> tuple[Graph, tuple[Path, ...]]:
    """Returns a model as a graph, and the files that it consists of."""
    if isinstance(model, Graph):
        return model, ()
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if is_artifact(path):
            raise ModelError(f"{path} is a compiled model already", hint=f"load it with weft.load({str(path)!r})")
        return to_graph(path, shapes), tuple(files_of(path))
    return to_graph(model, shapes), ()


def optimize_graph(
    graph: Graph, target: Target, options: Options, cache: Cache | None, pool: Executor | None = None
) -> Graph:
    """Returns *graph* after the passes that the options ask for; code that computes constants is compiled in *pool*."""
    if options.verify:
        verify_graph(graph)
    graph = replace_empty_tensors(graph)
    if options.opt_level == 0:
        return guard_indices(eliminate_dead_code(graph))
    wanted = GraphOptions(
        layouts=options.uses("layout", 3), pack=options.opt_level >= 2, winograd=options.uses("winograd", 3),
        prepack=options.uses("prepacking", 1), exact=options.precision == "strict",
    )  # fmt: skip
    evaluator = NativeEvaluator(target if can_run(target) else host(), cache, verify=options.verify, pool=pool)
    made = optimize(graph, target, evaluator, wanted)
    if options.verify:
        verify_graph(made)
    return made


def start_packing(fused: FusedGraph, constants: Constants, pool: Executor) -> Future[_rt.Block]:
    """Returns the block of constants to come: *pool* computes each constant straight to its place, while Python goes on."""

    def packed() -> _rt.Block:
        block = _rt.Block(constants.size)
        write_constants(fused, constants, np.frombuffer(memoryview(block), np.uint8))
        return block

    return pool.submit(packed)


def fuse_graph(graph: Graph, options: Options) -> FusedGraph:
    """Returns an optimized graph cut into kernels, in the order in which they run."""
    fused = fuse(graph, merge=options.uses("fusion", 1))
    return put_checks_last(order_groups(place_concats(fused)) if options.uses("memory", 1) else fused)


def plan_calls(fused: FusedGraph, workspaces: Mapping[str, tuple[int, ...]], options: Options) -> MemoryPlan:
    """Returns the places of all values and *workspaces* (bytes, by the key of a kernel's group) in one arena."""
    return plan_memory(
        fused, in_place=options.uses("memory", 1), reuse=options.uses("memory", 0), workspaces=workspaces
    )


def kernel_requests(fused: FusedGraph, options: Options) -> dict[str, Request]:
    """Returns what is asked of each distinct kernel, by its group's key."""
    taken = find_in_place(fused) if options.uses("memory", 1) else {}
    shared = {g.key for g in fused.groups if any(v in taken for v in g.outputs)}
    parallel = options.uses("parallel", 0)
    return {
        g.key: Request(g.name, g.tensors, g.sizes, g.source, may_alias=g.key in shared, parallel=parallel, lift=True)
        for g in fused.groups
    }


def build_kernels(
    requests: Mapping[str, Request],
    target: Target,
    options: Options,
    cache: Cache | None,
    pool: Executor,
    clock: Clock,
) -> dict[str, Kernel]:
    """Returns the kernels by the keys of their groups; LLVM works in *pool* while Python goes on."""
    pending: dict[str, Future[Kernel]] = {}
    finished: list[Future[Kernel]] = []
    clock.begin("kernels", len(requests))
    for key, request in requests.items():
        clock.step(len(finished))
        pending[key] = make_kernel(request, target, cache, pool, verify=options.verify)
        pending[key].add_done_callback(finished.append)
    for f in pending.values():
        f.result()
        clock.step(len(finished))
    names: set[str] = set()
    return {key: f.result().named(_unique(requests[key].name, names)) for key, f in pending.items()}


def _unique(name: str, taken: set[str]) -> str:
    """Returns *name*, with a number if it is taken, and takes it."""
    made, n = name, 1
    while made in taken:
        n += 1
        made = f"{name}_{n}"
    taken.add(made)
    return made


def link_image(
    fused: FusedGraph, plan: MemoryPlan, constants: Constants, kernels: Mapping[str, Kernel], target: Target
) -> Image:
    """Returns the code of a whole model: its entry function and the kernels that it calls."""
    names = {key: k.name for key, k in kernels.items()}
    entry = compile_function_module(entry_program(fused, plan, constants, names), target)
    return link([entry, *[k.object for k in kernels.values()]])


def make_package(fused: FusedGraph, weights: _rt.Block, image: Image, target: Target) -> Package:
    """Returns what the runtime needs of a compiled model."""
    graph = fused.graph
    return Package(
        image=image.code,
        plan=image.symbols["weft_plan"],
        main=image.symbols["weft_main"],
        constants=weights,
        inputs=_specs(zip([v.name for v in graph.inputs], graph.inputs, strict=True)),
        outputs=_specs(zip(graph.output_names, graph.outputs, strict=True)),
        asserts=image.messages,
        readonly=image.readonly,
        target=target.name,
        machine=target.triple.partition("-")[0],
        features=needed_flags(target),
    )


def _specs(values: Iterable[tuple[str, Value]]) -> tuple[TensorSpec, ...]:
    return tuple(
        [
            TensorSpec(name, v.dtype, tuple([int(t) if (t := dim_text(s)).isdigit() else t for s in v.shape]))
            for name, v in values
        ]
    )
