"""Models for a device, some of whose kernels the host's processor runs: they compute what they do on the processor alone."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.codegen.c.networks import OTHERS
from tests.decoders import growing_decoder
from tests.driver.device.test_models_on_device import inputs_of
from tests.driver.device.test_states_on_device import PAIRS, ROOM, check_tokens
from tests.driver.host.test_control_flow import X, adding, body, branches, nested, number
from tests.driver.host.ways import model as with_constants
from tests.host_programs import interpret_model, linked
from tests.support.devices import needs_opencl, needs_webgpu

import weft
from weft.cost import Candidate, Choose, RunOn, cheapest
from weft.driver.build import Compilation, build
from weft.driver.options import CompileOptions, check_options
from weft.loop import (
    COPY,
    Address,
    Call,
    Kernel,
    external_module,
    find_note,
    parse_program,
    print_program,
    space_of,
    statements,
)
from weft.native import _rt
from weft.runtime.artifact import artifact_parts
from weft.support.errors import ArtifactError, InputError, RuntimeFailure
from weft.targets import parse_target

THREADS = "opencl -device=any+cpu"
"""Kernels of the device are for threads, where what goes step by step takes long."""

Feed = dict[str, Any]
FLOAT, INT64, STRING, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.DOUBLE


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """Returns a node that is called as its first output is; a `-` among the inputs stands for one that is left out."""
    given = [name.strip("-") for name in inputs.split()]
    return helper.make_node(op, given, outputs.split(), name=outputs.split()[0], **attributes)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, Sequence[int | str]]],
    outputs: dict[str, int],
    **constants: Any,
) -> onnx.ModelProto:
    """Returns a model of *nodes*, with the types and shapes of its inputs and the types of its outputs."""
    given = [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    weights = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph(list(nodes), "g", given, made, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def detector(size: int = 96) -> onnx.ModelProto:
    """Convolutions, and then what goes step by step: the best, the nonzero, sums of all before, boxes that do not overlap."""
    rng = np.random.default_rng(0)
    nodes = [
        node("Conv", "x w0", "c0", pads=[1] * 4),
        node("Relu", "c0", "r0"),
        node("Conv", "r0 w1", "c1", pads=[1] * 4),
        node("Relu", "c1", "r1"),
        node("Slice", "r1 zero one channel", "s0"),
        node("Reshape", "s0 flat", "scores"),
        node("TopK", "scores k", "best at"),
        node("CumSum", "scores axis", "sums"),
        node("Gather", "sums at", "taken"),
        node("Mul", "taken best", "y"),
        node("NonZero", "s0", "places"),
        node("Reshape", "best row", "rows"),
        node("Reshape", "boxes_of box_row", "boxes"),
        node("NonMaxSuppression", "boxes rows most overlap", "kept"),
        node("GlobalAveragePool", "r1", "mean"),
    ]
    return model_of(
        nodes,
        {"x": (FLOAT, [1, 3, size, size])},
        {"y": FLOAT, "places": INT64, "kept": INT64, "mean": FLOAT, "at": INT64},
        w0=rng.standard_normal((16, 3, 3, 3)).astype(np.float32),
        w1=(rng.standard_normal((16, 16, 3, 3)) / 12).astype(np.float32),
        zero=np.array([0]),
        one=np.array([1]),
        channel=np.array([1]),
        flat=np.array([-1]),
        k=np.array([8]),
        axis=np.array(0),
        row=np.array([1, 1, 8]),
        box_row=np.array([1, 8, 4]),
        boxes_of=np.sort(rng.random((8, 2, 2)), axis=1).reshape(8, 4).astype(np.float32),
        most=np.array([5]),
        overlap=np.array([0.4], np.float32),
    )


def image(size: int = 96) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).standard_normal((1, 3, size, size)).astype(np.float32)


def by_lot(seed: int) -> Choose:
    """Returns a choice of where nodes run that no cost tells; all else is as cheap as can be."""
    lot = random.Random(seed)

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        return lot.choice(candidates) if isinstance(candidates[0].decision, RunOn) else cheapest(candidates)

    return choose


def on_the_processor(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
    """Chooses the processor wherever it may be."""
    return next((c for c in candidates if c.decision == RunOn(processor=True)), cheapest(candidates))


def check_same(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def check_model(made: Compilation, feeds: Sequence[Feed], here: weft.Model) -> weft.Model:
    """Fails unless a model computes what *here* does, twice each; returns it."""
    there = weft.Model(made.package)
    for feed in (*feeds, *feeds):
        given = [feed[s.name] for s in here.inputs]
        check_same(there.run(given), here.run(given))
    return there


def devices_of(made: Compilation) -> dict[str, str]:
    """Returns the machine that runs each group, by the name of its kernel."""
    return {made.kernels[g.key].name: made.target_of(g.key).name for g in made.fused.kernel_groups}


def crossings(made: Compilation) -> Counter[tuple[int | None, int | None]]:
    """Returns how often the host program copies from one space to another."""
    found = Counter[tuple[int | None, int | None]]()
    for s in statements(made.host.entry.body):
        if isinstance(s, Call) and s.callee == COPY:
            to, source = s.args[:2]
            assert isinstance(to, Address)
            assert isinstance(source, Address)
            found[space_of(source.buffer), space_of(to.buffer)] += 1
    return found


@needs_opencl
def test_what_goes_step_by_step_is_placed_on_the_processor() -> None:
    made = build(detector(), THREADS, CompileOptions(verify=True))
    places = devices_of(made)
    on_device = {name for name, device in places.items() if device == "opencl"}
    assert len(on_device) == 3  # two convolutions, and the means
    assert {name for name in places if "conv2d" in name} < on_device
    there = {"top_k", "cumsum", "nonzero_positions", "nms_selection"}
    assert there <= set(places) - on_device
    # the image to the device, its features back once, the means at the end
    found = crossings(made)
    assert (found[0, 1], found[1, 0]) == (1, 2)
    check_model(made, [{"x": image()}], weft.compile(detector()))


@needs_opencl
def test_kernels_run_in_the_spaces_of_their_modules() -> None:
    made = build(detector(), THREADS)
    assert made.package.replay is not None
    declared = {f.name: f for f in made.host.functions if external_module(f) is not None}
    modules = [external_module(f) or "" for f in declared.values()]
    assert modules == sorted(modules, reverse=True)  # a device knows its kernels by the numbers of callees
    for f in declared.values():
        assert (find_note(f.notes, Kernel) is None) == (external_module(f) == "cpu")
    images = [image is not None for image, _ in made.package.replay.callees]
    assert images == [external_module(f) == "cpu" for f in declared.values()]
    assert made.package.target == "opencl+cpu"
    assert made.package.machine == _rt.MACHINE
    text = print_program(made.host)
    assert print_program(parse_program(text)) == text


@pytest.mark.sampled(3)
@needs_opencl
@pytest.mark.parametrize("target", ["opencl+cpu", THREADS])
@pytest.mark.parametrize("seed", range(4))
def test_any_placement_computes_the_same(seed: int, target: str) -> None:
    """Also one by one in the interpreter, where the device's kernels are programs of cores."""
    made = build(detector(16), target, CompileOptions(verify=True), choose=by_lot(seed))
    x = image(16)
    there = check_model(made, [{"x": x}], weft.compile(detector(16)))
    if not made.target.has_threads:
        check_same(interpret_model(linked(made), made, {"x": x}), there.run([x]))


@needs_opencl
@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_networks_in_any_placement(make: Callable[[], onnx.ModelProto]) -> None:
    proto = make()
    here = weft.compile(proto)
    feed = {s.name: x for s, x in zip(here.inputs, inputs_of(here), strict=True)}
    for seed, options in enumerate((CompileOptions(), CompileOptions(opt_level=0))):
        check_model(build(proto, THREADS, options, choose=by_lot(seed)), [feed], here)


@needs_opencl
def test_sizes_that_a_call_tells() -> None:
    nodes = [
        node("MatMul", "x w", "p"),
        node("TopK", "p k", "best at", axis=0, largest=0),
        node("CumSum", "best axis", "sums"),
        node("Concat", "sums p", "both", axis=0),
        node("NonZero", "both", "places"),
        node("Relu", "both", "y"),
    ]
    w = np.random.default_rng(2).standard_normal((6, 8)).astype(np.float32)
    proto = model_of(
        nodes,
        {"x": (FLOAT, ["n", 6])},
        {"y": FLOAT, "places": INT64, "at": INT64},
        w=w,
        k=np.array([200]),
        axis=np.array(0),
    )
    here = weft.compile(proto)
    feeds = [{"x": np.random.default_rng(n).standard_normal((n, 6)).astype(np.float32)} for n in (5, 3, 40, 2)]
    for seed in range(3):
        made = build(proto, THREADS, choose=by_lot(seed))
        check_model(made, feeds, here)
        assert devices_of(made)["top_k"] == "cpu"  # all are sorted, for which a thread has no memory of an open size


REGIONS: dict[str, tuple[Callable[[], onnx.ModelProto], list[Feed]]] = {
    "branches": (branches, [{"x": X, "c": np.array(c)} for c in (True, False)]),
    "loop": (lambda: adding([None]), [{"x": X, "m": np.array(m)} for m in (1, 20, 0)]),
    "nested": (
        nested,
        [
            {"x": X, "m": np.array(m), "n": np.array(n), "limit": number(limit)}
            for m, n, limit in [(1, 1, 0.0), (3, 2, 50.0), (2, 0, -5.0)]
        ],
    ),
}


@pytest.mark.sampled(2)
@needs_opencl
@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("seed", range(2))
def test_control_flow_in_any_placement(name: str, seed: int) -> None:
    make, feeds = REGIONS[name]
    check_model(build(make(), THREADS, CompileOptions(verify=True), choose=by_lot(seed)), feeds, weft.compile(make()))


@needs_opencl
def test_an_input_is_read_inside_of_a_loop_too() -> None:
    """Kernels of the processor read it where the caller has it, and in the loop a copy of it, which is written."""
    inner = [node("CumSum", "x axis", "r"), node("Add", "s r", "t")]
    made = body(inner, [("s", FLOAT, [2, 3])], [("t", FLOAT, [2, 3])])
    loop = helper.make_node("Loop", ["m", "yes", "x"], ["y"], body=made)
    given = [("x", FLOAT, [2, 3]), ("m", INT64, [])]
    results = [("y", FLOAT, [2, 3]), ("e", FLOAT, [2, 3])]
    known = {"yes": np.array(True), "axis": np.array(0)}
    proto = with_constants([node("Exp", "x", "e"), loop], given, results, known)
    feeds: list[Feed] = [{"x": X, "m": np.array(m)} for m in (20, 0)]
    check_model(build(proto, THREADS, choose=on_the_processor), feeds, weft.compile(proto))


@needs_opencl
def test_states_stay_on_the_device(tmp_path: Path) -> None:
    wanted = check_options(state=PAIRS, capacity={"past_*": ROOM})
    proto = growing_decoder(layers=1)
    here = weft.compile(proto, state=PAIRS, capacity={"past_*": ROOM})
    for seed in range(2):
        made = build(proto, THREADS, wanted, choose=by_lot(seed))
        assert set(devices_of(made).values()) == {"opencl", "cpu"}
        there = weft.Model(made.package)
        check_tokens(here, there, here.new_state(), there.new_state(), 4)
    there.save(tmp_path / "m.weft")
    again = weft.load(tmp_path / "m.weft")
    check_tokens(here, again, here.new_state(), again.new_state(), 4)


@needs_opencl
def test_inputs_and_outputs_in_the_memory_of_the_device() -> None:
    """Also those that kernels of the processor read and write."""
    nodes = [
        node("CumSum", "x axis", "s"),
        node("MatMul", "s w", "p"),
        node("Add", "x p", "y"),
        node("CumSum", "y axis", "z"),
    ]
    w = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
    proto = model_of(nodes, {"x": (FLOAT, [4, 8])}, {"y": FLOAT, "z": FLOAT, "s": FLOAT}, w=w, axis=np.array(0))
    here, x = weft.compile(proto), np.random.default_rng(4).standard_normal((4, 8)).astype(np.float32)
    for seed in range(4):
        there = weft.Model(build(proto, THREADS, choose=by_lot(seed)).package)
        lent = there.to_device(x)
        wanted = here.run([x])
        check_same(there.run([lent]), wanted)
        check_same([np.asarray(a) for a in there.run([lent], on_device=True)], wanted)
        out = [np.empty((4, 8), np.float32) for _ in range(3)]
        check_same(there.run([x], out=out), wanted)
        check_same(out, wanted)
        out[1] = x.copy()  # an output may be one of the inputs
        check_same(there.run([out[1]], out=out), wanted)


@needs_opencl
def test_strings_and_seeds_are_the_processors() -> None:
    nodes = [node("MatMul", "x w", "p"), node("RandomNormalLike", "p", "noise"), node("Add", "p noise", "y")]
    nodes += [node("StringNormalizer", "text", "upper", case_change_action="UPPER")]
    w = np.eye(64, dtype=np.float32)
    proto = model_of(
        nodes, {"x": (FLOAT, [64, 64]), "text": (STRING, [2])}, {"p": FLOAT, "y": FLOAT, "upper": STRING}, w=w
    )
    with pytest.raises(InputError, match=r'use --target cpu, or "opencl\+cpu", where the host computes them'):
        build(proto, "opencl")
    made = build(proto, THREADS)
    assert devices_of(made)["matmul"] == "opencl"
    x = np.ones((64, 64), np.float32)
    for there in (weft.Model(made.package), weft.load(b"".join(artifact_parts(made.package)))):
        p, y, upper = there.run([x, np.array(["a", "b"], object)])
        np.testing.assert_array_equal(p, x)
        assert upper.tolist() == ["A", "B"]
        assert 0.5 < (y - x).std() < 1.5


@needs_webgpu
def test_types_that_a_device_lacks_are_the_processors() -> None:
    nodes = [
        node("MatMul", "x w", "p"),
        node("Cast", "p", "d", to=DOUBLE),
        node("ReduceSum", "d", "total", keepdims=0),
        node("Cast", "total", "t", to=FLOAT),
        node("Sub", "p t", "y"),
    ]
    w = np.random.default_rng(5).standard_normal((256, 256)).astype(np.float32) / 16
    proto = model_of(nodes, {"x": (FLOAT, [256, 256])}, {"y": FLOAT}, w=w)
    with pytest.raises(InputError, match=r"WGSL has no f64"):
        build(proto, "webgpu")
    made = build(proto, "webgpu+cpu")
    assert {name for name, device in devices_of(made).items() if device == "cpu"} == {"cast_reduce_sum_cast"}
    x = np.random.default_rng(6).standard_normal((256, 256)).astype(np.float32)
    found, wanted = weft.Model(made.package).run([x]), weft.compile(proto).run([x])
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", ["opencl+cpu", pytest.param("webgpu+cpu", marks=needs_webgpu)])
@needs_opencl
def test_a_model_that_is_all_the_processors(target: str) -> None:
    nodes = [node("CumSum", "x axis", "y")]
    proto = model_of(nodes, {"x": (FLOAT, [32])}, {"y": FLOAT}, axis=np.array(0))
    made = build(proto, target, choose=on_the_processor)
    assert set(devices_of(made).values()) == {"cpu"}
    check_model(made, [{"x": np.arange(32, dtype=np.float32)}], weft.compile(proto))


@needs_opencl
def test_a_file_has_the_code_of_both(tmp_path: Path) -> None:
    made = weft.compile(detector(), target=THREADS, cache=False)
    made.save(tmp_path / "m.weft")
    assert made.package.replay is not None
    assert made.package.replay.processor is not None
    data = (tmp_path / "m.weft").read_bytes()
    assert b"weft.processor\0" in data
    found = weft.load(data)
    assert found.package.replay is not None
    assert found.package.replay.processor is not None
    assert found.package.replay.processor.offsets == made.package.replay.processor.offsets
    assert found.package.code_bytes == made.package.code_bytes
    check_same(found.run([image()]), made.run([image()]))
    with pytest.raises(ArtifactError):
        weft.load(data.replace(b"weft.processor\0", b"weft.processes\0"))


@needs_opencl
def test_a_file_is_loaded_without_the_compiler(tmp_path: Path) -> None:
    model = weft.compile(detector(), target=THREADS)
    model.save(tmp_path / "m.weft")
    np.save(tmp_path / "x.npy", image())
    code = (
        "import sys, numpy as np, weft; m = weft.load(sys.argv[1]); np.savez(sys.argv[3], *m(np.load(sys.argv[2])));"
        "print(sorted({'llvmlite', 'onnx', 'weft.ir', 'weft.driver', 'weft.codegen'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, *[str(tmp_path / n) for n in ("m.weft", "x.npy", "y.npz")]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
    check_same(list(np.load(tmp_path / "y.npz").values()), model.run([image()]))


@needs_opencl
def test_a_check_of_what_the_processor_computes() -> None:
    nodes = [node("TopK", "x k", "best at"), node("Gather", "table at", "y"), node("MatMul", "y w", "z")]
    w = np.ones((2, 2), np.float32)
    proto = model_of(nodes, {"x": (FLOAT, [4]), "table": (FLOAT, [3, 2])}, {"z": FLOAT}, w=w, k=np.array([2]))
    for seed in range(3):
        there = weft.Model(build(proto, THREADS, choose=by_lot(seed)).package)
        table = np.arange(6, dtype=np.float32).reshape(3, 2)
        check_same(there.run([np.array([3, 2, 1, 0], np.float32), table]), [np.array([[1, 1], [5, 5]], np.float32)])
        with pytest.raises(RuntimeFailure, match=r"Gather y: index 3 is outside of -3 to 2"):
            there.run([np.array([0, 1, 2, 3], np.float32), table])


@needs_opencl
def test_the_model_is_kept_in_the_cache() -> None:
    data = detector().SerializeToString()
    first, second, alone = [weft.compile(data, target=t) for t in (THREADS, THREADS, "opencl -device=any")]
    check_same(first.run([image()]), second.run([image()]))
    check_same(first.run([image()]), alone.run([image()]))
    assert alone.package.replay is not None
    assert alone.package.replay.processor is None


def test_a_target_of_two_machines() -> None:
    target = parse_target("cuda -arch=sm_90+cpu -cores=2")
    assert (target.name, target.title) == ("cuda", "cuda+cpu")
    assert target.processor == parse_target("cpu -cores=2")
    assert target.alone == parse_target("cuda -arch=sm_90")
    for text, message in (
        ("cpu+opencl", "cpu is no device"),
        ("opencl+c", "c can't be beside opencl"),
        ("opencl+webgpu", "webgpu can't be beside opencl"),
        ("opencl+", "there is no target ''"),
        ("opencl+cpu+cpu", r"there is no target 'cpu\+cpu'"),
    ):
        with pytest.raises(InputError, match=message):
            parse_target(text)
