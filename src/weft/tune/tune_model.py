"""`weft.tune`: tunes a model, and stores the records of faster plans, of kernels and of the whole graph, in a database."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

import numpy as np

from weft.driver.build import Compilation, build
from weft.driver.cache.cache_key import Shapes
from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.driver.check_target import check_runs_here
from weft.driver.hardware import hardware_of
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.measure.roofline import measure_roofs, place_kernels
from weft.driver.options import CompileOptions
from weft.records import Store
from weft.runtime.model import Model
from weft.support.arguments import check_threads
from weft.support.errors import InputError
from weft.support.knobs import PRETUNED
from weft.tune.graph import SHARE, Budget, GraphReport, GraphTuner, tune_graph
from weft.tune.measure import PLACES, Interval, check_cluster, enclosing, median_interval
from weft.tune.strategies import check_tuner
from weft.tune.tasks import tasks_of
from weft.tune.tuning_session import HOPE, GraphTask, Session, Status, TuneOptions, TuneReport, Watch, Winner

COMPARED: Final = 3.0
"""Seconds for which the tuned model and the one before are called in turns, in all places of memory together."""

CONFIDENCE: Final = 0.95

RULES: Final = CompileOptions(without=(PRETUNED.name,))
"""The model that winners are compared with is the rules' alone, so that all records have the same incumbent."""


def tune(
    model: object,
    minutes: float = 5.0,
    records: str | os.PathLike[str] = "tune.db",
    trials: int | None = None,
    tuner: str = "sa-xgb",
    target: str = "cpu",
    threads: int = 1,
    seed: int = 0,
    shapes: Shapes | None = None,
    watch: Watch | None = None,
    cluster: str | None = None,
    graph: bool = True,
    roofline: bool = True,
) -> TuneReport:
    """Searches for faster layouts, algorithms and schedules for *model*, within *minutes* and, if given, *trials* candidates.

    With *graph*, the decisions about the graph are tuned first: layouts, convolution algorithms, matrix packing, fusion. Then
    the kernels of the fastest graph are tuned. With *roofline*, and one thread, the peak rates of the machine are measured
    first, which takes some seconds: less time is spent on kernels that are near their bound, which is reported as
    `Task.standing`. Of models with control flow only kernels are tuned; on a device too, timed by its clock if it has one.

    *model*, *target* and *shapes* are as for `weft.compile`; symbolic dimensions need a size. Results are stored in the
    database *records*, which `weft.compile(model, records=...)` follows. A candidate replaces the default only if it is faster
    beyond noise when measured again, in the kernel and in the whole model. Measurements are stored as well, so that a session
    that was stopped can be resumed. *tuner* is one of `weft.tune.strategies.TUNERS`. *watch* is called with a `Status` after
    each candidate; `KeyboardInterrupt` ends the session and keeps its results. *cluster* is the address of a Dask scheduler,
    `tcp://host:8786`, whose machines build and run the candidates.

    Raises `InputError` for invalid arguments, `ModelError` for a model that can't be compiled, `RecordsError` if the database
    can't be written, `ToolchainError` if a package that *tuner* needs is not installed, and `DeviceError` for a cluster that does
    not answer, or whose machines are not like this one.
    """
    options = TuneOptions(_positive(minutes), trials, tuner, check_threads(threads) or 1, seed, cluster)
    check_tuner(tuner)
    begin, cache = perf_counter(), default_cache()
    machine = target_here(target, None, cache)
    check_runs_here(machine, target, "tune where the model is to run")
    if cluster is not None:
        check_cluster(cluster, machine)
    on_device = machine.kind == "grid"
    with Store(records) as store:
        followed = CompileOptions(records=os.fspath(records))
        before = build(model, machine, followed, shapes, cache)
        inputs = random_inputs(before.package.inputs)
        searched = graph and not on_device and not before.fused.has_control_flow
        found = _tuned_graph(before, inputs, followed, options, store, watch) if searched else None
        kept = None if found is None else found.kept
        plan = before.graph_plan if kept is None else kept
        made = build(model, machine, RULES, shapes, cache, graph_plan=plan)
        measures_roofs = roofline and options.threads == 1 and not on_device
        report = _tuned_kernels(made, inputs, options, store, watch, begin, found, measures_roofs=measures_roofs)
        report.ratio = _keep_together(model, made, report.winners, store, shapes, options.threads)
        if found is not None and kept is not None:
            report.ratio = found.ratio
            if report.winners:
                tuned = build(model, machine, followed, shapes, cache)
                report.ratio = compare_models(tuned, before, options.threads)
    return report


def _tuned_kernels(
    made: Compilation,
    inputs: Mapping[str, np.ndarray[Any, Any]],
    options: TuneOptions,
    store: Store,
    watch: Watch | None,
    begin: float,
    graph: GraphReport | None,
    *,
    measures_roofs: bool,
) -> TuneReport:
    """Searches the plans of the kernels of *made*, in the time that is left since *begin*; *graph* tells of the search before."""
    is_stopped = graph is not None and graph.is_interrupted
    roofs = measure_roofs(made.target) if measures_roofs and not is_stopped else None
    standings = () if roofs is None else place_kernels(made, inputs, roofs)
    tasks, spent = tasks_of(made, inputs, options.threads, standings), perf_counter() - begin
    session = Session(tasks, options, store, watch, spent=spent, tried=0 if graph is None else len(graph.trials))
    report = session.nothing("it was interrupted") if is_stopped else session.run()
    report.graph = graph
    return report


def _tuned_graph(
    before: Compilation,
    inputs: Mapping[str, np.ndarray[Any, Any]],
    followed: CompileOptions,
    options: TuneOptions,
    store: Store,
    watch: Watch | None,
) -> GraphReport:
    """Searches the plans of a model's graph, and stores the one to keep."""
    begin, budget = perf_counter(), 60 * options.minutes
    hardware = hardware_of(before.target)
    tuner = GraphTuner(before, followed, inputs, store, hardware, threads=options.threads, cache=default_cache())

    def tell(at_work: GraphTuner) -> None:
        if watch is not None:
            best, tried = at_work.best, sum(t.second > 0 for t in at_work.trials)
            speedup = 1.0 if best is None or best.ratio is None else 1 / best.ratio.middle
            watch(Status(GraphTask(), 1.0, speedup, tried, perf_counter() - begin, budget))

    trials = None if options.trials is None else int(SHARE * options.trials)
    found = tune_graph(
        tuner,
        Budget(SHARE * budget, trials, HOPE / budget),
        lambda new, old: compare_models(new, old, options.threads),
        tell,
    )
    if found.record is not None:
        store.add(hardware, tuner.workload, found.record)
    return found


def _positive(minutes: object) -> float:
    if not isinstance(minutes, int | float) or isinstance(minutes, bool) or not minutes > 0:
        raise InputError(f"minutes is {minutes!r}", hint="give a number above 0, such as minutes=5")
    return float(minutes)


def _keep_together(
    model: object, made: Compilation, winners: list[Winner], store: Store, shapes: Shapes | None, threads: int
) -> Interval | None:
    """Stores those of *winners* with which the model is faster beyond noise; returns by how much, None if it never is.

    A kernel that is faster by itself may slow its neighbours down, by the data it leaves in the caches. So where the model is not
    faster with all of them, the half that saves the most time is tried, and half of that. The others are taken from *winners*.
    """
    winners.sort(key=lambda w: w.task.seconds * (w.ratio.middle - 1))
    while winners:
        ratio = _compare_with(winners, model, made, store, shapes, threads)
        if ratio is not None:
            return ratio
        del winners[len(winners) // 2 :]
    return None


def _compare_with(
    winners: Sequence[Winner], model: object, made: Compilation, store: Store, shapes: Shapes | None, threads: int
) -> Interval | None:
    """Returns the time of the model with *winners* relative to that without, and stores them, if it is below 1 beyond noise."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "winners.db")
        with Store(path) as found:
            found.add(*[e for w in winners for e in (w.task.workload, w.record)])
            followed = replace(RULES, records=path)
            tuned = build(model, made.target, followed, shapes, default_cache(), graph_plan=made.graph_plan)
            ratio = compare_models(tuned, made, threads)
            if ratio.high >= 1:
                return None
            store.merge(found)
    return ratio


def compare_models(a: Compilation, b: Compilation, threads: int) -> Interval:
    """Returns the time of a run of *a* relative to that of *b*: the interval that encloses those in several places of memory.

    A model's time depends on where its buffers lie, by up to a hundredth, which the calls of one pair of models do not show.
    """
    found: list[Interval] = []
    for n in range(PLACES):
        made = {id(x): Model(x.package, threads=threads) for x in ((a, b) if n % 2 else (b, a))}
        found.append(_ratio_of_calls(made[id(a)], made[id(b)], threads))
    return enclosing(found)


def _ratio_of_calls(a: Model, b: Model, threads: int) -> Interval:
    """Returns the interval of the median of the time of *a*, relative to that of *b*, called in turns."""
    inputs = random_inputs(a.inputs)
    clock = process_time if threads == 1 and a.device is None else perf_counter
    found: list[float] = []
    end = perf_counter() + COMPARED / PLACES
    while len(found) < MOST_TURNS and (perf_counter() < end or len(found) < FEWEST_TURNS):
        seconds = []
        for m in (a, b) if len(found) % 2 else (b, a):
            start = clock()
            m(**inputs)
            seconds.append(clock() - start)
        first, second = seconds if len(found) % 2 else seconds[::-1]
        found.append(first / second)
    return median_interval(found[1:], CONFIDENCE)


FEWEST_TURNS: Final = 8
MOST_TURNS: Final = 2000
