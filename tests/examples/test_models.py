"""The models that tests and the demo build are valid, deterministic, well scaled and named as promised."""

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.models import BUILDERS, VOCABULARY, lstm_step, mlp, random_inputs, tiny_bert_layer, tiny_gpt2_decode

from weft.cli.demo_models import resnet18


def run(model: onnx.ModelProto, **sizes: int) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, random_inputs(model, sizes))
    return results


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_builder_is_deterministic_and_well_scaled(build: Callable[[], onnx.ModelProto]) -> None:
    model = build()
    assert model.SerializeToString() == build().SerializeToString()
    for result in run(model):
        assert 0.01 < result.std() < 10


def test_symbolic_batch() -> None:
    model = mlp("n")
    assert [r.shape for r in run(model, n=1)] == [(1, 10)]
    assert [r.shape for r in run(model, n=7)] == [(7, 10)]


def test_names_and_shapes() -> None:
    gpt2 = tiny_gpt2_decode(layers=2)
    assert [i.name for i in gpt2.graph.input] == ["ids", "pos", "past_k0", "past_v0", "past_k1", "past_v1"]
    assert [o.name for o in gpt2.graph.output] == ["logits", "k0", "v0", "k1", "v1"]
    assert [r.shape for r in run(gpt2)] == [(1, VOCABULARY)] + [(1, 2, 1, 8)] * 4
    assert [o.name for o in lstm_step().graph.output] == ["h_next", "c_next"]


def test_masked_tokens_do_not_matter() -> None:
    model = tiny_bert_layer(tokens=4)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = random_inputs(model)
    inputs["attention_mask"] = np.array([[1, 1, 1, 0]])
    (before,) = session.run(None, inputs)
    inputs["x"] = inputs["x"].copy()
    inputs["x"][0, 3] += 1.0
    (after,) = session.run(None, inputs)
    np.testing.assert_array_equal(before[0, :3], after[0, :3])
    assert not np.array_equal(before[0, 3], after[0, 3])


def test_resnet18_is_the_architecture_and_well_scaled() -> None:
    model = resnet18()
    operators = [node.op_type for node in model.graph.node]
    counts = {name: operators.count(name) for name in set(operators)}
    assert counts == {
        "Conv": 20,
        "BatchNormalization": 20,
        "Relu": 17,
        "Add": 8,
        "MaxPool": 1,
        "GlobalAveragePool": 1,
        "Flatten": 1,
        "Gemm": 1,
    }
    trained = {w.name: int(np.prod(w.dims)) for w in model.graph.initializer}
    statistics = [n.input[3:] for n in model.graph.node if n.op_type == "BatchNormalization"]
    assert sum(trained.values()) - sum(trained[k] for pair in statistics for k in pair) == 11_689_512
    (result,) = run(model)
    assert result.shape == (1, 1000)
    assert 0.3 < result.std() < 3
