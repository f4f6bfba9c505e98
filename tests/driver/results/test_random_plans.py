"""Any plan is right: small versions of the benchmarks' networks, compiled with random choices among the candidates."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
import pytest
from tests.models import lstm_step, mlp, tiny_bert_layer, tiny_dcgan, tiny_gpt2_decode, tiny_mobilenet, tiny_resnet

import weft
from weft.cli.onnx_builder import GraphBuilder, conv, gemm
from weft.cost import Candidate, Choose, cheapest
from weft.driver.measure.random_inputs import random_inputs
from weft.runtime.model import Model

SEEDS: Final = 50


def small_dqn() -> onnx.ModelProto:
    g = GraphBuilder("dqn")
    x = g.input("x", (1, 4, 28, 28))
    for channels, kernel, stride in (((4, 16), 8, 4), ((16, 32), 4, 2), ((32, 32), 2, 1)):
        x = g.op("Relu", conv(g, x, channels, kernel, stride, padding=0, bias=True))
    g.output(gemm(g, g.op("Relu", gemm(g, g.op("Flatten", x, axis=1), (32, 64))), (64, 6)), "y")
    return g.model()


NETWORKS: Final[dict[str, Callable[[], onnx.ModelProto]]] = {
    "resnet": tiny_resnet,
    "mobilenet": tiny_mobilenet,
    "dqn": small_dqn,
    "dcgan": tiny_dcgan,
    "mlp": mlp,
    "lstm": lstm_step,
    "bert": tiny_bert_layer,
    "gpt2": tiny_gpt2_decode,
}


def random_choice(seed: int) -> Choose:
    """Returns what chooses any of the candidates, the cheapest one included, by a seed."""
    source = random.Random(seed)

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        return source.choice(candidates)

    return choose


def outputs(name: str, choose: Choose) -> list[np.ndarray[Any, Any]]:
    model = Model(weft.build(NETWORKS[name](), "cpu", choose=choose).package)
    found = model(**random_inputs(model.inputs))
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


@cache
def expected(name: str) -> list[np.ndarray[Any, Any]]:
    return outputs(name, cheapest)


def check(name: str, seed: int) -> None:
    for found, wanted in zip(outputs(name, random_choice(seed)), expected(name), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{name}, seed {seed}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_random_plan_is_right(name: str) -> None:
    check(name, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, SEEDS))
@pytest.mark.parametrize("name", NETWORKS)
def test_any_random_plan_is_right(name: str, seed: int) -> None:
    check(name, seed)
