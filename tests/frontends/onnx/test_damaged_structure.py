"""Damaged models with functions, nested graphs, and tensors of every kind: an error of Weft's own, or a graph; never a bug."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.driver.budgets.bombs import model_of, tensor
from tests.frontends.onnx.test_expansion import call, doubling, function, loops, nested
from tests.frontends.onnx.test_fields import damage
from tests.frontends.onnx.test_read import external
from tests.models import BUILDERS

from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import WeftError

node = helper.make_node
MOST_SECONDS = 20


def with_attributes() -> ModelProto:
    """Returns a model whose function's nodes take the attributes of its caller, with a sparse weight and typed numbers."""
    scaled = function("scaled", [node("Elu", ["x"], ["t"]), node("Reshape", ["t", "s"], ["y"])])
    scaled.node[0].attribute.add(name="alpha", ref_attr_name="alpha", type=1)
    scaled.node.insert(0, node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([5, 4]))))
    scaled.attribute.append("alpha")
    made = call("scaled", "v0", "v1")
    made.attribute.append(helper.make_attribute("alpha", 0.5))
    nodes = [
        made,
        node("Transpose", ["v1"], ["v2"], perm=[1, 0]),
        node("Slice", ["v2", "b", "e"], ["v3"]),
        node("Pad", ["v3", "pads"], ["v4"]),
        node("Gather", ["v4", "b"], ["v5"], axis=-1),
    ]
    model = model_of(nodes, "v5", functions=[scaled], constants={"pads": np.array([0, 1, 2, 0])})
    model.graph.initializer.append(helper.make_tensor("b", TensorProto.INT64, [1], [1]))
    model.graph.initializer.append(helper.make_tensor("e", TensorProto.INT64, [1], [3]))
    return model


def seeds(folder: Path) -> list[ModelProto]:
    """Returns the models that are damaged."""
    inner = helper.make_graph([node("Neg", ["v0"], ["z"])], "inner", [], [tensor("z", [4, 5])])
    branch = node("If", ["c"], ["v1"], then_branch=nested(inner, 3), else_branch=nested(inner, 1))
    loop = node("Loop", ["trips", "", "v0"], ["v1"], body=loops(1))
    outside = ModelProto.FromString(external(folder).read_bytes())
    made = [
        doubling(5),
        with_attributes(),
        outside,
        model_of([branch], "v1", constants={"c": np.array(True)}),
        model_of([loop], "v1", constants={"trips": np.int64(3)}),
    ]
    return made + [BUILDERS[name]() for name in ("mlp", "conv_bn_relu", "lstm_step", "tiny_bert_layer")]


def import_damaged(folder: Path, seed: int, count: int) -> tuple[int, list[str]]:
    """Damages models and imports them as files; returns how many are refused, and what must not be."""
    rng, models = random.Random(seed), seeds(folder)
    refused, wrong = 0, list[str]()
    for k in range(count):
        model = ModelProto.FromString(rng.choice(models).SerializeToString())
        for _ in range(rng.choice([1, 1, 2, 4])):
            damage(rng, model)
        path, start = folder / "damaged.onnx", time.process_time()
        path.write_bytes(model.SerializeToString())
        try:
            from_onnx(path)
        except WeftError as error:
            refused += 1
            said = re.sub(r"\s+", " ", str(error))
            wrong += [f"{k}: {said[:300]}"] if "bug in Weft" in said else []
        except Exception as error:
            wrong.append(f"{k}: {type(error).__name__}: {str(error)[:300]}")
        if time.process_time() - start > MOST_SECONDS:
            wrong.append(f"{k}: it took {time.process_time() - start:.0f} s")
    return refused, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
def test_damaged_models(seed: int, tmp_path: Path) -> None:
    refused, wrong = import_damaged(tmp_path, seed, 150)
    assert wrong == []
    assert refused > 50


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_damaged_models(seed: int, tmp_path: Path) -> None:
    assert import_damaged(tmp_path, seed, 2000)[1] == []
