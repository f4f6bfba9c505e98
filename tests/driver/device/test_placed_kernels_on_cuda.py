"""Kernels of the processor between those of a device with CUDA, whose pretended driver does nothing before it is waited for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from tests.driver.device.test_placed_kernels import FLOAT, INT64, by_lot, check_same, devices_of, model_of, node
from tests.runtime.devices.fake_driver import FakeDriver

import weft
from weft.cost import Plan, RunOn
from weft.driver.build import Compilation, build
from weft.driver.options import CompileOptions

Array = np.ndarray[Any, Any]


def between() -> onnx.ModelProto:
    """Products, and between them what goes step by step; an index of the last is data."""
    rng = np.random.default_rng(0)
    nodes = [
        node("MatMul", "x w0", "a"),
        node("CumSum", "a axis", "b"),
        node("MatMul", "b w1", "c"),
        node("TopK", "c k", "best at", axis=0),
        node("MatMul", "best w0", "d"),
        node("Gather", "table at", "e"),
        node("Tanh", "d", "y"),
    ]
    weights = {f"w{k}": (rng.standard_normal((8, 8)) / 3).astype(np.float32) for k in range(2)}
    return model_of(
        nodes,
        {"x": (FLOAT, [6, 8]), "table": (FLOAT, [6])},
        {"y": FLOAT, "e": FLOAT, "at": INT64},
        axis=np.array(0),
        k=np.array([4]),
        **weights,
    )


def feeds(count: int) -> list[list[Array]]:
    rng = np.random.default_rng(1)
    return [[rng.standard_normal(s).astype(np.float32) for s in ((6, 8), (6,))] for _ in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_calls_of_the_processor_see_what_the_device_has_made(seed: int, driver: FakeDriver) -> None:
    """Call after call: launches that are skipped later are those between two calls of the processor."""
    made = build(between(), "cuda+cpu", CompileOptions(verify=True), choose=by_lot(seed))
    here, there = weft.compile(between()), weft.Model(made.package)
    for given in feeds(6):
        check_same(there.run(given), here.run(given))


def placed_by_hand(*there: str) -> Compilation:
    """Returns the model by a plan that has only the nodes of these results on the processor."""
    plan = build(between(), "cuda+cpu").graph_plan
    steps = [
        replace(s, decision=RunOn(processor=s.subject in there)) if isinstance(s.decision, RunOn) else s
        for s in plan.steps
    ]
    return build(between(), "cuda+cpu", graph_plan=Plan(tuple(steps)))


def test_the_processor_waits_for_what_it_reads_alone(driver: FakeDriver) -> None:
    made = placed_by_hand("b")
    assert [name for name, device in devices_of(made).items() if device == "cpu"] == ["cumsum"]
    here, there = weft.compile(between()), weft.Model(made.package)
    for given in feeds(3):
        driver.calls()
        check_same(there.run(given), here.run(given))
    called = Counter([line.split()[0] for line in driver.calls()])
    assert called["cuStreamSynchronize"] == 2  # for the sums, and for all results at the end


def test_launches_behind_a_call_of_the_processor_are_a_graph(driver: FakeDriver) -> None:
    """Those before it are too few for one."""
    there = weft.Model(placed_by_hand("b", "best").package)
    here = weft.compile(between())
    for given in feeds(6):
        check_same(there.run(given), here.run(given))
    assert there.device is not None
    counts = there.device.calls.counts()
    assert (counts["captured"], counts["replayed"]) == (1, 5)
