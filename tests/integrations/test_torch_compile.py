"""What `torch.compile` promises, with Weft behind it: how often it compiles, what it shares, and what it keeps for later."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from weft.driver.parameter_model import ParameterModel  # noqa: E402
from weft.frontends.torch import graph_module  # noqa: E402
from weft.frontends.torch.graph_module import Captured  # noqa: E402
from weft.integrations import torch_backend  # noqa: E402
from weft.runtime.model import Model  # noqa: E402

nn = torch.nn


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graphs that were compiled, in order."""
    made: list[Any] = []
    original = graph_module.from_graph_module

    def noted(*args: Any, **named: Any) -> Captured:
        found = original(*args, **named)
        made.append(found.graph)
        return found

    monkeypatch.setattr(torch_backend, "from_graph_module", noted)
    return made


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tensors that models were called with."""
    seen: list[Any] = []
    original = Model.run_in

    def noted(self: Model, library: Any, inputs: Any) -> Any:
        seen.extend(inputs)
        return original(self, library, inputs)

    monkeypatch.setattr(Model, "run_in", noted)
    return seen


def compiled(model: Any, *, prepack: bool = False, **options: Any) -> Any:
    chosen = {"fallback": False, "threads": 1, "prepack": prepack}
    return torch.compile(model, backend="weft", options=chosen, **options)


def close(made: Any, wanted: Any) -> None:
    torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-5)


def check(fast: Any, plain: Any, *inputs: Any) -> None:
    with torch.no_grad():
        close(fast(*inputs), plain(*inputs))


def test_a_dimension_that_is_marked_is_symbolic_from_the_first_call(graphs: list[Any]) -> None:
    def function(x: Any) -> Any:
        return (x @ x.T).softmax(-1).sum(0) / x.shape[0]

    fast = compiled(function)
    for rows in (3, 7, 2, 30):
        x = torch.randn(rows, 4)
        torch._dynamo.mark_dynamic(x, 0)
        check(fast, function, x)
    assert len(graphs) == 1
    assert len(graphs[0].dims) == 1


def test_a_second_size_makes_a_dimension_symbolic(graphs: list[Any]) -> None:
    def function(x: Any) -> Any:
        return torch.cat([x, x * 2]).cumsum(0)

    fast = compiled(function)
    for rows in (3, 5, 9, 4):
        check(fast, function, torch.randn(rows, 4))
    assert [len(g.dims) for g in graphs] == [0, 1]


def test_numbers_of_symbolic_sizes(graphs: list[Any]) -> None:
    """Slices from the end, scales by roots of sizes, and tensors of such numbers: what a decoder with a cache does."""

    def function(x: Any, cache: Any) -> Any:
        rows = torch.cat([cache, x], 1)
        scale = torch.full([], x.size(1) ** 0.5)
        return rows[:, -2:], rows[:, -x.shape[1] :], x / scale, x * (1 / x.shape[1]), x / x.size(1) ** 0.5

    fast = compiled(function, dynamic=True)
    for new, old in ((3, 4), (4, 7), (7, 3)):
        check(fast, function, torch.randn(2, new), torch.randn(2, old))
    assert len(graphs) == 1


def test_a_symbolic_size_with_a_limit_below_a_tile(graphs: list[Any]) -> None:
    """The first ten of a row: their number is no constant, and yet known to fit a vector or two."""

    def f(x: Any) -> Any:
        return (x[:, :10, None] < x[:, None, :10]).any(1) * x[:, :10]

    x = torch.rand(3, 17)
    check(compiled(f, dynamic=True), f, x)


def test_causal_attention_of_symbolic_length(graphs: list[Any]) -> None:
    def function(q: Any, k: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)

    fast = compiled(function)
    for length in (5, 8, 6):
        check(fast, function, torch.randn(2, 4, length, 8), torch.randn(2, 2, length, 8))
    assert [len(g.dims) for g in graphs] == [0, 2]  # the queries' and the keys'


def test_graphs_are_as_many_as_the_breaks_leave(graphs: list[Any]) -> None:
    def function(x: Any) -> Any:
        y = x.relu() * 2
        torch._dynamo.graph_break()
        return y.sum(0)

    check(compiled(function), function, torch.randn(3, 4))
    assert [[n.op for n in g.nodes][-1] for g in graphs] == ["mul", "reduce_sum"]


def test_guards_compile_again_when_what_they_guard_changes(graphs: list[Any]) -> None:
    class Scaled(nn.Module):  # type: ignore[misc, name-defined]
        scale = 2

        def forward(self, x: Any) -> Any:
            return x * self.scale

    model = Scaled()
    fast = compiled(model)
    x = torch.randn(3)
    check(fast, model, x)
    check(fast, model, x + 1)
    assert len(graphs) == 1
    model.scale = 5
    check(fast, model, x)
    assert len(graphs) == 2
    check(fast, model, x.double())
    assert [g.inputs[0].dtype.name for g in graphs] == ["f32", "f32", "f64"]


def test_inference_mode(graphs: list[Any]) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    fast = compiled(model)
    with torch.inference_mode():
        x = torch.randn(3, 4)
        made = fast(x)
        assert made.is_inference()
        close(made, model(x))
    assert len(graphs) == 1


@pytest.mark.parametrize("function", [torch.linalg.inv, torch.linalg.cholesky])
def test_checks_of_factorizations_take_tokens(graphs: list[Any], function: Callable[[Any], Any]) -> None:
    root = torch.eye(4) + torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(0)) / 8
    x = root @ root.transpose(-1, -2)
    torch.testing.assert_close(torch.compile(function, backend="weft")(x), function(x), rtol=1e-4, atol=1e-5)
    assert len(graphs) == 1


def test_parameters_are_held_once(graphs: list[Any], given: list[Any]) -> None:
    """They are inputs of the model, of the memory that they have in PyTorch, in each call; the model has no constants."""
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)).eval()
    fast = compiled(model)
    x = torch.randn(3, 64)
    for _ in range(2):
        given.clear()
        check(fast, model, x)
        places = {t.data_ptr() for t in given}
        assert places == {t.data_ptr() for t in (x, *model.parameters())}
    assert all(v.array.size < 64 for v in graphs[0].constants())


def test_parameters_that_are_read_as_they_lie_are_held_once(given: list[Any]) -> None:
    """Vectors, and tables to look up in, are inputs, of the memory that they have in PyTorch; matrices are held in panels."""
    model = nn.Sequential(nn.Embedding(99, 64), nn.Linear(64, 64)).eval()
    fast = compiled(model, prepack=True)
    check(fast, model, torch.arange(32).reshape(2, 16))
    places = {t.data_ptr() for t in given}
    assert {model[0].weight.data_ptr(), model[1].bias.data_ptr()} < places
    assert model[1].weight.data_ptr() not in places


def test_matrices_of_many_rows_are_held_once(given: list[Any]) -> None:
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2048)).eval()
    fast = compiled(model, prepack=True)
    for _ in range(2):
        given.clear()
        check(fast, model, torch.randn(64, 1024))
        assert {p.data_ptr() for p in model.parameters()} <= {t.data_ptr() for t in given}


def test_parameters_are_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ParameterModel] = []
    original = ParameterModel.refresh

    def noted(self: ParameterModel) -> None:
        made.append(self)
        original(self)

    monkeypatch.setattr(ParameterModel, "refresh", noted)
    model, x = nn.Linear(64, 64).eval(), torch.randn(16, 64)
    fast = compiled(model, prepack=True)
    for writes in range(3):
        for _ in range(2):
            check(fast, model, x)
        assert len(made) == writes
        with torch.no_grad():
            model.weight.add_(1)


def test_results_that_are_arguments_or_views_of_them(graphs: list[Any]) -> None:
    def function(x: Any) -> Any:
        return x, x[1:], x.t(), x * 2

    x = torch.randn(3, 4)
    with torch.no_grad():
        itself, rest, turned, twice = compiled(function)(x)
    assert itself is x
    assert rest.data_ptr() == x[1:].data_ptr()
    assert turned.data_ptr() == x.data_ptr()
    assert turned.stride() == (1, 4)
    x.add_(1)
    close(rest, x[1:])
    assert twice.data_ptr() != x.data_ptr()
    close(twice, (x - 1) * 2)


def test_results_are_the_tensors_that_the_model_wrote(given: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither arguments nor results are copied between PyTorch and a model: they have the memory that it read and wrote."""
    written: list[Any] = []
    original = Model.run_in

    def noted(self: Model, library: Any, inputs: Any) -> Any:
        made = original(self, library, inputs)
        written.extend(made)
        return made

    monkeypatch.setattr(Model, "run_in", noted)
    x, y = torch.randn(300, 40), torch.randn(40)
    fast = compiled(lambda a, b: (a * b, (a + b).sum(0)))
    with torch.no_grad():
        made = fast(x, y)
    assert [t.data_ptr() for t in given] == [x.data_ptr(), y.data_ptr()]
    assert [t.data_ptr() for t in made] == [t.data_ptr() for t in written]


def test_random_numbers_follow_the_seed_of_pytorch() -> None:
    def function(x: Any) -> Any:
        return nn.functional.dropout(x, 0.5, training=True), torch.rand_like(x)

    fast = compiled(function)
    x = torch.ones(50, 40)
    with torch.no_grad():
        torch.manual_seed(3)
        first, second = fast(x), fast(x)
        torch.manual_seed(3)
        again = fast(x)
    for a, b, c in zip(first, second, again, strict=True):
        assert torch.equal(a, c)
        assert not torch.equal(a, b)
    assert set(first[0].unique().tolist()) == {0.0, 2.0}


def test_constants_of_the_function() -> None:
    """They have elements, while all else is traced with tensors that have none."""

    def function(x: Any) -> Any:
        return torch.cat([torch.tensor([]), x.flatten()]) * torch.tensor([2.0])

    check(compiled(function), function, torch.randn(3, 4))


def test_errors_have_the_line_of_the_user() -> None:
    def function(x: Any) -> Any:
        y = x.abs() + 1
        return torch.special.airy_ai(y)

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"airy_ai.*\(test_torch_compile.py:\d+\)"):
        compiled(function)(torch.randn(3))


SCRIPT = """
import torch
from weft.driver import kernel
made, schedule = [], kernel.schedule_program
def counted(*args, **named):
    made.append(args[0])
    return schedule(*args, **named)
kernel.schedule_program = counted
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).eval()
x = torch.randn(3, 8)
with torch.no_grad():
    found = torch.compile(model, backend="weft", options={"fallback": False, "threads": 1})(x)
    torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-5)
print("made", len(made))
"""


@pytest.mark.slow
def test_another_process_takes_the_kernels_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-c", SCRIPT]
    printed = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    first, second = (int(text.split("made ")[1].split()[0]) for text in printed)
    assert first > 0
    assert second == 0
