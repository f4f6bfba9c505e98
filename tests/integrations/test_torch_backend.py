"""`torch.compile` with Weft as its backend."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402

nn = torch.nn


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    yield
    torch._dynamo.reset()


def perceptron() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


def close(made: Any, wanted: Any) -> None:
    torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-5)


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="weft", options={"fallback": False, **options})


def test_sizes_change_and_parameters_too() -> None:
    model = perceptron()
    fast = compiled(model)
    with torch.inference_mode():
        for rows in (3, 2, 5):  # from the second on, of a symbolic size
            x = torch.randn(rows, 8)
            close(fast(x), model(x))
        model[0].weight.mul_(2)
        close(fast(x), model(x))


def test_frozen_parameters_are_followed() -> None:
    model, x = perceptron(), torch.randn(3, 8)
    fast = compiled(model, freeze=True)
    with torch.no_grad():
        close(fast(x), model(x))
        model[0].weight.mul_(2)
        close(fast(x), model(x))


def test_weights_of_inference_mode_are_no_constants() -> None:
    """Nobody counts how often they are written."""
    with torch.inference_mode():
        model, x = perceptron(), torch.randn(3, 8)
        fast = compiled(model, freeze=True)
        close(fast(x), model(x))
        model[0].weight.mul_(2)
        close(fast(x), model(x))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", [{}, {"prepack": True}, {"freeze": True}], ids=str)
def test_weights_that_change_are_followed(options: dict[str, bool]) -> None:
    """Counted by PyTorch or not, in the same memory or in other, in order or not."""
    model, x = perceptron(), torch.randn(3, 8)
    weight, fast = model[0].weight, compiled(model, **options)
    with torch.no_grad():
        close(fast(x), model(x))
        weight.mul_(2)
        close(fast(x), model(x))
        weight.data.add_(1)
        close(fast(x), model(x))
        weight.data = weight.data * 3
        close(fast(x), model(x))
        weight.data = torch.randn(8, 16).t()
        close(fast(x), model(x))
        weight.data.sub_(1)
        close(fast(x), model(x))


def test_a_matrix_that_the_model_writes_is_read_in_each_call() -> None:
    class Running(nn.Module):  # type: ignore[misc, name-defined] # PyTorch may be missing
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.randn(8, 8))

        def forward(self, x: Any) -> Any:
            y = x @ self.mean
            self.mean.mul_(0.5)
            return y

    torch.manual_seed(0)
    model, x = Running(), torch.randn(16, 8)
    fast = compiled(model)
    with torch.no_grad():
        first = model.mean.clone()
        for n in range(3):
            close(fast(x), x @ (first * 0.5**n))


def test_complex_numbers_are_taken_and_returned() -> None:
    def function(x: Any, z: Any) -> Any:
        return torch.fft.rfft(x) * z

    x, z = torch.randn(3, 8), torch.randn(3, 5, dtype=torch.complex64)
    with torch.no_grad():
        close(compiled(function)(x, z), function(x, z))


def test_graphs_break_and_inputs_change() -> None:
    def function(x: Any) -> Any:
        y = x.t() * 2
        if y.sum() > 0:
            y = y + 1
        x.add_(1)
        return y, x[1:], y[1:].cos()

    x = torch.randn(3, 4)
    given = x.clone()
    with torch.no_grad():
        made, wanted = compiled(function)(given), function(x)
    for a, b in zip(made, wanted, strict=True):
        close(a, b)
        assert a.stride() == b.stride()
    close(given, x)


def test_outputs_are_shared() -> None:
    with torch.no_grad():
        made = compiled(lambda x: x * 2)(torch.ones(4))
    made.add_(1)  # memory that is written is the tensor's own
    assert made.tolist() == [3.0] * 4


def test_results_share_memory_where_those_of_pytorch_do() -> None:
    def function(x: Any) -> Any:
        y = x @ x
        return y, y[1:].t(), y.detach(), y + 1

    with torch.no_grad():
        made, wanted = compiled(function)(torch.ones(3, 3)), function(torch.ones(3, 3))
        for results in (made, wanted):
            results[0][1] = 5
    for a, b in zip(made, wanted, strict=True):
        close(a, b)
        assert a.stride() == b.stride()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_views_by_sizes_that_change_are_those_of_pytorch(dtype: Any) -> None:
    """PyTorch makes views of inputs anew, by the strides of those that a backend returns."""

    def function(x: Any, k: int) -> Any:
        x.mul_(2)
        y = x[1:] + 1
        return x[:, k:], x.split(k, 1), x[:, :k].t(), y[:, k:], y

    fast = torch.compile(function, backend="weft", options={"fallback": False}, dynamic=True)
    for k in (2, 3, 5):
        x = torch.arange(24).view(3, 8).to(dtype)
        given = x.clone()
        made, wanted = fast(given, k), function(x, k)
        for a, b in zip(torch.utils._pytree.tree_leaves(made), torch.utils._pytree.tree_leaves(wanted), strict=True):
            close(a, b)
            assert a.is_complex() or a.stride() == b.stride()
        made[0].zero_()  # which are the input's memory
        assert not given[:, k:].any()


def test_inputs_that_share_memory_are_written() -> None:
    def function(a: Any, b: Any) -> Any:
        a.add_(1)
        b.mul_(2)
        return a * 3

    x = torch.arange(16.0).view(4, 4)
    given = x.clone()
    with torch.no_grad():
        close(compiled(function)(given, given[1:]), function(x, x[1:]))
    close(given, x)


def test_views_of_inputs_need_no_operators_of_weft() -> None:
    with torch.no_grad():
        made = compiled(lambda x: (x.view(torch.int32), x * 2))(torch.ones(3))
    assert made[0].tolist() == [0x3F800000] * 3


def test_training_holds_weights_once() -> None:
    model = perceptron()
    made = compiled(model)(torch.randn(3, 8, requires_grad=True))
    held = {t.untyped_storage().data_ptr() for t in made.grad_fn.saved_tensors}
    assert model[2].weight.untyped_storage().data_ptr() in held


def test_indices_that_a_call_finds_are_laid_out_as_pytorch_s() -> None:
    x = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
    with torch.no_grad(), torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        made = compiled(torch.nonzero)(x)
    close(made, x.nonzero())
    assert made.stride() == x.nonzero().stride()


def test_gradients() -> None:
    model, x = perceptron(), torch.randn(3, 8)
    compiled(model)(x).square().sum().backward()
    made = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    for a, p in zip(made, model.parameters(), strict=True):
        close(a, p.grad)


def test_what_weft_lacks_is_run_by_pytorch_or_refused() -> None:
    def function(x: Any) -> Any:
        return torch.special.airy_ai(x)

    x = torch.randn(3, 3)
    with torch.no_grad():
        with pytest.warns(
            UserWarning, match="PyTorch itself runs a graph that Weft can't compile: the model uses 1 operator"
        ):
            close(torch.compile(function, backend="weft")(x), function(x))
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"airy_ai.* \(test_torch_backend.py:\d+\)"):
            compiled(function)(x)


def written(x: Any) -> None:
    x.fill_(1)


def test_an_operator_of_the_user_s_that_writes_is_refused_by_its_name() -> None:
    with torch.library._scoped_library("weft_test", "FRAGMENT") as library:
        library.define("fill(Tensor(a!) x) -> ()")
        library.impl("fill", written, "CompositeExplicitAutograd")

        def function(x: Any) -> Any:
            y = x * 2
            torch.ops.weft_test.fill(y)
            return y

        with (
            torch.no_grad(),
            pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"weft_test.fill.* \(.*:\d+\)"),
        ):
            compiled(function)(torch.ones(3))


def test_an_unknown_option() -> None:
    from weft.integrations.torch_backend import weft_backend

    with pytest.raises(weft.InputError) as told:
        weft_backend(None, [], {"frozen": True})
    assert str(told.value) == (
        "the backend has no option 'frozen'\n"
        "  hint: its options are 'fallback', 'freeze', 'opt_level', 'precision', 'prepack', 'threads'"
    )
