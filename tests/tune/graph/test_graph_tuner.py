"""The plan of a graph is solved with what was measured, and what is measured is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.models import mlp, tiny_resnet
from tests.replay.machines import MACHINES
from tests.tune.graph.made_up_times import MadeUpMachine, by_operator

from weft.cost import Layout, Winograd
from weft.driver.build import Compilation, build
from weft.driver.cache.code_cache import default_cache
from weft.driver.hardware import hardware_of
from weft.driver.options import CompileOptions
from weft.graph import Group
from weft.records import Store
from weft.tune.graph import NEVER, Budget, GraphTuner, tune_graph
from weft.tune.measure import Interval

WINOGRAD_IS_FASTER = by_operator({"conv2d_winograd": 1e-4, "conv2d_blocked": 9e-4, "conv2d": 9e-4})
ROWS_ARE_FASTER = by_operator(
    {"conv2d_winograd": 9e-4, "conv2d_blocked": 9e-4, "conv2d": 1e-4, "matmul": 1e-4, "matmul_packed": 1e-4}
)
LONG = Budget(600.0, None, 0.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "tune.db")


@pytest.fixture(scope="module")
def resnet() -> Compilation:
    made = build(tiny_resnet(), MACHINES["avx2"], cache=default_cache())
    assert all(s.decision.is_direct for s in made.graph_plan.steps if isinstance(s.decision, Winograd))
    return made


def tuner_of(made: Compilation, store: Store) -> GraphTuner:
    options = CompileOptions(records=str(store.path))
    hardware = hardware_of(made.target)
    return GraphTuner(made, options, {}, store, hardware, cache=default_cache(), hope=0.9)


def searched(tuner: GraphTuner, most: int = 4) -> GraphTuner:
    """Lets a tuner try all that it wants to, within reason."""
    while len(tuner.trials) < most and tuner.expected_gain > 0:
        tuner.step()
    tuner.conclude()
    return tuner


def test_an_algorithm_that_was_measured_to_be_faster_is_chosen(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    MadeUpMachine(WINOGRAD_IS_FASTER).install(monkeypatch)
    tuner = searched(tuner_of(resnet, store))
    assert tuner.best is not None
    chosen = [s.decision for s in tuner.best.plan.steps if isinstance(s.decision, Winograd)]
    assert chosen
    assert not all(d.is_direct for d in chosen)
    assert tuner.best.ratio is not None
    assert tuner.best.ratio.middle < 0.75


def test_layouts_that_were_measured_to_be_faster_are_chosen(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    MadeUpMachine(ROWS_ARE_FASTER).install(monkeypatch)
    tuner = searched(tuner_of(resnet, store))
    before = sum(s.decision == Layout(blocks=False) for s in resnet.graph_plan.steps)
    assert tuner.best is not None
    assert sum(s.decision == Layout(blocks=False) for s in tuner.best.plan.steps) > before


def test_what_the_estimates_chose_stays_where_it_is_the_fastest(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = str(resnet.graph_plan)
    MadeUpMachine(by_operator({"conv2d_winograd": 9e-4, "conv2d_blocked": 1e-4, "conv2d": 9e-4})).install(monkeypatch)
    found = tune_graph(tuner_of(resnet, store), Budget(600.0, 6, 0.0), lambda *_: Interval(0.97, 1.0, 1.03))
    assert (found.kept, found.record, str(found.before)) == (None, None, plan)
    assert len(found.answers) > 3
    assert found.regret == 0


def test_each_kernel_is_measured_once_and_a_session_goes_on_where_it_stopped(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = MadeUpMachine(WINOGRAD_IS_FASTER), MadeUpMachine(WINOGRAD_IS_FASTER)
    first.install(monkeypatch)
    before = tuner_of(resnet, store)
    before.step()
    before.step()
    assert all(t.kernels for t in before.trials[:2])
    plans = {str(t.plan) for t in before.trials}
    second.install(monkeypatch)
    after = tuner_of(resnet, store)
    assert {str(t.plan) for t in after.trials} == plans
    assert after.costs.alternatives().keys() == before.costs.alternatives().keys()
    after.step()
    assert not {str(m.graph_plan) for m in second.runs} & plans


@pytest.mark.parametrize("stop", [1, 2])
def test_a_session_that_dies_loses_nothing(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    machine = MadeUpMachine(WINOGRAD_IS_FASTER)
    machine.install(monkeypatch)

    def die(tuner: GraphTuner) -> None:
        if len(tuner.trials) == stop:
            raise SystemExit

    with pytest.raises(SystemExit):
        tune_graph(tuner_of(resnet, store), LONG, lambda *_: Interval(0.5, 0.5, 0.5), die)
    again = tuner_of(resnet, Store(store.path))
    assert [str(t.plan) for t in again.trials] == [str(m.graph_plan) for m in machine.runs]
    assert len(again.trials) == stop


def test_an_interrupted_search_keeps_what_was_found(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    MadeUpMachine(WINOGRAD_IS_FASTER).install(monkeypatch)

    def interrupt(tuner: GraphTuner) -> None:
        if tuner.best is not None:
            raise KeyboardInterrupt

    found = tune_graph(tuner_of(resnet, store), LONG, lambda *_: Interval(0.7, 0.8, 0.9), interrupt)
    assert found.is_interrupted
    assert found.record is not None
    assert found.record.plan == str(found.kept)


def test_a_plan_that_computes_something_else_is_not_kept(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_other(made: Compilation) -> bool:
        return made is not resnet

    MadeUpMachine(WINOGRAD_IS_FASTER, is_wrong=is_other).install(monkeypatch)
    tuner = tuner_of(resnet, store)
    trial = tuner.step()
    assert trial is not None
    assert (trial.ratio, tuner.best) == (None, None)
    assert trial.failure == "output 0 differs by 1, where its largest number is 1"
    [kept] = store.measurements(tuner.workload.digest)
    assert (kept.seconds, kept.failure) == (None, "wrong")


def test_a_session_goes_on_after_plans_that_failed(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows which alternatives were given up, so that it comes to the plan that the session before would have tried next."""

    def has_winograd(made: Compilation) -> bool:
        return any(n.op == "conv2d_winograd" for n in made.fused.graph.nodes)

    MadeUpMachine(WINOGRAD_IS_FASTER, is_wrong=has_winograd).install(monkeypatch)
    before = tuner_of(resnet, store)
    trial = before.step()
    assert trial is not None
    assert trial.failure
    after = tuner_of(resnet, store)
    proposed = [t.step() for t in (before, after)]
    assert [t is not None and str(t.plan) for t in proposed] == [str(before.trials[1].plan)] * 2


def losing(*_: object) -> Interval:
    return Interval(0.97, 0.99, 1.01)


@pytest.mark.parametrize(
    ("compare", "is_kept"),
    [(losing, False), (lambda *_: Interval(1.1, 1.2, 1.3), False), (lambda *_: Interval(0.7, 0.8, 0.9), True)],
)
def test_the_whole_model_decides(
    resnet: Compilation,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    compare: Callable[..., Interval],
    is_kept: bool,
) -> None:
    MadeUpMachine(WINOGRAD_IS_FASTER).install(monkeypatch)
    found = tune_graph(tuner_of(resnet, store), Budget(600.0, 3, 0.0), compare)
    assert (found.record is not None) == (found.kept is not None) == is_kept
    assert len(found.trials) <= 3


def winograd_is_faster_on_images_of_4_x_4(group: Group) -> float:
    """Returns the seconds of a kernel; the other convolutions are faster directly."""
    if not any(n.op.startswith("conv2d") for n in group.nodes):
        return 1e-6
    is_small = (group.outputs[0].static_shape or ())[2:4] == (4, 4)
    return 1e-4 if is_small == any(n.op == "conv2d_winograd" for n in group.nodes) else 9e-4


def test_the_plan_that_is_best_by_what_is_known_is_measured_though_kernels_promise_more(
    resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It mixes what two plans measured; that it was proposed, and its gain asked for, does not make it a measured one."""
    MadeUpMachine(winograd_is_faster_on_images_of_4_x_4).install(monkeypatch)
    tuner = tuner_of(resnet, store)
    tuner.step()
    assert tuner.best is None
    tuner.hope = NEVER
    assert 0 < tuner.expected_gain < 1
    found = tune_graph(tuner, Budget(600.0, None, 1e6), losing)
    assert found.reason == "tuning kernels promises more"
    assert list(found.trials) == [tuner.best]


def test_kernels_may_promise_more(resnet: Compilation, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = MadeUpMachine(WINOGRAD_IS_FASTER)
    machine.install(monkeypatch)
    found = tune_graph(tuner_of(resnet, store), Budget(600.0, None, 1.0), losing)
    assert (found.reason, len(machine.runs)) == ("tuning kernels promises more", 0)
    none = tune_graph(tuner_of(resnet, store), Budget(0.0, None, 0.0), losing)
    assert none.reason == "its share of the session is used up"


def test_a_graph_without_choices_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made = build(mlp(batch=4, widths=(3, 2)), MACHINES["avx2"], cache=default_cache())
    MadeUpMachine(by_operator({})).install(monkeypatch)
    found = tune_graph(tuner_of(made, store), LONG, losing)
    assert (list(found.trials), list(found.answers)) == ([], [])
