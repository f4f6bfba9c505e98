"""`InferenceSession`, call by call beside ONNX Runtime's own."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from tests import models
from tests.models import random_inputs

import weft
from weft.native import _rt
from weft.runtime.artifact import write_artifact
from weft.runtime.session import InferenceSession as Session
from weft.runtime.session_values import empty

SIZES = {"batch": 5}


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """Three inputs, two outputs, a symbolic batch, and something to say about itself."""
    made = models.lstm_step(batch="batch")
    made.producer_name, made.model_version, made.domain = "test", 7, "example"
    made.doc_string, made.graph.doc_string = "a model", "a graph"
    onnx.helper.set_model_props(made, {"author": "nobody", "labels": "h, c"})
    return made


@pytest.fixture(scope="module")
def feed(model: onnx.ModelProto) -> dict[str, Any]:
    return dict(random_inputs(model, SIZES))


@pytest.fixture(scope="module")
def theirs(model: onnx.ModelProto) -> ort.InferenceSession:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def ours(model: onnx.ModelProto) -> weft.InferenceSession:
    return weft.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def same(a: Any, b: Any) -> None:
    assert isinstance(a, list)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


NAMES: list[list[str] | None] = [None, [], ["c_next"], ["c_next", "h_next"], ["h_next", "h_next"]]


@pytest.mark.parametrize("names", NAMES)
def test_run(ours: weft.InferenceSession, theirs: Any, feed: dict[str, Any], names: list[str] | None) -> None:
    same(ours.run(names, feed), theirs.run(names, feed))


def test_lists_become_arrays_as_theirs_do(ours: weft.InferenceSession, theirs: Any, feed: dict[str, Any]) -> None:
    lists = {name: array.tolist() for name, array in feed.items()}
    same(ours.run(None, lists), theirs.run(None, lists))


def test_a_session_opens_paths_and_bytes_of_both_kinds(
    model: onnx.ModelProto, theirs: Any, feed: dict[str, Any], tmp_path: Path
) -> None:
    onnx.save(model, tmp_path / "m.onnx")
    weft.compile(tmp_path / "m.onnx").save(tmp_path / "m.weft")
    (tmp_path / "no_suffix").write_bytes((tmp_path / "m.weft").read_bytes())
    sources: list[object] = [tmp_path / name for name in ("m.onnx", "m.weft", "no_suffix")]
    sources += [str(tmp_path / "m.weft"), (tmp_path / "m.weft").read_bytes(), bytearray(model.SerializeToString())]
    for source in sources:
        same(weft.InferenceSession(source).run(None, feed), theirs.run(None, feed))


def facts(args: Any) -> list[tuple[str, str, list[Any]]]:
    return [(a.name, a.type, a.shape) for a in args]


def test_signature(ours: weft.InferenceSession, theirs: Any) -> None:
    assert facts(ours.get_inputs()) == facts(theirs.get_inputs())
    assert facts(ours.get_outputs()) == facts(theirs.get_outputs())
    assert facts(ours.get_overridable_initializers()) == facts(theirs.get_overridable_initializers())


def test_types_have_their_names() -> None:
    kinds = [
        "FLOAT",
        "DOUBLE",
        "FLOAT16",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "BOOL",
    ]
    types = [getattr(onnx.TensorProto, kind) for kind in kinds]
    inputs = [onnx.helper.make_tensor_value_info(f"x{t}", t, [2]) for t in types]
    outputs = [onnx.helper.make_tensor_value_info(f"y{t}", t, [2]) for t in types]
    nodes = [onnx.helper.make_node("Identity", [f"x{t}"], [f"y{t}"]) for t in types]
    graph = onnx.helper.make_graph(nodes, "identities", inputs, outputs)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    theirs, ours = ort.InferenceSession(made.SerializeToString()), weft.InferenceSession(made.SerializeToString())
    assert facts(ours.get_inputs()) == facts(theirs.get_inputs())
    for t in types:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t)
        a = weft.OrtValue.ortvalue_from_shape_and_type([2, 3], t)
        b = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], dtype.type)
        assert (a.data_type(), a.element_type(), a.shape()) == (b.data_type(), b.element_type(), b.shape())
        assert (a.numpy().dtype, a.tensor_size_in_bytes()) == (dtype, b.tensor_size_in_bytes())


META = ["producer_name", "graph_name", "domain", "description", "graph_description", "version", "custom_metadata_map"]


def test_metadata(model: onnx.ModelProto, ours: weft.InferenceSession, theirs: Any, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "m.onnx")
    weft.compile(model).save(tmp_path / "m.weft")
    saved = weft.InferenceSession(tmp_path / "m.weft")
    light = Session(tmp_path / "m.weft")  # as weft-runtime has it
    for session in (ours, weft.InferenceSession(tmp_path / "m.onnx"), saved, light):
        for name in META:
            assert getattr(session.get_modelmeta(), name) == getattr(theirs.get_modelmeta(), name), name


def test_metadata_of_a_model_that_says_nothing(tmp_path: Path) -> None:
    proto = models.mlp()
    weft.compile(proto).save(tmp_path / "m.weft")
    theirs = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).get_modelmeta()
    ours = weft.InferenceSession(tmp_path / "m.weft").get_modelmeta()
    assert [getattr(ours, name) for name in META] == [getattr(theirs, name) for name in META]
    graph = weft.build(proto).source
    assert graph.metadata.graph_name == graph.name == theirs.graph_name


def test_a_model_saved_when_no_metadata_was_kept(model: onnx.ModelProto, tmp_path: Path) -> None:
    package = weft.compile(model).package
    notes = {k: v for k, v in package.notes.items() if k in ("weft", "llvm", "model", "options", "records", "memory")}
    write_artifact(replace(package, notes=notes), tmp_path / "m.weft")
    with pytest.raises(weft.InputError) as caught:
        weft.InferenceSession(tmp_path / "m.weft").get_modelmeta()
    assert str(caught.value) == (
        "this saved model keeps no metadata of its source: an older Weft saved it\n"
        "  hint: compile and save it again, or open the ONNX model"
    )
    write_artifact(replace(package, notes={**package.notes, "version": "seven"}), tmp_path / "m.weft")
    with pytest.raises(weft.InputError, match="this saved model's version is 'seven', which is no number"):
        weft.InferenceSession(tmp_path / "m.weft").get_modelmeta()


def test_providers(ours: weft.InferenceSession, theirs: Any) -> None:
    assert ours.get_providers() == theirs.get_providers() == weft.get_available_providers()
    assert ours.get_provider_options().keys() == theirs.get_provider_options().keys()
    ours.set_providers(["CPUExecutionProvider"])
    ours.set_providers([("CPUExecutionProvider", {})])
    ours.disable_fallback()
    ours.enable_fallback()


def bind(session: Any, value: Any, feed: dict[str, Any]) -> Any:
    """Binds the inputs in all the ways there are, and both outputs to new memory."""
    binding = session.io_binding()
    x, h, c = (feed[name] for name in ("x", "h", "c"))
    binding.bind_cpu_input("x", x)
    binding.bind_input("h", "cpu", 0, np.float32, h.shape, h.ctypes.data)
    binding.bind_ortvalue_input("c", value.ortvalue_from_numpy(c))
    binding.bind_output("c_next")
    binding.bind_output("h_next", "cpu")
    return binding


def test_binding_to_new_memory(ours: weft.InferenceSession, theirs: Any, feed: dict[str, Any]) -> None:
    made = []
    for session, value in ((ours, weft.OrtValue), (theirs, ort.OrtValue)):
        binding = bind(session, value, feed)
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        made.append(binding.copy_outputs_to_cpu())
        assert [v.shape() for v in binding.get_outputs()] == [[5, 16], [5, 16]]
    same(made[0], made[1])


@pytest.mark.parametrize("offset", [0, 4])  # the runtime writes aligned memory itself, and copies to any other
def test_binding_to_memory_of_the_callers(
    ours: weft.InferenceSession, theirs: Any, feed: dict[str, Any], offset: int
) -> None:
    want = dict(zip(["h_next", "c_next"], theirs.run(None, feed), strict=True))
    memory = empty((4096,), np.dtype(np.uint8))
    place = memory[offset : offset + 5 * 16 * 4].view(np.float32).reshape(5, 16)
    value = weft.OrtValue.ortvalue_from_shape_and_type([5, 16], np.float32)
    binding = ours.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("h_next", "cpu", 0, np.float32, (5, 16), place.ctypes.data)
    binding.bind_ortvalue_output("c_next", value)
    for _ in range(2):
        place[:] = 0
        value.update_inplace(np.zeros((5, 16), np.float32))
        ours.run_with_iobinding(binding)
        same([place, value.numpy()], [want["h_next"], want["c_next"]])
    assert [v.data_ptr() for v in binding.get_outputs()] == [place.ctypes.data, value.data_ptr()]


def test_a_state_can_be_bound_to_itself(ours: weft.InferenceSession, theirs: Any, feed: dict[str, Any]) -> None:
    """A recurrent loop without copies in the program: each step reads the state and writes it to the same place."""
    h, c = (weft.OrtValue.ortvalue_from_numpy(feed[name].copy()) for name in ("h", "c"))
    binding = ours.io_binding()
    binding.bind_cpu_input("x", feed["x"])
    for name, value in (("h", h), ("c", c)):
        binding.bind_ortvalue_input(name, value)
        binding.bind_ortvalue_output(f"{name}_next", value)
    state = dict(feed)
    for _ in range(3):
        ours.run_with_iobinding(binding)
        state["h"], state["c"] = theirs.run(None, state)
    same([h.numpy(), c.numpy()], [state["h"], state["c"]])


def test_cleared_bindings_are_empty(ours: weft.InferenceSession, feed: dict[str, Any]) -> None:
    binding = bind(ours, weft.OrtValue, feed)
    ours.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    with pytest.raises(weft.InputError, match="no output is bound"):
        ours.run_with_iobinding(binding)
    binding.bind_output("h_next")
    binding.clear_binding_inputs()
    with pytest.raises(weft.InputError, match="missing inputs: x, h, c"):
        ours.run_with_iobinding(binding)


def test_ort_values(ours: weft.InferenceSession, theirs: Any, feed: dict[str, Any]) -> None:
    made = []
    for session, value in ((ours, weft.OrtValue), (theirs, ort.OrtValue)):
        values = session.run_with_ort_values(["c_next"], {n: value.ortvalue_from_numpy(a) for n, a in feed.items()})
        assert [v.data_type() for v in values] == ["tensor(float)"]
        assert all(v.is_tensor() and v.has_value() and not v.is_sparse_tensor() for v in values)
        assert not any(v.is_tensor_sequence() for v in values)
        assert values[0].device_name().lower() == "cpu"
        made.append([v.numpy() for v in values])
    same(made[0], made[1])


def test_ort_values_share_memory() -> None:
    array = np.arange(6, dtype=np.float32)
    value = weft.OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    assert np.shares_memory(np.from_dlpack(value), array)
    assert np.shares_memory(np.asarray(value), array)
    assert np.shares_memory(weft.OrtValue.from_dlpack(array).numpy(), array)
    assert repr(value) == "<weft.OrtValue tensor(float) [6]>"
    with pytest.raises(weft.InputError, match=r"the array is float32\[5\], and the value float32\[6\]"):
        value.update_inplace(array[1:])


def test_run_async(ours: weft.InferenceSession, theirs: Any, feed: dict[str, Any]) -> None:
    done: list[Any] = []
    finished = threading.Event()

    def callback(results: Any, data: Any, error: str) -> None:
        done.append((results, data, error))
        finished.set()

    ours.run_async(["c_next"], feed, callback, "mine")
    assert finished.wait(30)
    ((results, data, error),) = done
    assert (data, error) == ("mine", "")
    same(results, theirs.run(["c_next"], feed))
    finished.clear()
    ours.run_async(["none"], feed, callback, "mine")
    assert finished.wait(30)
    assert done[1][0] is None
    assert "there is no output 'none'" in done[1][2]


def test_sizes_of_symbolic_dimensions_are_fixed(model: onnx.ModelProto, feed: dict[str, Any]) -> None:
    options, theirs = weft.SessionOptions(), ort.SessionOptions()
    for each in (options, theirs):
        each.add_free_dimension_override_by_name("batch", 5)
    a = weft.InferenceSession(model.SerializeToString(), options)
    b = ort.InferenceSession(model.SerializeToString(), theirs)
    assert facts(a.get_inputs()) == facts(b.get_inputs())
    same(a.run(None, feed), b.run(None, feed))
    assert a.get_session_options() is options


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", list(weft.GraphOptimizationLevel))
def test_levels_of_optimization(
    model: onnx.ModelProto, theirs: Any, feed: dict[str, Any], level: weft.GraphOptimizationLevel
) -> None:
    assert {k: int(v) for k, v in ort.GraphOptimizationLevel.__members__.items()}[level.name] == level
    options = weft.SessionOptions()
    options.graph_optimization_level = level
    same(weft.InferenceSession(model.SerializeToString(), options).run(None, feed), theirs.run(None, feed))


def test_threads_of_a_session(model: onnx.ModelProto) -> None:
    def threads(wanted: int) -> int:
        options = weft.SessionOptions()
        options.intra_op_num_threads = wanted
        return weft.InferenceSession(model.SerializeToString(), options)._model.threads

    assert [threads(1), threads(0), threads(1000)] == [1, _rt.cpus(), _rt.cpus()]


def refusal(*args: Any, **more: Any) -> str:
    with pytest.raises(weft.InputError) as caught:
        weft.InferenceSession(*args, **more)
    return str(caught.value)


def test_messages_for_providers() -> None:
    assert refusal(b"", providers=["CUDAExecutionProvider"]) == (
        "the provider 'CUDAExecutionProvider' can't be honoured: models run on CPUExecutionProvider alone\n"
        "  hint: add 'CPUExecutionProvider' to the list"
    )
    assert refusal(b"", providers=["A", ("B", {"device_id": 0})]).startswith("the providers 'A', 'B' can't be honoured")
    assert refusal(b"", providers="CUDAExecutionProvider").startswith("the provider 'CUDAExecutionProvider' can't be")
    assert refusal(b"", providers=[7]) == (
        "the provider 7 has no name\n  hint: give a name, such as 'CPUExecutionProvider', or (name, options)"
    )
    assert "give one for each" in refusal(b"", providers=["CPUExecutionProvider"], provider_options=[{}, {}])
    assert "there are no providers" in refusal(b"", provider_options=[{}])
    assert "give a list" in refusal(b"", providers=7)
    assert "they are ONNX Runtime's own" in refusal(b"", disabled_optimizers=["ConstantFolding"])


FALLBACK = "the provider 'CUDAExecutionProvider' can't be used here: the model runs on CPUExecutionProvider"


@pytest.mark.parametrize(
    ("providers", "options", "warned"),
    [
        ("CPUExecutionProvider", None, None),
        (["CPUExecutionProvider"], [{}], None),
        ([("CPUExecutionProvider", {})], None, None),
        ([], None, None),
        (["CUDAExecutionProvider", "CPUExecutionProvider"], None, FALLBACK),
        ([("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"], None, FALLBACK),
        (("CUDAExecutionProvider", "CPUExecutionProvider"), [{"device_id": 0}, {}], FALLBACK),
        (
            ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
            None,
            "the providers 'TensorrtExecutionProvider', 'CUDAExecutionProvider' can't be used here: "
            "the model runs on CPUExecutionProvider",
        ),
        (
            [("CPUExecutionProvider", {"use_arena": "1"})],
            None,
            "{'use_arena': '1'} for CPUExecutionProvider has no effect: it has no options here",
        ),
    ],
)
def test_lists_of_providers_fall_back_to_the_processor(
    model: onnx.ModelProto,
    ours: weft.InferenceSession,
    feed: dict[str, Any],
    providers: Any,
    options: Any,
    warned: str | None,
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = weft.InferenceSession(model.SerializeToString(), providers=providers, provider_options=options)
        session.set_providers(providers, options)
    assert [str(w.message) for w in caught] == [warned] * 2 * (warned is not None)
    assert {w.filename for w in caught} <= {__file__}  # it is the caller's line that is shown
    assert session.get_providers() == ["CPUExecutionProvider"]
    same(session.run(None, feed), ours.run(None, feed))


def test_names_of_the_module(recwarn: pytest.WarningsRecorder) -> None:
    assert weft.get_device() == ort.get_device() == "CPU"
    for severity in (2, 3, 4):
        weft.set_default_logger_severity(severity)
    assert len(recwarn) == 0
    with pytest.warns(UserWarning, match=r"^severity = 0 has no effect: there is no log, and errors are exceptions$"):
        weft.set_default_logger_severity(0)
    with pytest.raises(weft.InputError, match="severity is 5\n  hint: give a whole number from 0 to 4"):
        weft.set_default_logger_severity(5)


def test_options_of_another_kind_are_refused() -> None:
    assert refusal(b"", ort.SessionOptions()) == (
        "sess_options is a onnxruntime.capi.onnxruntime_pybind11_state.SessionOptions, whose settings can't all be read\n"
        "  hint: make a weft.SessionOptions() and set the same there"
    )


def test_a_saved_model_refuses_what_only_a_compilation_can_do(model: onnx.ModelProto, tmp_path: Path) -> None:
    weft.compile(model).save(tmp_path / "m.weft")
    options = weft.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 5)
    assert "sizes for batch can't be honoured: the model is compiled already" in refusal(tmp_path / "m.weft", options)
    options = weft.SessionOptions()
    options.graph_optimization_level = weft.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert "graph_optimization_level can't be honoured" in refusal(tmp_path / "m.weft", options)


def message(session: weft.InferenceSession, *args: Any) -> str:
    with pytest.raises(weft.InputError) as caught:
        session.run(*args)
    return str(caught.value)


def test_messages_for_wrong_calls(ours: weft.InferenceSession, feed: dict[str, Any]) -> None:
    x = feed["x"]
    assert message(ours, ["y"], feed).startswith("there is no output 'y'")
    assert message(ours, None, {"x": x}).startswith("missing inputs: h, c")
    assert message(ours, None, {**feed, "y": x}).startswith("there is no input 'y'")
    assert message(ours, None, {**feed, "x": x.astype(np.float64)}).startswith("input 'x' has dtype float64")
    assert message(ours, None, {**feed, "x": x[:2]}).startswith("input 'h' has shape (5, 16)")
    assert "make a weft.RunOptions()" in message(ours, None, feed, ort.RunOptions())
    binding = ours.io_binding()
    wrong: list[tuple[Callable[[], None], str]] = [
        (lambda: binding.bind_output("z"), "there is no output 'z'"),
        (lambda: binding.bind_cpu_input("z", x), "there is no input 'z'"),
        (lambda: binding.bind_output("h_next", "cuda"), "there is no device 'cuda' 0"),
        (lambda: binding.bind_output("h_next", buffer_ptr=64), "has no type or shape"),
    ]
    for bind_wrongly, text in wrong:
        with pytest.raises(weft.InputError, match=text):
            bind_wrongly()


def test_a_terminated_call_raises(ours: weft.InferenceSession, feed: dict[str, Any]) -> None:
    options = weft.RunOptions()
    ours.run(None, feed, options)
    options.terminate = True
    with pytest.raises(weft.RuntimeFailure, match="the call was stopped by its caller"):
        ours.run(None, feed, options)
    options.terminate = False
    ours.run(None, feed, options)
