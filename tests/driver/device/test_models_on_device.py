"""Models whose kernels run on a device compute what they do on the processor, and nothing of them runs there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.codegen.c.networks import NETWORKS, OTHERS
from tests.support.devices import needs_opencl, needs_webgpu

import weft
from weft.driver.build import Compilation, build
from weft.loop import Kernel, external_module, find_note, verify_host
from weft.support.errors import InputError, WeftError

MODELS = {**NETWORKS, **OTHERS}
each_target = pytest.mark.parametrize(
    "target",
    [
        pytest.param("opencl", marks=needs_opencl),
        pytest.param("opencl -device=any", marks=needs_opencl),
        pytest.param("webgpu", marks=needs_webgpu),
    ],
)


def inputs_of(model: weft.Model, symbolic: int = 3) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    made = []
    for spec in model.inputs:
        shape = [d if isinstance(d, int) else symbolic for d in spec.shape]
        values = rng.standard_normal(shape) if spec.dtype.is_float else rng.integers(0, 3, shape)
        made.append(values.astype(spec.dtype.numpy))
    return made


def check_on(target: str, make: Callable[[], onnx.ModelProto]) -> None:
    """Fails unless a model computes on a device what it does on the processor."""
    model = make()
    here, there = weft.compile(model), weft.compile(model, target=target)
    given = inputs_of(here)
    for _ in range(2):  # the second call has memory of the first
        for expected, made in zip(here.run(given), there.run(given), strict=True):
            np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-5)


@needs_opencl
@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_results_with_opencl_are_those_of_the_processor(make: Callable[[], onnx.ModelProto]) -> None:
    check_on("opencl", make)


@needs_opencl
@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_results_of_threads_with_opencl_are_those_of_the_processor(make: Callable[[], onnx.ModelProto]) -> None:
    check_on("opencl -device=any", make)


@needs_webgpu
@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_results_with_webgpu_are_those_of_the_processor(make: Callable[[], onnx.ModelProto]) -> None:
    check_on("webgpu", make)


@each_target
def test_every_call_is_a_launch(target: str) -> None:
    check_every_call_is_a_launch(build(NETWORKS["mlp"](), target))


def check_every_call_is_a_launch(made: Compilation) -> None:
    """Fails unless all that the host program of a model calls are kernels of a device."""
    verify_host(made.host)
    declared = [f for f in made.host.functions if external_module(f) is not None]
    assert declared
    assert all(find_note(f.notes, Kernel) is not None for f in declared)
    assert made.package.replay is not None
    assert {image for image, _ in made.package.replay.callees} == {None}


@needs_opencl
def test_several_sizes_of_one_model() -> None:
    check_sizes("opencl")


@needs_webgpu
@pytest.mark.slow
def test_several_sizes_of_one_model_with_webgpu() -> None:
    check_sizes("webgpu")


def check_sizes(target: str) -> None:
    """Fails unless one model computes on a device what it does on the processor for batches of several sizes."""
    model = NETWORKS["digits"]()
    here, there = weft.compile(model), weft.compile(model, target=target)
    for n in (5, 1, 8, 0):
        given = inputs_of(here, n)
        np.testing.assert_allclose(there.run(given)[0], here.run(given)[0], rtol=2e-5, atol=2e-5)


def volumes() -> onnx.ModelProto:
    """Returns a convolution of 6 frames of 16 x 16, which has fewer patches by Winograd's method than machines have cores."""
    rng = np.random.default_rng(0)
    w = onnx.numpy_helper.from_array(0.05 * rng.standard_normal((16, 16, 3, 3, 3)).astype(np.float32), "w")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, 16, 6, 16, 16)) for n in "xy")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 6)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(helper.make_graph([node], "g", [x], [y], [w]), opset_imports=[opset], ir_version=8)


@each_target
def test_no_loop_of_the_host_is_around_the_launches_of_volumes(target: str) -> None:
    check_on(target, volumes)


@each_target
def test_a_size_that_is_a_float_of_the_model(target: str) -> None:
    """The host program, which computes with integers alone, is given it converted by a kernel."""
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    given = [("at", onnx.TensorProto.INT64, [3]), ("depth", float32, [1]), ("values", float32, [2])]
    y = helper.make_tensor_value_info("y", float32, None)
    node = helper.make_node("OneHot", [name for name, _, _ in given], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(*g) for g in given], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    at, depth, values = np.array([1, 0, 2]), np.array([4.7], np.float32), np.array([2, 5], np.float32)
    made = weft.compile(model, target=target).run([at, depth, values])[0]
    np.testing.assert_array_equal(made, np.where(np.eye(4)[at] > 0, 5, 2))


@pytest.mark.parametrize("target", ["cpu", pytest.param("webgpu", marks=needs_webgpu)])
def test_ranges_of_integers_need_no_floats(target: str) -> None:
    helper, int32 = onnx.helper, onnx.TensorProto.INT32
    given = [helper.make_tensor_value_info(n, int32, []) for n in ("start", "limit", "step")]
    node = helper.make_node("Range", ["start", "limit", "step"], ["y"])
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", int32, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    there = weft.compile(model, target=target)
    for row in ((10, 4, -3), (0, 10, 3), (0, 9, 3), (5, 5, 1), (5, 1, 1), (-7, 8, 4), (10, -11, -5)):
        made = there.run([np.int32(n) for n in row])[0]
        np.testing.assert_array_equal(made, np.arange(*row, dtype=np.int32))
    with pytest.raises(WeftError, match="the size of a range is 4611686018427387904, for which no memory is large"):
        there.run([np.int32(n) for n in (1, 5, 0)])


@needs_webgpu
def test_more_tensors_than_a_kernel_takes_buffers() -> None:
    helper = onnx.helper
    names = [f"x{k}" for k in range(40)]
    given = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in names]
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 120])
    graph = helper.make_graph([helper.make_node("Concat", names, ["y"], axis=1)], "g", given, [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    there, values = weft.compile(model, target="webgpu"), np.random.default_rng(0).standard_normal((40, 2, 3))
    xs = list(values.astype(np.float32))
    np.testing.assert_array_equal(there.run(xs)[0], np.concatenate(xs, axis=1))


def doubled(dtype: int, shape: list[int | str]) -> onnx.ModelProto:
    """Returns a model of one node, `y = x + x`."""
    x = onnx.helper.make_tensor_value_info("x", dtype, shape)
    y = onnx.helper.make_tensor_value_info("y", dtype, shape)
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["y"], name="twice")], "g", [x], [y])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT16", "UINT16", "INT64", "UINT64", "FLOAT16", "BFLOAT16"])
@needs_webgpu
def test_types_that_are_packed_in_words_or_are_two_words(dtype: str) -> None:
    there = weft.compile(doubled(getattr(onnx.TensorProto, dtype), [7]), target="webgpu")
    kind = there.inputs[0].dtype.numpy
    low, high = (-100.0, 100.0) if dtype.endswith("16") and "INT" not in dtype else (0, 1 << 62)
    x = np.random.default_rng(1).uniform(low, high, 7).astype(np.int64 if "INT" in dtype else np.float64).astype(kind)
    np.testing.assert_array_equal(there.run([x])[0], x + x)


def test_a_type_that_the_device_lacks() -> None:
    with pytest.raises(InputError) as error:
        build(doubled(onnx.TensorProto.DOUBLE, [4]), "webgpu")
    assert str(error.value) == (
        "Add twice: x is of type f64, which webgpu does not compute with\n"
        '  hint: convert the model to float32, or compile it for a cpu target, or for "webgpu+cpu"'
    )


def test_a_tensor_that_is_too_large_for_a_kernel() -> None:
    with pytest.raises(InputError) as error:
        build(doubled(onnx.TensorProto.FLOAT, [1 << 30]), "webgpu")
    assert str(error.value) == (
        "Add twice: x has 4294967296 bytes, and a kernel of webgpu takes at most 2147483647 in a buffer\n"
        '  hint: use a smaller batch, or compile this model for a cpu target, or for "webgpu+cpu"'
    )


@needs_webgpu
def test_a_tensor_that_is_too_large_in_a_call() -> None:
    there = weft.compile(doubled(onnx.TensorProto.FLOAT, ["n"]), target="webgpu")
    with pytest.raises(
        WeftError, match="more bytes than a kernel of this device takes in a buffer: 134217732 > 134217728"
    ):
        there.run([np.zeros((1 << 25) + 1, np.float32)])
    assert there.run([np.ones(3, np.float32)])[0].tolist() == [2, 2, 2]


WORDS = ("sqrt", "global", "barrier", "int32_t", "half")


@pytest.mark.parametrize(
    "target", ["c", pytest.param("opencl", marks=needs_opencl), pytest.param("webgpu", marks=needs_webgpu)]
)
def test_values_may_have_the_names_of_functions_and_words(target: str) -> None:
    x, *ys = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [5]) for name in ("x", *WORDS)]
    nodes = [helper.make_node("Sqrt", [of], [made]) for of, made in zip(("x", *WORDS), WORDS, strict=False)]
    model = helper.make_model(helper.make_graph(nodes, "names", [x], ys), opset_imports=[helper.make_opsetid("", 17)])
    given = np.arange(5, dtype=np.float32)
    for n, found in enumerate(weft.compile(model, target=target)(given)):
        np.testing.assert_allclose(found, given**0.5 ** (n + 1), rtol=1e-5)


def image_network() -> onnx.ModelProto:
    """Returns padded convolutions of any batch, one of them channel by channel, a padded pool, and maps between them."""
    rng = np.random.default_rng(0)
    shapes = {"a": (16, 3, 3, 3), "b": (16, 1, 3, 3), "c": (32, 16, 1, 1)}
    weights = [
        helper.make_tensor(n, TensorProto.FLOAT, s, rng.standard_normal(s).ravel() * 0.3) for n, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["u"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["u"], ["v"]),
        helper.make_node("Conv", ["v", "b"], ["d"], pads=[1] * 4, group=16),
        helper.make_node("Sigmoid", ["d"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["p"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Conv", ["p", "c"], ["q"]),
        helper.make_node("Relu", ["q"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 17, 15])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "images", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@needs_opencl
def test_convolutions_and_pools_of_threads_are_one_launch_each() -> None:
    model = image_network()
    made = build(model, "opencl -device=any", cache=None)
    assert len([f for f in made.host.functions if find_note(f.notes, Kernel) is not None]) == 4
    followed = build(model, "opencl -device=any", cache=None, graph_plan=made.graph_plan)
    assert {k: str(v.flat) for k, v in followed.kernels.items()} == {k: str(v.flat) for k, v in made.kernels.items()}
    here, there = weft.compile(model), weft.Model(made.package)
    given = inputs_of(here)
    np.testing.assert_allclose(there.run(given)[0], here.run(given)[0], rtol=2e-5, atol=2e-5)
