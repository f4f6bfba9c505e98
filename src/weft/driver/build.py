"""The whole way from a model to a package, one layer after another: the pipeline on one screen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.codegen import backend_of
from weft.cost import Choose, Choosing, Following, Plan, Planner, Question, cheapest
from weft.driver.cache.cache_key import Shapes
from weft.driver.cache.code_cache import Cache
from weft.driver.calibrate import target_here
from weft.driver.device.check_values import check_values
from weft.driver.device.device_package import device_host
from weft.driver.evaluate import NativeEvaluator, evaluation_target
from weft.driver.export.artifact_notes import arena_bytes, hash_files, notes_of
from weft.driver.groups.build_kernels import build_kernels
from weft.driver.groups.device_refusals import DeviceRefusals
from weft.driver.groups.group_targets import TargetOf, module_names, with_features, with_own_targets
from weft.driver.groups.kernel_workers import kernel_workers, worker_count
from weft.driver.host.choose_versions import Schedules, choose_versions
from weft.driver.host.entry import place_constants
from weft.driver.host.entry_declarations import host_program
from weft.driver.host.host_operators import check_host_operators
from weft.driver.host.pack_constants import pack_constants
from weft.driver.kernel import Kernel
from weft.driver.kernel_request import KernelRequest
from weft.driver.make_package import make_package
from weft.driver.options import CompileOptions
from weft.driver.progress import Clock, Progress, Span
from weft.driver.python_settings import tuned_for_compiling
from weft.driver.recorded.best_records import BestRecords
from weft.driver.recorded.recorded_plans import (
    NO_LONGER_APPLIES,
    leave_out,
    recorded_graph_plan,
    used_records,
)
from weft.driver.states import state_tensors, with_states
from weft.frontends import files_of, to_graph
from weft.graph import (
    GRAPH_PASSES,
    FusedGraph,
    Graph,
    GraphReport,
    MemoryPlan,
    Node,
    Value,
    find_in_place,
    fuse,
    fuse_regions,
    optimize,
    order_groups,
    place_concats,
    place_nodes,
    plan_memory,
    put_checks_last,
    states_in_place,
    verify_graph,
    with_copied_outputs,
)
from weft.loop import Program, verify_host
from weft.lower import passes_for
from weft.records import Record
from weft.runtime.artifact import is_artifact
from weft.runtime.package import Package
from weft.schedule import Schedule
from weft.support.errors import ModelError
from weft.support.knobs import FUSION, MEMORY, PARALLEL, VERSIONS
from weft.support.pass_options import check_settings
from weft.support.passes import Pass
from weft.targets import Target


@dataclass(frozen=True, eq=False)
class Compilation:
    """All results of compiling a model, for inspection; the runtime loads `package`.

    `source` is the graph as imported, and `fused` the optimized graph as groups, each computed by one kernel. `kernels` maps
    the key of a group to its kernel, and `requests` to the `KernelRequest` from which it was built. `plan` is the memory plan,
    `host` the host program, which declares and calls the kernels. `graph_plan` holds the decisions about the graph, and
    `choices` the questions they answer (empty for a given plan). `graph_record` is the tuning record of that plan, if any;
    `records` holds the lookups of records. `seconds` maps each stage to its time, `spans` has the timeline of the stages, of
    the passes over the graph, and of each kernel that was not cached, and `files` lists the files of the model.
    """

    source: Graph
    fused: FusedGraph
    plan: MemoryPlan
    kernels: Mapping[str, Kernel]
    requests: Mapping[str, KernelRequest]
    host: Program
    package: Package
    target: Target
    graph_plan: Plan
    choices: tuple[Question, ...]
    graph_record: Record | None
    records: BestRecords
    seconds: Mapping[str, float] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def cached(self) -> int:
        """The number of kernels taken from the cache."""
        return sum(not k.spans for k in self.kernels.values())

    def target_of(self, key: str) -> Target:
        """Returns the machine that runs a kernel, by its key: the model's, or its own, as the processor beside a device."""
        own = self.requests[key].target
        return self.target.alone if own is None else own


def build(
    model: object,
    target: str | Target = "cpu",
    options: CompileOptions | None = None,
    shapes: Shapes | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    choose: Choose = cheapest,
    graph_plan: Plan | None = None,
    *,
    to_file: bool = False,
    target_of: TargetOf | None = None,
) -> Compilation:
    """Compiles *model* and returns every intermediate result; of *cache*, only kernels are used.

    The arguments are those of `weft.compile`; *model* may also be a `Graph`. *choose* picks one of the candidates of each
    decision, about the graph (layouts, algorithms, packing) and about kernels: by default the cheapest; a tuner passes its
    own. *graph_plan* fixes the decisions about the graph; without it, a plan from the tuning records is followed if there is
    one: those of `options.records`, and, with the default *choose*, those shipped with Weft. With *to_file*, the constants of
    a large model are lazy, computed when the file is written. *target_of* gives a group a target of its own, or None.

    Raises `ScheduleError` if *graph_plan* is the plan of another graph.
    """
    machine = target_here(target, progress, cache) if isinstance(target, str) else target
    chosen = options if options is not None else CompileOptions()
    check_passes(chosen, machine)
    clock = Clock(progress)
    with (
        BestRecords(chosen, machine, pretuned=choose is cheapest) as records,
        tuned_for_compiling(),
        ThreadPoolExecutor(max_workers=max(1, machine.cores)) as pool,
        ExitStack() as stack,
    ):
        clock.begin("read")
        source, files = read_model(model, shapes, chosen.states)
        source = check_host_operators(with_states(source, chosen), machine)
        hashes = pool.submit(hash_files, files)
        is_alone = chosen.verify or choose is not cheapest
        workers = stack.enter_context(kernel_workers(0 if is_alone else worker_count(source)))
        graphs = GraphStages(source, machine, chosen, cache, pool, clock)
        fused, planner, graph_record = graphs.decided(choose, graph_plan, records)
        if machine.kind == "grid":
            check_values(fused, machine)
        constants = place_constants(fused)
        weights = pack_constants(fused, constants, pool, to_file=to_file)
        in_place = values_in_place(fused, chosen, machine)
        requests = kernel_requests(fused, chosen, in_place, choose, graphs.schedules)
        requests = with_own_targets(requests, fused, target_of, machine)
        kernels = build_kernels(requests, machine.alone, chosen, cache, pool, clock, records, workers)
        clock.begin("link")
        plan = plan_calls(fused, {key: k.workspaces for key, k in kernels.items()}, chosen, in_place)
        host = host_program(
            fused,
            plan,
            constants,
            {key: k.name for key, k in kernels.items()},
            module_names(requests, machine),
        )
        if machine.kind == "grid":
            host = device_host(host, kernels, machine, state_tensors(fused.graph))
        if chosen.verify:
            verify_host(host)
        package = make_package(fused, weights.result(), constants, host, kernels, machine)
        package = with_features(package, requests)
        notes = notes_of(hashes.result(), source.metadata, chosen, plan, used_records(requests, graph_record, records))
        package = replace(package, arena=arena_bytes(plan), denormals=chosen.denormals, notes=notes)
        clock.end()
    return Compilation(
        source,
        fused,
        plan,
        kernels,
        requests,
        host,
        package,
        machine,
        planner.plan,
        tuple(planner.questions),
        graph_record,
        records,
        clock.seconds,
        files,
        (*clock.spans, *[s for k in kernels.values() for s in k.spans]),
    )


@dataclass(frozen=True, eq=False)
class GraphStages:
    """The stages from an imported graph to fused groups; `schedules` were made to weigh versions, and serve the kernels."""

    source: Graph
    target: Target
    options: CompileOptions
    cache: Cache | None
    pool: Executor
    clock: Clock
    schedules: Schedules = field(default_factory=dict)

    def decided(
        self, choose: Choose, plan: Plan | None, records: BestRecords
    ) -> tuple[FusedGraph, Planner, Record | None]:
        """Returns the kernels, the planner that decided, and the tuning record that it followed.

        The decisions are those of *plan*, else of the plan in *records*, else the candidates that *choose* takes.
        """
        if plan is not None:
            return *self.made_by(Following(plan)), None
        found, record = recorded_graph_plan(self.source, self.options, records)
        if found is not None:
            try:
                return *self.made_by(Following(found)), record
            except NO_LONGER_APPLIES as error:
                leave_out(f"graph {self.source.name}", error)
        return *self.made_by(Choosing(self.target, choose)), None

    def made_by(self, planner: Planner) -> tuple[FusedGraph, Planner]:
        """Returns the kernels that the decisions of *planner* give."""
        self.clock.begin("optimize")
        optimized = optimize_graph(self.source, self.target, self.options, self.cache, self.pool, planner, self._note)
        self.clock.begin("plan")
        fused = fuse_graph(optimized, self.target, self.options, planner, self.schedules)
        planner.finish()
        return fused, planner

    def _note(self, report: GraphReport) -> None:
        self.clock.passed(report.name, report.seconds, changed=report.changed)


def check_passes(options: CompileOptions, target: Target) -> None:
    """Raises `InputError` for settings of passes that a compilation for *target* has not, listing those that it has."""
    if options.passes:
        own = [Pass(*p) for p in backend_of(target).passes(target)]
        passes: list[Pass[Any, Any]] = [*GRAPH_PASSES, *passes_for(target), *own]
        optional = [p.name for p in passes if p.may_be_skipped]
        check_settings(options.passes, {p.name: p.options for p in passes}, optional)


def read_model(
    model: object, shapes: Shapes | None, states: Iterable[tuple[str, str]] = ()
) -> tuple[Graph, tuple[Path, ...]]:
    """Returns a model as a graph, and the files that it consists of; *states* are patterns of inputs, with those of outputs."""
    taken = [name for name, _ in states]
    if isinstance(model, Graph):
        return model, ()
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if is_artifact(path):
            raise ModelError(f"{path} is a compiled model already", hint=f"load it with weft.load({str(path)!r})")
        return to_graph(path, shapes, taken), tuple(files_of(path))
    return to_graph(model, shapes, taken), ()


def optimize_graph(
    graph: Graph,
    target: Target,
    options: CompileOptions,
    cache: Cache | None,
    pool: Executor | None = None,
    planner: Planner | None = None,
    trace: Callable[[GraphReport], None] | None = None,
) -> Graph:
    """Returns *graph* after the passes that the options ask for; code that computes constants is compiled in *pool*.

    Choices are put to *planner*, or the cheapest are taken; *trace* receives a report of each pass.
    """
    if options.verify:
        verify_graph(graph)
    evaluator = NativeEvaluator(evaluation_target(target), cache, verify=options.verify, pool=pool)
    return optimize(graph, target, evaluator, options, planner=planner, verify=options.verify, trace=trace)


def fuse_graph(
    graph: Graph,
    target: Target,
    options: CompileOptions,
    planner: Planner | None = None,
    schedules: Schedules | None = None,
    *,
    is_region: bool = False,
) -> FusedGraph:
    """Returns an optimized graph cut into kernels for *target*, in the order in which they run.

    Kernels that are scheduled to decide are put into *schedules*. With a processor beside a device, *planner* decides which runs
    each node of the graph, or of the region that it is.
    """
    on_processor: frozenset[Node] = frozenset()
    if target.processor is not None:
        graph = with_copied_outputs(graph)
        deciding = planner if planner is not None else Choosing(target)
        on_processor = place_nodes(graph, deciding, DeviceRefusals(target.alone, options), is_region=is_region)
    fused = fuse(
        graph,
        planner,
        merge=options.uses(FUSION),
        most_buffers=target.most_buffers,
        whole_attention=target.has_threads,
        read_once=not target.has_threads,
        on_processor=on_processor,
    )
    made = put_checks_last(order_groups(place_concats(fused)) if options.shares_memory else fused)
    whole = fuse_regions(made, lambda r: fuse_graph(r, target, options, planner, schedules, is_region=True))
    if planner is None or target.kind != "cpu" or not options.uses(VERSIONS):
        return whole
    return choose_versions(whole, planner, schedules)


def values_in_place(fused: FusedGraph, options: CompileOptions, target: Target) -> dict[Value, Value]:
    """Returns outputs of kernels that take over an input's memory, with it; none where threads' loads are to pass stores."""
    if target.has_threads or not options.shares_memory:
        return {}
    return {v: taken for f in fused.all_graphs for v, taken in find_in_place(f).items()}


def plan_calls(
    fused: FusedGraph,
    workspaces: Mapping[str, tuple[int, ...]],
    options: CompileOptions,
    in_place: Mapping[Value, Value],
) -> MemoryPlan:
    """Returns the places of all values and *workspaces* (bytes, by the key of a kernel's group) in one arena."""
    return plan_memory(fused, in_place=in_place, reuse=options.uses(MEMORY), workspaces=workspaces)


def kernel_requests(
    fused: FusedGraph,
    options: CompileOptions,
    in_place: Mapping[Value, Value],
    choose: Choose = cheapest,
    schedules: Schedules | None = None,
) -> dict[str, KernelRequest]:
    """Returns the request of each kernel, by its group's key; outputs *in_place*, and states that are, may alias inputs.

    Of *schedules*, made before, kernels have those of loops of their name.
    """
    aliased = {*in_place, *_states_in_one_memory(fused)}
    versions = {g: tuple([v.group for v in of_one]) for f in fused.all_graphs for g, of_one in f.versions.items()}
    sharing = [g for g in fused.kernel_groups if not aliased.isdisjoint(g.outputs)]
    shared = {of_one.key for g in sharing for of_one in (g, *versions.get(g, ()))}
    made: Schedules = {} if schedules is None else schedules
    own = {g.key for of_one in versions.values() for g in of_one}
    planned = {g.key for g in fused.groups} - own  # these have workspaces
    return {
        g.key: KernelRequest(
            g.name,
            g.tensors,
            g.sizes,
            g.source,
            may_alias=g.key in shared,
            parallel=options.uses(PARALLEL),
            lift=g.key in planned,
            choose=choose,
            passes=options.passes,
            cheapest_schedule=_named(g.name, made.get(g.key)),
        )
        for g in fused.kernel_groups
    }


def _states_in_one_memory(fused: FusedGraph) -> set[Value]:
    """Returns the values written in place, in the memory of the state that they are computed from, of a model or of a loop."""
    of_loops = {v for f in fused.all_graphs for updates in f.updates.values() for v in updates}
    return of_loops | {fused.root(p.left) for p in states_in_place(fused)}


def _named(name: str, schedule: Schedule | None) -> Schedule | None:
    """Returns *schedule* if it is of a function of that name."""
    return schedule if schedule is not None and schedule.program.functions[0].name == name else None
