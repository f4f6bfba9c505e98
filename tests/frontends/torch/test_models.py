"""Exported modules, compiled and run: a convolutional network, a perceptron, a block of a transformer."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.modules import Module, array, check, compare, exported, numbers, wanted  # noqa: E402

import weft  # noqa: E402
from weft.frontends.torch.importer import from_exported_program  # noqa: E402

nn = torch.nn
BATCH = torch.export.Dim("batch")


class Digits(nn.Module):  # type: ignore[misc, name-defined]
    """A small convolutional network for images of 8 x 8, with an activation in place."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 32, 3, padding="same", groups=2)
        self.out = nn.Linear(32 * 2 * 2, 10)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: Any) -> Any:
        x = torch.max_pool2d(torch.relu_(self.norm(self.first(x))), 2)
        x = nn.functional.avg_pool2d(nn.functional.silu(self.second(x)), 2)
        return torch.softmax(self.out(torch.flatten(x, 1)), -1)


class Block(nn.Module):  # type: ignore[misc, name-defined]
    """A block of a transformer on embedded tokens."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(11, width)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + torch.arange(tokens.shape[1])[:, None] / 10
        y = self.before(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.mlp(self.after(x))
        return x.mean(1), x[:, -1]


def mlp() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 33), nn.ReLU(), nn.Dropout(), nn.Linear(33, 33), nn.Tanh(), nn.Linear(33, 5))


IMAGES, ROWS, TOKENS = numbers(3, 1, 8, 8), numbers(4, 7), torch.arange(10).reshape(2, 5) % 11
MODELS: list[tuple[Any, Any]] = [(Digits(), IMAGES), (mlp(), ROWS), (Block(), TOKENS)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("module", "x"), MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "symbolic"])
def test_compiled(module: Any, x: Any, dynamic: bool) -> None:
    program = exported(module, [x], ({0: BATCH},) if dynamic else None)
    model = weft.compile(program)
    for given in (x, torch.cat([x, x])) if dynamic else (x,):
        made = model(array(given))
        compare([np.asarray(a) for a in (made if isinstance(made, tuple) else (made,))], wanted(module, [given]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("module", "x"), MODELS, ids=lambda m: type(m).__name__)
def test_decomposed(module: Any, x: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's own
        program = exported(module, [x], ({0: BATCH},)).run_decompositions()
    check(program, module, [x])


def test_names_and_saving(tmp_path: Path) -> None:
    model = weft.compile(exported(mlp(), [ROWS]))
    assert [(s.name, s.shape) for s in model.inputs] == [("input", (4, 7))]
    assert [s.name for s in model.outputs] == ["linear_2"]
    model.save(tmp_path / "mlp.weft")
    np.testing.assert_array_equal(weft.load(tmp_path / "mlp.weft")(array(ROWS)), model(array(ROWS)))


def test_sizes_given() -> None:
    program = exported(mlp(), [ROWS], ({0: BATCH},))
    model = weft.compile(program, shapes={"input": (9, 7)})
    assert model.inputs[0].shape == (9, 7)
    with pytest.raises(weft.ModelError) as told:
        weft.compile(program, shapes={"rows": 3})
    assert "shapes has 'rows', which is no symbolic dimension of the model" in str(told.value)


def test_a_module_with_inputs_to_try() -> None:
    model = weft.compile(mlp().eval(), example_inputs=(ROWS,), shapes={"input": ("batch", 7)})
    assert [(s.name, s.shape) for s in model.inputs] == [("input", ("batch", 7))]
    for x in (ROWS, ROWS[:1]):
        compare([np.asarray(model(array(x)))], wanted(mlp(), [x]))
    with pytest.raises(weft.InputError) as told:
        weft.compile(mlp(), example_inputs=(ROWS, ROWS))
    assert "example_inputs are not what the module takes: too many positional arguments" in str(told.value)


def test_a_mask_and_a_source_that_are_numbers() -> None:
    """What is gathered by one element is no transpose."""
    module = Module(lambda x, mask, source: x.masked_scatter(mask, source))
    inputs = [numbers(5), torch.tensor(True), numbers(5, seed=1)]
    made = weft.compile(exported(module, inputs), cache=False).run([array(t) for t in inputs])
    compare(made, wanted(module, inputs))


class Parts(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any, flags: Any) -> Any:
        n = int(flags.sum())
        return torch.cat([x[:n] * n, x[n:]])


def test_a_number_that_the_data_tell() -> None:
    """PyTorch exports it when it reads the module, and not when it runs it."""
    x, flags = numbers(4, 3), torch.tensor([1, 0, 1])
    model = weft.compile(Parts(), example_inputs=(x, flags), threads=1)
    for f in (flags, flags * 0, flags * 2):
        np.testing.assert_allclose(model(x.numpy(), f.numpy()), Parts()(x, f).numpy())


def test_results_that_are_nothing_are_left_out() -> None:
    x = numbers(2, 3)
    model = weft.compile(exported(Module(lambda x: (x + 1, None, x * 2)), [x]))
    made = model(x)
    assert len(made) == 2
    np.testing.assert_array_equal(made[1], array(x) * 2)


@pytest.mark.parametrize("function", [torch.bincount, torch.repeat_interleave])
def test_negative_numbers_are_not_counted(function: Any) -> None:
    model = weft.compile(exported(Module(function), [torch.tensor([1, 2])]))
    with pytest.raises(weft.WeftError, match="none of which may be negative, is -1, which is no size"):
        model(torch.tensor([3, -2]))


class Splines(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A function of the elements inside of bounds, which the program checks: as in flows of splines."""

    def forward(self, x: Any, w: Any) -> Any:
        inside = (x >= -1) & (x <= 1)
        chosen = x[inside]
        torch._check(torch.ops.aten._is_all_true(chosen <= 1).item())
        y = torch.zeros_like(x)
        y[inside] = chosen.sin() * w[inside].sum(-1)
        return y


def test_selections_by_one_mask_have_one_size_and_checks_need_no_support() -> None:
    program = exported(Splines(), [torch.zeros(3, 5), torch.zeros(3, 5, 2)])
    made = weft.compile(program)
    for x in (numbers(3, 5), 0.5 * numbers(3, 5), torch.full((3, 5), 9.0)):  # some, all and none of them are inside
        w = numbers(3, 5, 2, seed=1)
        np.testing.assert_allclose(made(x, w), Splines()(x, w).numpy(), rtol=1e-5, atol=1e-6)
    assert len(from_exported_program(program).late_sizes) == 1


class Experts(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Rows in pieces whose sizes are data, each of which has a weight of its own."""

    def forward(self, x: Any, sizes: Any) -> Any:
        first, second = x.split(sizes.tolist(), dim=0)
        return torch.cat([first * 2, second.sin()])


def test_pieces_whose_sizes_the_data_tell() -> None:
    model = weft.compile(exported(Experts(), [numbers(6, 3), torch.tensor([4, 2])]))
    for sizes in ([4, 2], [6, 0], [0, 6]):
        x, n = numbers(6, 3), torch.tensor(sizes)
        np.testing.assert_allclose(model(x, n), Experts()(x, n).numpy(), rtol=1e-5)
    with pytest.raises(weft.WeftError, match="the sizes of the pieces add up to 7, and there are 6 elements"):
        model(numbers(6, 3), torch.tensor([4, 3]))
