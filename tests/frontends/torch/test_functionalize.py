"""Changes in place: programs of views and changes, each against PyTorch, without PyTorch's own tracing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.modules import Module, check, exported, numbers  # noqa: E402

from weft.frontends.torch.decompose import is_mutable  # noqa: E402
from weft.frontends.torch.functionalization import without_changes  # noqa: E402

X: Final = numbers(4, 6)


def changed_by_views(x: Any) -> Any:
    y = x * 2
    row, turned, flat = y[1], y.t(), y.reshape(-1)
    row.add_(1)
    turned[2:4].mul_(x.t()[2:4])
    flat[::5].zero_()
    y.diagonal().copy_(x[0, :4])
    return y, row, turned, flat, y.permute(1, 0).relu_(), y


def with_a_dropout(x: Any) -> Any:
    y = x * 2
    z = torch.nn.functional.dropout(y, 0.5, training=False)
    y.add_(1)
    return y, z


def into_an_input(x: Any) -> Any:
    x.add_(1)
    return x * 2


def sums_of_a_loop(x: Any) -> Any:
    total, made = torch.zeros(6), torch.empty(4, 6)
    for k in range(4):
        total += x[k]
        made[k] = total
    made[:, 1] = 5.0
    made[made > 3] = -1.0
    return made, total


def into_another(x: Any) -> Any:
    y, z = x.exp(), torch.zeros(4, 6)
    torch.maximum(x, y, out=z)
    first, second = z.split(3, 1)
    z.mul_(2)
    y.masked_fill_(x > 0, 0.5).sub_(x, alpha=2)
    return z, first + second, y


def of_constants(x: Any) -> Any:
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    weights.div_(weights.sum())
    return x * weights[:, None]


def pieces(x: Any) -> Any:
    y = x * 2
    first, second = y.split(2)
    row = second[1]
    first.mul_(3)
    row.add_(1)
    columns, others = y.chunk(2, -1), y.unbind(1)
    others[4].zero_()
    columns[0][0].copy_(columns[1][1])
    others[5].sub_(1)
    wide, _ = y.split_with_sizes([1, 5], 1)
    wide.relu_()
    return y, first, second, row, *columns, *others


def with_a_part_of_several(x: Any) -> Any:
    y = x * 2
    first, _ = y.tensor_split(2)
    first.mul_(3)
    return y


def with_a_wider_type(x: Any) -> Any:
    y = x * 2
    y.add_(x.double())
    return y


FOLLOWED: Final[list[Callable[..., Any]]] = [changed_by_views, pieces, sums_of_a_loop, into_another, of_constants]
NOT_FOLLOWED: Final[list[Callable[..., Any]]] = [with_a_part_of_several, with_a_wider_type]


def followed(program: Any) -> Any:
    """Returns a program's graph without changes."""
    module = without_changes(program.graph_module)
    assert module is not None
    assert not any(is_mutable(n.target) for n in module.graph.nodes)
    return module


@pytest.mark.parametrize("function", FOLLOWED)
def test_changes_are_followed(function: Callable[..., Any]) -> None:
    program = exported(Module(function), [X])
    followed(program)
    check(program, Module(function), [X])


@pytest.mark.parametrize("function", NOT_FOLLOWED)
def test_others_are_left_to_pytorch(function: Callable[..., Any]) -> None:
    program = exported(Module(function), [X])
    assert without_changes(program.graph_module) is None
    check(program, Module(function), [X])


@pytest.mark.parametrize("function", [into_an_input, with_a_dropout])
def test_some_are_not_followed(function: Callable[..., Any]) -> None:
    program = exported(Module(function), [X])
    assert without_changes(program.graph_module) is None


def test_a_buffer_that_changes_is_not_followed() -> None:
    class Counting(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.count.add_(1)
            return x + self.count

    assert without_changes(exported(Counting(), [X]).graph_module) is None


def test_a_graph_without_changes_is_itself() -> None:
    program = exported(Module(lambda x: x * 2 + torch.tensor(1.0)), [X])
    assert without_changes(program.graph_module) is program.graph_module


class Random(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Takes views of two tensors, of one another, and changes some of them, as a seed says; returns all of them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, x: Any) -> Any:
        """Returns all tensors, as they are at the end."""
        chosen = random.Random(self.seed)
        made = [x * 2, x + 1]
        for _ in range(12):
            y = chosen.choice(made)
            made.append(y) if y.dim() == 0 else made.append(self._next(chosen, y, made))
        return tuple([m + 0 for m in made])

    def _next(self, chosen: random.Random, y: Any, made: list[Any]) -> Any:
        d = chosen.randrange(y.dim())
        k = chosen.randrange(y.shape[d])
        fitting = [m for m in made if m.shape == y.shape]
        ways: list[Callable[[], Any]] = [
            lambda: y.select(d, k),
            lambda: y.narrow(d, k, y.shape[d] - k) if chosen.random() < 0.3 else y[..., k % y.shape[-1] :],
            lambda: y.transpose(0, d),
            lambda: y.permute(*[*range(1, y.dim()), 0]),
            lambda: y.reshape(-1),
            lambda: y.unsqueeze(d),
            y.contiguous,
            lambda: y.diagonal() if y.dim() == 2 else y.sigmoid(),
            lambda: chosen.choice(y.split(max(y.shape[d] // 2, 1), d)),
            lambda: chosen.choice(y.unbind(d)),
            y.detach,
            lambda: y.add_(chosen.choice(fitting).clone()),
            lambda: y.mul_(0.5),
            lambda: y.clamp_(-1, 1),
            lambda: y.copy_(chosen.choice(fitting).clone()),
            lambda: y.fill_(2.0),
            lambda: y.masked_fill_(chosen.choice(fitting) > 0.5, 1.5),
        ]
        return chosen.choice(ways)()


def test_random_programs() -> None:
    taken = 0
    for seed in range(60):
        program = exported(Random(seed), [X])
        module = without_changes(program.graph_module)
        if module is not None:
            taken += 1
            for y, wanted in zip(module(X), Random(seed)(X), strict=True):
                torch.testing.assert_close(y, wanted, msg=lambda m, seed=seed: f"seed {seed}: {m}")
    assert taken > 45
