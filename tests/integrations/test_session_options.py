"""Options of sessions and calls: each of ONNX Runtime's is honoured, warned of, or refused with a reason."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from tests.frontends.onnx.nodes import model_of, node

import weft
import weft.capi

# What a program may set, and what it changes here: nothing that is asked for is left undone.
HONOURED: list[tuple[str, Any]] = [
    ("intra_op_num_threads", 0),
    ("intra_op_num_threads", 3),
    ("inter_op_num_threads", 1),
    ("graph_optimization_level", weft.GraphOptimizationLevel.ORT_DISABLE_ALL),
    ("graph_optimization_level", 99),
    ("execution_mode", weft.ExecutionMode.ORT_SEQUENTIAL),
    ("use_deterministic_compute", True),
    ("use_per_session_threads", True),
    ("enable_cpu_mem_arena", True),
    ("enable_mem_pattern", True),
    ("enable_mem_reuse", True),
    ("enable_profiling", False),
    ("enable_profiling", True),
    ("profile_file_prefix", "p"),
    ("optimized_model_filepath", ""),
    ("log_severity_level", 3),
    ("log_verbosity_level", 0),
    ("logid", "mine"),
]

REFUSED: list[tuple[str, Any, str]] = [
    ("intra_op_num_threads", -1, "intra_op_num_threads is -1\n  hint: give a whole number, 0 or more"),
    ("intra_op_num_threads", "2", "intra_op_num_threads is '2'\n  hint: give a whole number, 0 or more"),
    (
        "graph_optimization_level",
        7,
        "graph_optimization_level is 7\n  hint: use one of GraphOptimizationLevel.ORT_DISABLE_ALL, "
        "GraphOptimizationLevel.ORT_ENABLE_BASIC, GraphOptimizationLevel.ORT_ENABLE_EXTENDED, "
        "GraphOptimizationLevel.ORT_ENABLE_LAYOUT, GraphOptimizationLevel.ORT_ENABLE_ALL",
    ),
    (
        "use_per_session_threads",
        False,
        "use_per_session_threads = False can't be honoured: each session has its own number of threads, out of one pool\n"
        "  hint: leave it True",
    ),
    (
        "optimized_model_filepath",
        "o.onnx",
        "optimized_model_filepath = 'o.onnx' can't be honoured: there is no optimized ONNX model to write\n"
        "  hint: use weft.compile(...).save(FILE) to keep code",
    ),
]

SEQUENTIAL = "a model's kernels run one after another, each on intra_op_num_threads"
PLANNED = "the memory of a call is planned when the model is compiled"
NO_LOG = "there is no log, and errors are exceptions"

# What steers ONNX Runtime's own machinery, and changes no result: accepted with a warning.
NO_EFFECT: list[tuple[str, Any, str]] = [
    ("inter_op_num_threads", 2, f"inter_op_num_threads = 2 has no effect: {SEQUENTIAL}"),
    (
        "execution_mode",
        weft.ExecutionMode.ORT_PARALLEL,
        f"execution_mode = <ExecutionMode.ORT_PARALLEL: 1> has no effect: {SEQUENTIAL}",
    ),
    ("enable_cpu_mem_arena", False, f"enable_cpu_mem_arena = False has no effect: {PLANNED}"),
    ("enable_mem_pattern", False, f"enable_mem_pattern = False has no effect: {PLANNED}"),
    ("enable_mem_reuse", False, f"enable_mem_reuse = False has no effect: {PLANNED}"),
    ("log_severity_level", 0, f"log_severity_level = 0 has no effect: {NO_LOG}"),
    ("log_verbosity_level", 1, f"log_verbosity_level = 1 has no effect: {NO_LOG}"),
]


def test_each_of_their_options_is_known_with_their_default() -> None:
    """Those that do without a default of theirs are refused by name."""
    theirs, unknown = ort.SessionOptions(), {"execution_order"}
    for name in dir(theirs):
        value = getattr(theirs, name)
        if name.startswith("_") or callable(value) or name in unknown:
            continue
        ours = getattr(weft.SessionOptions(), name)
        assert ours == (int(value) if name in ("execution_mode", "graph_optimization_level") else value), name


@pytest.mark.parametrize(("name", "value"), HONOURED)
def test_honoured(name: str, value: Any) -> None:
    options = weft.SessionOptions()
    setattr(options, name, value)
    assert getattr(options, name) == value


@pytest.mark.parametrize(("name", "value", "text"), REFUSED)
def test_refused(name: str, value: Any, text: str) -> None:
    options = weft.SessionOptions()
    with pytest.raises(weft.InputError) as caught:
        setattr(options, name, value)
    assert str(caught.value) == text


@pytest.mark.parametrize(("name", "value", "text"), NO_EFFECT)
def test_no_effect(name: str, value: Any, text: str) -> None:
    options = weft.SessionOptions()
    with pytest.warns(UserWarning, match="has no effect") as caught:
        setattr(options, name, value)
    assert [(str(w.message), w.filename) for w in caught] == [(text, __file__)]
    assert getattr(options, name) == value


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("inter_op_num_threads", -1, "inter_op_num_threads is -1\n  hint: give a whole number, 0 or more"),
        (
            "execution_mode",
            2,
            "execution_mode is 2\n  hint: use one of ExecutionMode.ORT_SEQUENTIAL, ExecutionMode.ORT_PARALLEL",
        ),
        ("enable_mem_pattern", "no", "enable_mem_pattern is 'no'\n  hint: give True or False"),
        ("log_severity_level", 9, "log_severity_level is 9\n  hint: give a whole number from -1 to 4"),
    ],
)
def test_values_that_there_are_not(name: str, value: Any, text: str) -> None:
    with pytest.raises(weft.InputError) as caught:
        setattr(weft.SessionOptions(), name, value)
    assert str(caught.value) == text


def test_an_entry_about_memory_has_no_effect() -> None:
    with pytest.warns(UserWarning, match="has no effect") as caught:
        weft.RunOptions().add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    text = f"the entry 'memory.enable_memory_arena_shrinkage' has no effect: {PLANNED}"
    assert [(str(w.message), w.filename) for w in caught] == [(text, __file__)]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(weft.InputError, match="SessionOptions has no option 'execution_order' that could be honoured"):
        weft.SessionOptions().execution_order = 1
    with pytest.raises(weft.InputError, match="RunOptions has no option 'training_mode' that could be honoured"):
        weft.RunOptions().training_mode = True


def test_what_sets_nothing_is_refused() -> None:
    options, run = weft.SessionOptions(), weft.RunOptions()
    cases: list[tuple[Callable[[], object], str]] = [
        (
            lambda: options.add_session_config_entry("session.dynamic_block_base", "4"),
            "a session has no such setting",
        ),
        (lambda: options.get_session_config_entry("a"), "there is no entry 'a'"),
        (lambda: options.add_free_dimension_override_by_denotation("DATA_BATCH", 1), "denotations are not read"),
        (lambda: options.add_free_dimension_override_by_name("batch", -1), "the size of 'batch' is -1"),
        (lambda: options.register_custom_ops_library("ops.so"), "compiled for ONNX Runtime"),
        (lambda: options.add_initializer("w", None), "weights come with the model"),
        (lambda: options.add_external_initializers(["w"], []), "weights come with the model"),
        (lambda: run.add_run_config_entry("a", "b"), "a call has no such setting"),
        (lambda: run.add_active_adapter("a"), "weights come with the model"),
        (lambda: setattr(run, "only_execute_path_to_fetches", True), "compiled for all of its outputs"),
    ]
    for refused, text in cases:
        with pytest.raises(weft.InputError, match=text):
            refused()
    options.add_session_config_entry("session.dynamic_block_base", "0")
    assert options.get_session_config_entry("session.dynamic_block_base") == "0"


@pytest.mark.parametrize("key", ["session.set_denormal_as_zero", "session.intra_op.allow_spinning"])
def test_switches_of_a_session(key: str) -> None:
    options = weft.SessionOptions()
    assert options.get_session_config_entry(key) == ort_default(key)
    for value in ("0", "1"):
        options.add_session_config_entry(key, value)
        assert options.get_session_config_entry(key) == value
    with pytest.raises(weft.InputError) as told:
        options.add_session_config_entry(key, "yes")
    assert str(told.value) == f'the entry {key!r} is \'yes\'\n  hint: give "0" or "1"'


def ort_default(key: str) -> str:
    return "1" if key.endswith("allow_spinning") else "0"


def test_repr_shows_what_was_set() -> None:
    options = weft.SessionOptions()
    assert repr(options) == "SessionOptions()"
    options.intra_op_num_threads = 2
    options.add_free_dimension_override_by_name("n", 3)
    assert repr(options) == "SessionOptions(intra_op_num_threads=2) with {'n': 3}"


def test_a_session_writes_its_calls_as_a_trace(tmp_path: Path) -> None:
    options = weft.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "calls")
    session = weft.InferenceSession(doubling(), options)
    for _ in range(3):
        session.run(None, {"x": np.ones(2, np.float32)})
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    assert [e["name"] for e in events] == ["model_loading", "model_run", "model_run", "model_run"]
    assert all(e["ph"] == "X" and e["ts"] >= 0 and e["dur"] >= 0 for e in events)
    assert session.get_profiling_start_time_ns() > 0
    assert weft.InferenceSession(doubling()).end_profiling() == ""


def test_bindings_vectors_and_pickles(tmp_path: Path) -> None:
    path = tmp_path / "doubling.onnx"
    path.write_bytes(doubling())
    session = pickle.loads(pickle.dumps(weft.InferenceSession(str(path))))
    binding = weft.IOBinding(session)
    binding.bind_cpu_input("x", np.array([1, 2], np.float32))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert [v.numpy().tolist() for v in binding.get_outputs_as_ortvaluevector()] == [[2, 4]]
    feeds, fetches = [weft.OrtValue.ortvalue_from_numpy(np.array([3, 4], np.float32))], weft.OrtValueVector()
    session.run_with_ortvaluevector(None, ["x"], feeds, ["y"], fetches)
    assert [v.numpy().tolist() for v in fetches] == [[6, 8]]
    with pytest.raises(weft.capi.InvalidArgument, match="1 values were given for 2 names"):
        session.run_with_ortvaluevector(None, ["x", "z"], feeds, ["y"], fetches)


def test_names_of_errors_and_of_what_there_is() -> None:
    assert set(weft.capi.__all__) >= {
        "Fail",
        "InvalidArgument",
        "InvalidProtobuf",
        "NotImplemented",
        "RuntimeException",
    }
    with pytest.raises(weft.capi.InvalidArgument):
        weft.InferenceSession(doubling()).run(None, {"x": np.ones(3, np.float32)})
    assert weft.get_all_providers() == weft.get_available_providers()
    assert not weft.SessionOptions().has_providers()
    weft.set_seed(7)


def doubling() -> bytes:
    """Returns a model that doubles a vector of two."""
    made = model_of([node("Add", "x x")], {"x": (1, [2])})
    return bytes(made.SerializeToString())
