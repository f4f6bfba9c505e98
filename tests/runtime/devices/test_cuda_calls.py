"""Calls of models on a device with CUDA, in C: graphs of launches, copies, memory, threads and failures, on the pretended driver.

The driver is late: it does nothing before it is waited for, so that what is read, changed or freed too early is seen.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.runtime.devices.fake_driver import FakeDriver

import weft
from weft.support.errors import DeviceError, RuntimeFailure

Array = np.ndarray[Any, Any]
LAYERS = 6
"""Each is a launch: the product of the rows by a matrix, whose sum with the next one's input can't be fused."""


def chain(rows: int | str = 3, width: int = 8) -> onnx.ModelProto:
    """Returns a model of products one after another: `x` [rows, width] -> `y`."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((LAYERS, width * width)) / width**0.5
    weights = [helper.make_tensor(f"w{k}", TensorProto.FLOAT, (width, width), v) for k, v in enumerate(values)]
    names = ["x", *[f"t{k}" for k in range(1, LAYERS)], "y"]
    nodes = [helper.make_node("MatMul", [names[k], f"w{k}"], [names[k + 1]]) for k in range(LAYERS)]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (rows, width)) for n in "xy")
    graph = helper.make_graph(nodes, "chain", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def rows_of(seed: int, rows: int = 3, width: int = 8) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


class Pair:
    """A model on the device, and on the processor, whose results it is to have."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.here = weft.compile(model)
        self.there = weft.compile(model, target="cuda", cache=False)

    def check(self, *inputs: Array) -> None:
        """Calls both."""
        for expected, made in zip(self.here.run(inputs), self.there.run(inputs), strict=True):
            np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-5)

    def counts(self) -> dict[str, int]:
        """Returns how launches were made since the model was loaded."""
        assert self.there.device is not None
        return self.there.device.calls.counts()


@pytest.fixture
def pair(driver: FakeDriver) -> Pair:
    return Pair(chain())


def called(driver: FakeDriver) -> Counter[str]:
    """Returns how often each function was called since the last time."""
    return Counter([line.split()[0] for line in driver.calls()])


def test_the_second_call_is_captured_and_the_third_replayed(driver: FakeDriver, pair: Pair) -> None:
    made = []
    driver.calls()
    for seed in range(4):  # a graph has the arguments of its capture: the inputs are others, in the same memory
        pair.check(rows_of(seed))
        made.append(called(driver))
    first, second, third, fourth = made
    launches = first["cuLaunchKernelEx"]
    assert launches >= LAYERS
    assert second["cuLaunchKernelEx"] == launches
    assert [second[n] for n in ("cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch")] == [1, 1, 1]
    names = ("cuMemcpyHtoDAsync_v2", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize")
    for later in (third, fourth):
        assert later == dict.fromkeys(names, 1)
    assert pair.counts() == {"plain": 1, "replayed": 3, "captured": 1}


def test_a_call_waits_once(driver: FakeDriver, pair: Pair) -> None:
    pair.check(rows_of(0))
    driver.calls()
    pair.check(rows_of(1))
    assert called(driver)["cuStreamSynchronize"] == 1


def test_sizes_have_a_graph_each(driver: FakeDriver) -> None:
    pair = Pair(chain("n"))
    for turn in range(3):
        for rows in (1, 5, 2, 0):
            pair.check(rows_of(turn, rows))
    assert pair.counts() == {"plain": 3, "replayed": 6, "captured": 3}


def test_graphs_are_bounded(driver: FakeDriver) -> None:
    pair = Pair(chain("n"))
    for rows in (*range(1, 25), *range(1, 25), 24, 24):
        pair.check(rows_of(rows, rows))
    for rows in (7, 7, 7):  # one that was forgotten is captured again
        pair.check(rows_of(rows, rows))
    assert driver.live()["graphs"] <= 16
    assert pair.counts()["captured"] >= 2


def test_threads_have_memory_and_graphs_of_their_own(driver: FakeDriver, pair: Pair) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for seed in range(6):
                pair.check(rows_of(10 * number + seed))
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert failed == []
    assert 2 <= driver.live()["streams"] <= 5


def test_all_is_given_back(driver: FakeDriver) -> None:
    pair = Pair(chain())
    for seed in range(3):
        pair.check(rows_of(seed))
    live = driver.live()
    assert live["graphs"] == 1
    assert live["pinned"] == 1
    del pair
    assert set(driver.live().values()) == {0}


def test_memory_that_is_kept_makes_room(driver: FakeDriver) -> None:
    driver.reset(memory=64 << 10)
    pair = Pair(chain("n"))
    for turn in range(2):
        for rows in (4, 4, 4, 90, 30, 4, 120, 4, 4):  # one of these sizes at a time fits
            pair.check(rows_of(turn, rows))
    with pytest.raises(DeviceError, match="cuMemAlloc_v2 of CUDA failed: there is no memory left on the device"):
        pair.there.run([rows_of(0, 5000)])
    pair.check(rows_of(0, 4))


@pytest.mark.parametrize(
    ("function", "status"),
    [("cuStreamBeginCapture_v2", 1), ("cuStreamEndCapture", 901), ("cuGraphInstantiateWithFlags", 2)],
)
def test_what_is_not_captured_is_launched_one_by_one(
    driver: FakeDriver, pair: Pair, function: str, status: int
) -> None:
    pair.check(rows_of(0))
    driver.fail(function, status)
    for seed in range(1, 4):
        pair.check(rows_of(seed))
    assert pair.counts() == {"plain": 4, "replayed": 0, "captured": 0}


def test_copies_go_without_memory_that_the_device_reads_by_itself(driver: FakeDriver) -> None:
    pair = Pair(chain())
    driver.fail("cuMemHostAlloc", 2)
    for seed in range(3):
        pair.check(rows_of(seed))
    assert driver.live()["pinned"] == 0


def test_inputs_and_outputs_in_pieces(driver: FakeDriver) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 3 << 17)).astype(np.float32)
    node = helper.make_node("Slice", ["x", "begin", "end", "axes"], ["y"])
    indices = [helper.make_tensor(n, TensorProto.INT64, (1,), [v]) for n, v in (("begin", 1), ("end", 2), ("axes", 0))]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, x.shape[1]))
    graph = helper.make_graph([node], "slice", [given], [made], indices)
    model = weft.compile(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), target="cuda", cache=False
    )
    for _ in range(4):  # the memory for copies grows in the first ones
        driver.calls()
        assert (model.run([x])[0] == x[1:2]).all()
        calls = called(driver)
        assert (calls["cuMemcpyHtoDAsync_v2"], calls["cuMemcpyDtoHAsync_v2"]) == (5, 2)
    assert calls["cuStreamSynchronize"] == 1


@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync_v2", "cuLaunchKernelEx", "cuMemcpyDtoHAsync_v2"])
def test_a_failure_ends_one_call(driver: FakeDriver, pair: Pair, function: str) -> None:
    pair.check(rows_of(0))
    driver.fail(function, 1)
    if function == "cuLaunchKernelEx":  # in a capture, which is then given up: without it, the failure is told
        pair.check(rows_of(1))
        driver.fail(function, 1)
    with pytest.raises(DeviceError) as error:
        pair.there.run([rows_of(2)])
    assert str(error.value) == (
        f"{function} of CUDA failed: CUDA_ERROR_INVALID_VALUE\n"
        "  hint: give it less at a time, or see whether the device works"
    )
    for seed in range(3):
        pair.check(rows_of(seed))


def test_a_lost_device(driver: FakeDriver, pair: Pair) -> None:
    for seed in range(3):
        pair.check(rows_of(seed))
    driver.fail("cuStreamSynchronize", 700)
    for _ in range(2):
        with pytest.raises(DeviceError) as error:
            pair.there.run([rows_of(0)])
        assert str(error.value).startswith("the device is lost: a kernel accessed memory outside of its buffers (")


def test_failures_are_told_to_the_thread_that_made_the_call(driver: FakeDriver, pair: Pair) -> None:
    pair.check(rows_of(0))
    driver.fail("cuMemcpyDtoHAsync_v2", 1)
    told: list[BaseException] = []

    def work() -> None:
        try:
            pair.there.run([rows_of(1)])
        except DeviceError as error:
            told.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    pair.check(rows_of(2))
    assert len(told) == 1


def test_launches_that_are_noted_are_made_again(driver: FakeDriver, pair: Pair) -> None:
    x = rows_of(0)
    device = pair.there.device
    assert device is not None
    with device.noting() as launches:
        pair.there.run([x])
    pair.check(x)
    assert len(launches) >= LAYERS
    driver.calls()
    assert device.repeat(launches, 3) == pytest.approx(1e-3)  # of the pretended driver's clock
    assert called(driver)["cuLaunchKernelEx"] == 3 * len(launches)
    assert driver.live()["graphs"] == 1


def lookup() -> onnx.ModelProto:
    """Returns a model that takes rows of a table, and multiplies them by a matrix: `ids` [4] -> `y` [4, 8]."""
    rng = np.random.default_rng(0)
    made = {"table": rng.standard_normal((20, 8)), "w": rng.standard_normal((8, 8))}
    weights = [helper.make_tensor(n, TensorProto.FLOAT, v.shape, v.reshape(-1)) for n, v in made.items()]
    nodes = [helper.make_node("Gather", ["table", "ids"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"])]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, (4,))
    graph = helper.make_graph(
        nodes, "lookup", [ids], [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8))], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_checks_of_indices_come_last(driver: FakeDriver) -> None:
    pair = Pair(lookup())
    ids = np.array([3, 0, 19, -20])
    for _ in range(3):
        pair.check(ids)
    driver.calls()
    pair.check(ids)
    calls = called(driver)
    assert (calls["cuGraphLaunch"], calls["cuLaunchKernelEx"], calls["cuStreamSynchronize"]) == (1, 0, 1)
    for wrong in (20, -21):
        with pytest.raises(RuntimeFailure, match=rf"index {wrong} is outside of -20 to 19"):
            pair.there.run([np.array([3, wrong, 0, 1])])
        pair.check(ids)


def test_launches_are_skipped_in_the_same_state_alone(driver: FakeDriver) -> None:
    """The host program goes on behind launches that it has made before; not with other sizes, memory or contexts."""
    pair = Pair(chain("n"))
    for rows in (3, 3, 3, 3, 5, 3, 5, 5, 3, 3, 3, 4, 4, 4, 4, 3, 3):
        pair.check(rows_of(rows, rows))
    fixed = Pair(chain())
    outputs = [fixed.there.run([rows_of(seed)])[0] for seed in range(6)]  # each in memory of its own
    for seed, made in enumerate(outputs):
        np.testing.assert_allclose(made, fixed.here.run([rows_of(seed)])[0], rtol=2e-5, atol=2e-5)


def test_launches_are_noted_when_they_would_be_skipped(driver: FakeDriver, pair: Pair) -> None:
    noted = []
    device = pair.there.device
    assert device is not None
    for seed in range(5):
        with device.noting() as launches:
            pair.check(rows_of(seed))
        noted.append(list(launches))
        pair.check(rows_of(seed + 10))
    assert all(n == noted[0] for n in noted)
