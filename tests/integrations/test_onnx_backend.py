"""`weft.backend`: the standard interface, on cases of ONNX's own that are compiled and run."""

from __future__ import annotations

import importlib
import re
import unittest
import warnings
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.backend.base import Backend
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.case.test_case import TestCase
from tests import models
from tests.export.saved_backend import Backend as SavedBackend
from tests.frontends.onnx.test_onnx_cases import NOT_SUPPORTED, arrays, tensors

import weft
import weft.backend
from weft.graph import Graph
from weft.integrations.onnx_backend import WeftRep
from weft.runtime.model import Model

SLICE: Final = {
    "add": "Add", "argmax": "ArgMax", "cast": "Cast", "clip": "Clip", "concat": "Concat",
    "conv": "Conv", "gather": "Gather", "gelu": "Gelu", "gemm": "Gemm", "if_": "If", "layernormalization": "LayerNormalization",
    "loop": "Loop", "lstm": "LSTM", "matmul": "MatMul", "nonzero": "NonZero", "pad": "Pad", "reshape": "Reshape",
    "slice": "Slice", "softmax": "Softmax", "split": "Split", "topk": "TopK", "transpose": "Transpose", "where": "Where",
    "sequence_map": "SequenceMap", "optionalgetelement": "OptionalGetElement", "identity": "Identity",
    "cumsum": "CumSum", "reducemean": "ReduceMean", "resize": "Resize", "squeeze": "Squeeze", "trilu": "Trilu",
}  # fmt: skip
"""Modules of ONNX's cases and the operators in them, of which the default run takes a few cases each."""

CASES_EACH: Final = 2

REFUSED: Final = {
    **NOT_SUPPORTED,
    "loops whose count is computed from floats": r"test_range_\w+_expanded",
    "sequences of scalars, whose elements ONNX's own comparison takes for sequences": r"test_loop16_seq_none$",
    "errors of float32 that are expected where the exact result is zero": r"test_dft_inverse$",
}
"""Cases that are refused, by what their names say, and why."""

ATTENTION: Final = "test_attention_4d_causal_fp16_expanded"
INVERSE: Final = ("test_dft_inverse", "test_dft_inverse_opset19")
ROUNDED_OTHERWISE: Final = (ATTENTION, *INVERSE)
"""Cases whose expected results are further from the exact ones than what is allowed between the two: tests hold Weft to those."""

DATA: Final = Path(onnx.__file__).parent / "backend" / "test" / "data"
CONVERTED: Final = ["test_BatchNorm2d_eval", "test_Conv2d_depthwise_strided", "test_ConvTranspose2d", "test_Softmax"]


class CountingRep(WeftRep):
    """Notes the models that are compiled when they are run."""

    compiled_late: ClassVar[list[str]] = []
    is_run = False

    def _compiled(self, graph: Graph) -> Model:
        if self.is_run:
            self.compiled_late.append(graph.name)
        return super()._compiled(graph)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns the outputs."""
        self.is_run = True
        return super().run(inputs, **kwargs)


class CountingBackend(weft.backend.Backend):
    """Runs models, and notes those that are compiled then."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> WeftRep:
        """Compiles *model*."""
        return CountingRep(model, None, {})


@cache
def cases(module: str, op: str) -> list[TestCase]:
    """The first cases of an operator that are not refused, without those of functions written out."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _ = importlib.import_module(f"onnx.backend.test.case.node.{module}")
    refused = re.compile("|".join([*NOT_SUPPORTED.values(), "_expanded"]))
    found = [c for c in node_cases._NodeTestCases if op_of(c) == op and not refused.search(c.name)]
    return found[:CASES_EACH]


def op_of(case: TestCase) -> str:
    assert case.model is not None
    return str(case.model.graph.node[-1].op_type)


def check(rep: Any, inputs: list[Any], outputs: list[Any], rtol: float, atol: float) -> None:
    made = rep.run(inputs)
    assert len(made) == len(outputs)
    flat = [[a for value in values for _, a in tensors("", value)] for values in (made, outputs)]
    for a, b in zip(*flat, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol, max(atol, 1e-6))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("module", "op"), SLICE.items())
def test_cases_of_operators(module: str, op: str) -> None:
    found = cases(module, op)
    assert found
    for case in found:
        assert case.model is not None
        assert case.data_sets
        rep = CountingBackend.prepare(case.model)
        for inputs, outputs in case.data_sets:
            check(rep, arrays(inputs), arrays(outputs), case.rtol, case.atol)
    assert not CountingRep.compiled_late


def case_called(name: str) -> TestCase:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        every = node_cases.collect_testcases(
            None
        )  # asked for one operator, it would never again have others in this process
    (case,) = [c for c in every if c.name == name]
    return case


@pytest.mark.parametrize("name", INVERSE)
def test_an_inverse_transform_is_what_it_is_exactly(name: str) -> None:
    """Where terms cancel, exactly to zero, the reference's results are off by twice the case's own tolerance."""
    case = case_called(name)
    assert case.model is not None
    assert case.data_sets
    given, expected = arrays(case.data_sets[0][0]), arrays(case.data_sets[0][1])[0]
    exact = np.fft.ifft(given[0].astype(np.float64) @ [1, 1j], axis=1)
    wanted = np.stack([exact.real, exact.imag], axis=-1)
    made = weft.backend.prepare(case.model).run(given)[0]
    np.testing.assert_allclose(made, wanted, rtol=case.rtol, atol=case.atol)
    assert not np.allclose(expected, wanted, rtol=case.rtol, atol=case.atol)


def test_attention_of_16_bits_is_nearer_to_the_exact_results_than_the_reference() -> None:
    case = case_called(ATTENTION)
    assert case.model is not None
    assert case.data_sets
    (q, k, v, *rest), (expected, *_) = map(arrays, case.data_sets[0])
    made = weft.backend.prepare(case.model).run([q, k, v, *rest])[0]
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    parts = np.exp(scores) * np.tril(np.ones(scores.shape[-2:]))
    exact = parts @ v.astype(np.float64) / parts.sum(-1, keepdims=True)

    def error(y: Any) -> float:
        return float(np.max(np.abs(y.astype(np.float64) - exact) / np.abs(exact)))

    assert error(made) <= error(expected) < 1e-3


@pytest.mark.parametrize("name", CONVERTED)
def test_models_from_files(name: str) -> None:
    """Models as an exporter wrote them years ago, with weights among the inputs."""
    folder = DATA / "pytorch-converted" / name
    model = onnx.load(folder / "model.onnx")

    def stored(side: str) -> list[Any]:
        paths = sorted((folder / "test_data_set_0").glob(f"{side}_*.pb"))
        return [numpy_helper.to_array(TensorProto.FromString(p.read_bytes())) for p in paths]

    check(weft.backend.prepare(model), stored("input"), stored("output"), 1e-3, 1e-7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("order", [0, 1])
def test_the_places_of_maxima(stride: int, order: int) -> None:
    """A maximum of a window and its place are two results of one reduction."""
    x = np.random.default_rng(0).permutation(2 * 13 * 13).reshape(1, 2, 13, 13).astype(np.float32)
    node = onnx.helper.make_node(
        "MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], strides=[stride, stride], storage_order=order
    )
    y, i = weft.backend.run_node(node, [x])
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::stride, ::stride]
    np.testing.assert_array_equal(y, windows.max((-2, -1)))
    stored = x if order == 0 else x.transpose(0, 1, 3, 2)  # in whose order the places count
    np.testing.assert_array_equal(stored.reshape(-1)[i], y)


LEAST: Final = {"NodeModel": 1400, "SimpleModel": 15, "PyTorchConvertedModel": 80, "PyTorchOperatorModel": 35}
"""How many cases of each kind are run at least: ONNX's runner skips those with operators that a backend lacks."""


@pytest.mark.slow  # some minutes: two thousand models are compiled
@pytest.mark.parametrize("kind", LEAST)
def test_by_the_official_runner(kind: str) -> None:
    """Every case that is not refused, run and compared by ONNX's own code; operators that Weft lacks are refused by name.

    No model is compiled when it is run.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        runner = onnx.backend.test.BackendTest(CountingBackend, __name__)
        suite = unittest.TestSuite()
        loader = unittest.TestLoader()
        refused = re.compile(
            "|".join([*REFUSED.values(), *[f"{x}$" for x in ROUNDED_OTHERWISE]]).replace("$", "(_cpu)?$")
        )
        for test in loader.loadTestsFromTestCase(runner.test_cases[f"OnnxBackend{kind}Test"]):
            if isinstance(test, unittest.TestCase) and test.id().endswith("_cpu") and not refused.search(test.id()):
                suite.addTest(test)
        result = unittest.TestResult()
        suite.run(result)
    assert result.testsRun - len(result.skipped) - len(result.errors) >= LEAST[kind]
    told = [
        (test.id(), text) for test, text in [*result.failures, *result.errors] if "UnsupportedOperators" not in text
    ]
    wrong = [f"{name}: {text.splitlines()[-1]}" for name, text in told]
    assert not wrong, "\n".join(wrong)
    assert not CountingRep.compiled_late


def of_two(op: str, *dims: str) -> ModelProto:
    """``y`` is ``x`` of sizes *dims* by an operator that the input ``n`` tells a shape, or axes."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    n = helper.make_tensor_value_info("n", TensorProto.INT64, ["m"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op, ["x", "n"], ["y"])], op, [x, n], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_shapes_that_are_given_are_not_compiled_for() -> None:
    model = of_two("Reshape", "k")
    n = helper.make_tensor_value_info("n", TensorProto.INT64, [2])
    model.graph.input[1].CopyFrom(n)
    rep: Any = weft.backend.prepare(model)
    x = np.arange(12, dtype=np.float32)
    for shape in ((3, 4), (2, 6), (3, 4)):
        (y,) = rep.run([x, np.array(shape)])
        np.testing.assert_array_equal(y, x.reshape(shape))


def test_axes_that_are_given_are_not_compiled_for() -> None:
    rep: Any = CountingBackend.prepare(of_two("ReduceSum", *"abcde"))
    t = np.arange(96, dtype=np.float32).reshape(2, 3, 2, 4, 2)
    for axes in ((0,), (1, 3), (-5, 2, 4), (0, 1, 2, 3, 4)):
        (y,) = rep.run([t, np.array(axes)])
        np.testing.assert_array_equal(y, t.sum(axes, keepdims=True))
    assert not CountingRep.compiled_late


def test_a_scalar_of_numpy_is_an_axis() -> None:
    x = np.arange(12, dtype=np.float32)
    cumsum = helper.make_node("CumSum", ["x", "axis"], ["y"])
    sums = weft.backend.run_node(cumsum, [x, np.int32(0)], opset_version=17)
    np.testing.assert_array_equal(sums[0], np.cumsum(x))


def test_what_a_sequence_holds_is_not_compiled_for() -> None:
    insert = helper.make_node("SequenceInsert", ["s", "t", "p"], ["y"])
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    infos = [
        helper.make_value_info("s", helper.make_sequence_type_proto(kind)),
        helper.make_tensor_value_info("t", TensorProto.FLOAT, [3]),
        helper.make_tensor_value_info("p", TensorProto.INT64, []),
    ]
    y = helper.make_value_info("y", helper.make_sequence_type_proto(kind))
    graph = helper.make_graph([insert], "insert", infos, [y])
    rep: Any = CountingBackend.prepare(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )
    a, b, t = (np.full(n, n, np.float32) for n in (2, 4, 3))
    for place in (0, 1, 0):
        (made,) = rep.run([[a, b], t, np.array(place)])
        assert [len(v) for v in made] == [len(v) for v in [*[a, b][:place], t, *[a, b][place:]]]
    assert not CountingRep.compiled_late


def test_inputs_and_outputs_by_place_and_by_name() -> None:
    model = models.lstm_step()
    feed = models.random_inputs(model)
    rep = weft.backend.prepare(model, threads=1)
    by_place: Any
    by_place, by_name = rep.run(list(feed.values())), rep.run(feed)
    assert by_place._fields == ("h_next", "c_next")
    np.testing.assert_array_equal(by_place["c_next"], by_name[1])
    once = weft.backend.run_model(model, feed)
    np.testing.assert_array_equal(once[0], by_place[0])


def test_one_node() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    for inputs in ([a, b], {"b": b, "a": a}):
        np.testing.assert_array_equal(weft.backend.run_node(node, inputs)[0], a @ b)
    made = weft.backend.run_node(node, [a, b], outputs_info=[(np.dtype(np.float32), (2, 4))], opset_version=13)
    np.testing.assert_array_equal(made[0], a @ b)
    with pytest.raises(weft.ModelError, match=r"MatMul makes float32\[2, 4\], not float64\[4\]"):
        weft.backend.run_node(node, [a, b], outputs_info=[(np.dtype(np.float64), (4,))])


def test_one_node_with_absent_and_deciding_inputs() -> None:
    clip = helper.make_node("Clip", ["x", "", "high"], ["y"])
    x = np.arange(5, dtype=np.float32)
    for inputs in ([x, None, np.float32(2)], [x, np.float32(2)]):
        np.testing.assert_array_equal(weft.backend.run_node(clip, inputs)[0], np.minimum(x, 2))
    reshape = helper.make_node("Reshape", ["x", "n"], ["y"])
    assert weft.backend.run_node(reshape, [x, np.array([5, 1])])[0].shape == (5, 1)


def test_devices() -> None:
    assert weft.backend.supports_device("CPU")
    assert weft.backend.supports_device("CPU:0")
    assert not weft.backend.supports_device("CUDA")
    with pytest.raises(weft.InputError, match="there is no device 'CUDA'"):
        weft.backend.prepare(models.lstm_step(), "CUDA")


def test_it_is_the_standard_interface() -> None:
    assert issubclass(weft.backend.Backend, Backend)
    assert weft.backend is importlib.import_module("weft.backend")


def test_what_can_not_be_compiled_is_refused_at_once() -> None:
    model = models.lstm_step()
    assert weft.backend.is_compatible(model)
    assert weft.backend.is_compatible(of_two("Squeeze", "k", "l"))
    model.graph.node[0].op_type = "Nonesuch"
    assert not weft.backend.is_compatible(model)
    with pytest.raises(weft.UnsupportedOperators, match="Nonesuch"):
        weft.backend.prepare(model)


def test_arguments_that_do_not_fit_are_refused() -> None:
    model = models.lstm_step()
    with pytest.raises(weft.InputError, match="the argument 'batch_size' can't be honoured"):
        weft.backend.prepare(model, batch_size=3)
    rep = weft.backend.prepare(model, rtol=1e-3)
    feed = models.random_inputs(model)
    with pytest.raises(weft.InputError, match="the argument 'profile' can't be honoured"):
        rep.run(feed, profile=True)
    with pytest.raises(weft.InputError, match="2 inputs were given, and the model has 3\n  hint: give x, h, c"):
        rep.run([feed["x"], feed["h"]])
    with pytest.raises(weft.InputError, match="missing inputs: c"):
        rep.run({"x": feed["x"], "h": feed["h"]})
    with pytest.raises(weft.InputError, match="1 inputs were given, and the node has 2: a, b"):
        weft.backend.run_node(helper.make_node("Add", ["a", "b"], ["y"]), [feed["x"]])


SAVED: Final = {
    "cast": "Cast",
    "loop": "Loop",
    "nonzero": "NonZero",
    "string_split": "StringSplit",
    "sequenceinsert": "SequenceInsert",
}


@pytest.mark.parametrize(("module", "op"), SAVED.items())
def test_cases_are_run_without_the_compiler(module: str, op: str) -> None:
    (case, *_) = cases(module, op)
    assert case.model is not None
    assert case.data_sets
    for inputs, outputs in case.data_sets:
        made = SavedBackend.prepare(case.model).run(arrays(inputs))
        flat = [[a for value in values for _, a in tensors("", value)] for values in (made, arrays(outputs))]
        for a, b in zip(*flat, strict=True):
            assert repr(a.tolist()) == repr(b.tolist())  # NaN among them
