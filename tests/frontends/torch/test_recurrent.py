"""Recurrent layers of PyTorch stay loops: of sequences of any length, compiled in the same time, while training too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.cases.recurrent import BATCH, FEATURES, HIDDEN, Layer, state, steps  # noqa: E402
from tests.frontends.torch.modules import Module, array, compare, exported, numbers, wanted  # noqa: E402

import weft  # noqa: E402
from weft.frontends.torch.decompose import decomposed  # noqa: E402
from weft.frontends.torch.importer import from_exported_program  # noqa: E402
from weft.frontends.torch.whole_layers import shapes_of_recurrent_layers, with_whole_layers  # noqa: E402
from weft.integrations.torch_backend import weft_backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:The tensor attribute:UserWarning"
)  # of weights that PyTorch keeps in one piece

KINDS = ("rnn_relu", "rnn_tanh", "gru", "lstm")


class Scored(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A layer, the last step of which is compared with a target by an operator that is decomposed."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layer = Layer(kind, batch_first=True)

    def forward(self, x: Any, target: Any) -> Any:
        return torch.nn.functional.huber_loss(self.layer(x)[0][:, -1], target)


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_nodes_for_any_number_of_steps(kind: str) -> None:
    with torch.no_grad(), shapes_of_recurrent_layers():
        programs = [exported(Layer(kind), [steps(count)]) for count in (100, 1000)]
    sizes = [len(from_exported_program(p).nodes) for p in programs]
    assert sizes[0] == sizes[1] < 20


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_other_operators_are_decomposed(kind: str) -> None:
    module, given = Scored(kind), [steps(40).transpose(0, 1), numbers(BATCH, HIDDEN)]
    with torch.no_grad():
        program = decomposed(exported(module, given))
        assert [n for n in program.graph.nodes if str(n.target) == f"aten.{kind}.input"]
        made = weft.compile(program, cache=False)(*map(array, given))
        compare([np.asarray(made)], wanted(module, given))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["rnn_tanh", "gru", "lstm"])
def test_any_length_and_batch(kind: str, batch_first: bool) -> None:
    module = Layer(kind, 2, both=True, batch_first=batch_first)
    shape = ("batch", "time", FEATURES) if batch_first else ("time", "batch", FEATURES)
    model = weft.compile(module, example_inputs=(numbers(9, 3, FEATURES),), shapes={"x": shape}, cache=False)
    for sizes in ((9, 3), (1, 1), (2, 30)):
        x = numbers(*sizes, FEATURES, seed=sum(sizes))
        with torch.no_grad():
            compare([np.asarray(v) for v in model(array(x))], wanted(module, [x]), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
def test_shapes_are_those_of_the_layer() -> None:
    """What stands for a layer while a program is traced has its results' shapes, types and order in memory."""
    layer = Layer("lstm", 2, both=True, batch_first=True, projected=4)
    x, states = steps(3).transpose(0, 1), (state(4, 4), state(4))
    traced = list[Any]()

    def noted(*given: Any) -> Any:
        traced.extend(torch.utils._pytree.tree_leaves(layer(*given)))
        return traced[0]

    with torch.no_grad(), shapes_of_recurrent_layers():
        exported(Module(noted), [x, *states])
    real = torch.utils._pytree.tree_leaves(layer(x, *states))
    assert [(t.shape, t.dtype) for t in traced] == [(t.shape, t.dtype) for t in real]
    assert [t.is_contiguous() for t in traced] == [t.is_contiguous() for t in real] == [False, True, True]


def test_dropout_between_layers() -> None:
    """Of a layer that always outputs one, half of the outputs reach the next, and are twice as large."""
    layer = torch.nn.RNN(1, 64, 2, dropout=0.5, bias=False, nonlinearity="relu")
    for name, w in layer.named_parameters():
        w.data.fill_(0)
        w.data[:] = 1 if name == "weight_ih_l0" else torch.eye(64) if name == "weight_ih_l1" else 0
    x = torch.ones(40, 8, 1)
    model = weft.compile(torch.export.export(layer.train(), (x,)), cache=False)
    y, again, other = (np.asarray(model(array(x), np.int64(seed))[0]) for seed in (1, 1, 2))
    assert set(np.unique(y)) == {0, 2}
    assert abs(np.mean(y) - 1) < 0.05
    np.testing.assert_array_equal(y, again)
    assert np.any(y != other)


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind: str) -> None:
    """Where gradients are asked for, PyTorch takes a layer apart, whose steps are few here."""
    results = list[list[Any]]()
    for backend in ("eager", "weft"):
        torch._dynamo.reset()
        module, x = Layer(kind, 2).train(), steps(3).requires_grad_()
        with torch._dynamo.config.patch(allow_rnn=True):
            y = torch.compile(module, backend=backend)(x)[0]
            y.square().sum().backward()
        results.append([array(t) for t in (y, x.grad, *[p.grad for p in module.parameters()])])
    compare(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_inference_by_the_compiler_of_pytorch(kind: str) -> None:
    """Where no gradients are asked for, a layer stays whole, of any number of steps; PyTorch runs none of it."""
    seen: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        whole = with_whole_layers(graph, inputs)
        seen.extend(str(n.target) for n in whole.graph.nodes)
        return weft_backend(whole, inputs, {"fallback": False})

    torch._dynamo.reset()
    module, x = Layer(kind, 2, both=True, batch_first=True), steps(30).transpose(0, 1)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        made = torch.compile(module.eval(), backend=backend)(x)
        compare([array(t) for t in torch.utils._pytree.tree_leaves(made)], wanted(module, [x]), rtol=1e-5)
        assert f"weft.{kind}.default" in seen
    seen.clear()
    with torch._dynamo.config.patch(allow_rnn=True):
        torch.compile(module.train(), backend=backend)(x[:, :2].requires_grad_())
    assert seen
    assert f"weft.{kind}.default" not in seen
