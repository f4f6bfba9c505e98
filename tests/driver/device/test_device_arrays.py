"""Arrays in the memory of a model's device: inputs and outputs of calls that stay where they are."""

from __future__ import annotations

from collections import Counter
from ctypes import c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.decoders import growing_decoder
from tests.driver.device.test_models_on_device import each_target
from tests.runtime.devices.fake_driver import FakeDriver
from tests.runtime.devices.foreign_tensor import ForeignTensor

import weft
from weft.runtime import DeviceArray
from weft.runtime.devices.cuda_library import call, handle_from
from weft.support.errors import InputError

Array = np.ndarray[Any, Any]
WIDTH = 8


def model() -> onnx.ModelProto:
    """Returns a model of two outputs: y = relu(x w) w, z = x + x, for any number of rows."""
    sizes: dict[str, int | str] = {"x": "n", "w": WIDTH, "y": "n", "z": "n"}
    x, w, y, z = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (size, WIDTH)) for n, size in sizes.items()]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
        helper.make_node("Add", ["x", "x"], ["z"]),
    ]
    graph = helper.make_graph(nodes, "g", [x, w], [y, z])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def given(rows: int = 4, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, WIDTH)).astype(np.float32) for n in (rows, WIDTH)]


def check(made: list[Any], inputs: list[Array]) -> None:
    x, w = inputs
    np.testing.assert_allclose(np.asarray(made[0]), np.maximum(x @ w, 0) @ w, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(np.asarray(made[1]), x + x)


def copies(driver: FakeDriver) -> Counter[str]:
    """Returns how often something was copied since the last time, by the direction."""
    return Counter(line.split()[0].removeprefix("cuMemcpy")[:4] for line in driver.calls() if "cuMemcpy" in line)


@each_target
def test_a_call_takes_and_leaves_arrays_of_the_device(target: str) -> None:
    there = weft.compile(model(), target=target)
    for rows in (4, 3):
        inputs = given(rows)
        resident = [there.to_device(x) for x in inputs]
        assert (resident[0].shape, resident[0].dtype.name, resident[0].nbytes) == ((rows, WIDTH), "float32", 32 * rows)
        for _ in range(3):
            made = there.run(resident, on_device=True)
            assert all(isinstance(m, DeviceArray) for m in made)
            check(made, inputs)
        x, w = inputs
        check(there.run([resident[0], w], on_device=True), inputs)
        check(there.run([x, resident[1]]), inputs)


@each_target
def test_outputs_are_written_where_they_are_to_be(target: str) -> None:
    there, inputs = weft.compile(model(), target=target), given()
    y, z = [there.to_device(np.zeros_like(inputs[0])) for _ in "yz"]
    made = there.run(inputs, out=[y, None])
    assert made[0] is y
    assert isinstance(made[1], np.ndarray)
    check([y, made[1]], inputs)
    made = there.run(inputs, out=[None, z], on_device=True)
    check([made[0], z], inputs)
    x = there.to_device(inputs[0])
    check([there.run([x, inputs[1]], out=[x, None])[0], 2 * inputs[0]], inputs)  # outputs may be inputs
    x = there.to_device(inputs[0])
    made = there.run([x, inputs[1]], out=[None, x])
    check([made[0], x], inputs)


@each_target
def test_states_go_on_beside_arrays_of_the_device(target: str) -> None:
    pairs, made = {"past_*": "present_*"}, growing_decoder(layers=1).SerializeToString()
    here, there = [weft.compile(made, target=t, state=pairs, capacity={"past_*": 12}) for t in ("cpu", target)]
    mine, other = here.new_state(), there.new_state()
    for tokens in ([3, 1, 4], [2], [5]):
        ids = np.array([tokens])
        (logits,) = there.run([there.to_device(ids)], state=other, on_device=True)
        np.testing.assert_allclose(logits.numpy(), here.run([ids], state=mine)[0], rtol=2e-5, atol=2e-5)


@each_target
def test_arrays_that_do_not_fit_are_told(target: str) -> None:
    there, (x, w) = weft.compile(model(), target=target), given()
    for wrong, words in (
        (x.astype(np.float64), "input 'x' has dtype float64, and the model takes x: f32"),
        (x[:, :4], "input 'x' has shape \\(4, 4\\): dimension 1 is 4, not 8"),
        (x[0], "input 'x' has 1 dimensions"),
    ):
        with pytest.raises(InputError, match=words):
            there.run([there.to_device(wrong), w])
    with pytest.raises(InputError, match=r"the array given for the output y.* is float32\[8\]"):
        there.run([x, w], out=[there.to_device(x[0]), None])
    with pytest.raises(InputError, match="output 'y' has shape \\(3, 8\\), not \\(4, 8\\)"):
        there.run([x, w], out=[there.to_device(x[:3]), None])
    other = weft.compile(model(), target=target)
    with pytest.raises(InputError, match="input 'x' is in the memory of another model's device"):
        there.run([other.to_device(x), w])
    with pytest.raises(BufferError, match="numpy\\(\\) copies it"):
        other.to_device(x).__dlpack_device__()
    np.testing.assert_array_equal(np.from_dlpack(other.to_device(x), device="cpu"), x)  # type: ignore[arg-type]


def test_a_model_of_the_processor_has_no_device() -> None:
    here, (x, w) = weft.compile(model()), given()
    with pytest.raises(InputError, match="the model runs on no device: its outputs can't stay there"):
        here.run([x, w], on_device=True)
    with pytest.raises(InputError, match="the model runs on no device: there is no memory of one"):
        here.to_device(x)


def test_nothing_is_copied_with_cuda(driver: FakeDriver) -> None:
    there, inputs = weft.compile(model(), target="cuda", cache=False), given()
    resident = [there.to_device(x) for x in inputs]
    out = [there.to_device(np.zeros_like(inputs[0])) for _ in range(2)]
    for _ in range(4):
        copies(driver)
        there.run(resident, out=out)
        assert not copies(driver)
    check(out, inputs)
    assert there.device is not None
    before = there.device.calls.counts()
    for x, o in zip(resident, out, strict=False):  # others values in the same memory
        x.write(x.numpy() + 1)
        o.write(np.zeros_like(inputs[0]))
    there.run(resident, out=out)
    check(out, [x + 1 for x in inputs])
    assert there.device.calls.counts()["captured"] == before["captured"]
    del there, resident, out, x, o
    assert set(driver.live().values()) == {0}


def test_arrays_of_one_model_with_cuda_are_taken_by_another(driver: FakeDriver) -> None:
    first, second = [weft.compile(model(), target="cuda", cache=False) for _ in range(2)]
    inputs = given()
    made = first.run(inputs, on_device=True)
    y = np.asarray(made[0])
    check(second.run([made[0], inputs[1]]), [y, inputs[1]])
    assert made[0].__cuda_array_interface__["shape"] == (4, WIDTH)
    assert made[0].__dlpack_device__() == (2, 0)
    del made, first, second
    assert set(driver.live().values()) == {0}


class Memory:
    """Memory of the driver's that another library has, and writes to late."""

    def __init__(self, values: Array) -> None:
        self.values = values
        self.address = handle_from("cuMemAlloc_v2", c_size_t(values.nbytes + 64))

    def fill(self, stream: int, at: int = 0) -> None:
        """Asks for the values to be copied there."""
        source, size = c_void_p(self.values.ctypes.data), c_size_t(self.values.nbytes)
        call("cuMemcpyHtoDAsync_v2", c_uint64(self.address + at), source, size, c_void_p(stream))

    def free(self) -> None:
        """Gives the memory back."""
        call("cuMemFree_v2", c_uint64(self.address))


@pytest.fixture
def on_cuda(driver: FakeDriver) -> weft.Model:
    made = weft.compile(model(), target="cuda", cache=False)
    made.run(given())  # the context is current in this thread
    return made


@pytest.mark.parametrize("at", [0, 4], ids=["aligned", "not aligned"])
def test_tensors_of_another_library_are_used_when_they_are_ready(on_cuda: weft.Model, at: int) -> None:
    x, w = given()
    memory = Memory(x)
    tensor = ForeignTensor(memory.address + at, x.shape, ready=lambda stream: memory.fill(stream, at))
    made = on_cuda.run([tensor, w], on_device=True)
    check(made, [x, w])
    assert on_cuda.device is not None
    assert tensor.streams == [on_cuda.device.stream]
    target = ForeignTensor(memory.address + at, x.shape)
    made = on_cuda.run([tensor, w], out=[None, target])  # an output that is an input
    assert made[1] is target
    check([made[0], on_cuda.run([x, w])[1]], [x, w])
    memory.free()


def test_tensors_of_another_library_that_do_not_fit_are_told(on_cuda: weft.Model) -> None:
    x, w = given()
    memory = Memory(x)
    for wrong, words in (
        (ForeignTensor(memory.address, (4, 8), device=(2, 1)), "input 'x' is on another device than the model"),
        (ForeignTensor(memory.address, (4, 8), device=(10, 0)), "input 'x' is on another device than the model"),
        (ForeignTensor(memory.address, (4, 8), bits=16), "input 'x' has dtype float16"),
        (ForeignTensor(memory.address, (4, 4)), "input 'x' has shape \\(4, 4\\)"),
        (ForeignTensor(memory.address, (4, 8), strides=(1, 4)), "input 'x' is not contiguous"),
    ):
        with pytest.raises(InputError, match=words):
            on_cuda.run([wrong, w])
    with pytest.raises(InputError, match="the array given for the output 'y' is not contiguous"):
        on_cuda.run([x, w], out=[ForeignTensor(memory.address, (4, 8), strides=(1, 4)), None])
    memory.free()


def test_a_block_that_others_may_still_use_is_not_kept(driver: FakeDriver, on_cuda: weft.Model) -> None:
    inputs = given()
    made = on_cuda.run(inputs, on_device=True)
    shared, other = made
    capsule = shared.__dlpack__(max_version=(1, 0))
    del made, shared
    blocks = driver.live()["blocks"]
    del other
    assert driver.live()["blocks"] == blocks  # kept for the next call
    del capsule
    assert driver.live()["blocks"] == blocks - 1
