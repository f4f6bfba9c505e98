"""Random numbers of PyTorch's operators: of the same distributions, by the seed that the model has for its last input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.cases.random_draws import MOMENTS, X  # noqa: E402
from tests.frontends.torch.modules import Module, exported  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402

import weft  # noqa: E402

F = torch.nn.functional


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "x", "mean", "variance"), MOMENTS.values(), ids=MOMENTS)
def test_moments(function: Callable[..., Any], x: Any, mean: float, variance: float) -> None:
    model = weft.compile(exported(Module(function), [x]), threads=1)
    assert [spec.name for spec in model.inputs][1:] == ["seed"]
    made = [np.asarray(model.run([x.numpy(), np.int64(seed)])[0], np.float64) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(made[0], made[1])
    assert not np.array_equal(made[0], made[2])
    wanted = function(x)
    assert made[0].shape == tuple(wanted.shape)
    deviation = math.sqrt(variance / made[0].size)
    assert abs(made[0].mean() - mean) < 6 * deviation
    assert abs(made[0].var() / variance - 1) < (0.1 if made[0].size > 1000 else 0.6)


def test_a_permutation() -> None:
    model = weft.compile(exported(Module(lambda x: torch.randperm(50)), [X]), threads=1)
    found = model.run([X.numpy(), np.int64(0)])[0]
    assert sorted(found) == list(range(50))


def test_dropout_keeps_elements_or_drops_them() -> None:
    model = weft.compile(exported(Module(lambda x: F.dropout(x, 0.5, training=True)), [X]), threads=1)
    found = model.run([X.numpy(), np.int64(3)])[0]
    kept = found != 0
    np.testing.assert_array_equal(found[kept], 2 * X.numpy()[kept])
    assert 0.45 < kept.mean() < 0.55


def test_nothing_is_drawn_outside_of_training() -> None:
    model = weft.compile(exported(Module(lambda x: F.dropout(F.rrelu(x), 0.5, training=False)), [X]), threads=1)
    assert [spec.name for spec in model.inputs] == ["inputs_0"]


def test_streams_are_not_one_another() -> None:
    """Two draws of a model are independent, and an input of the model's that is called as the seed keeps its name."""

    class Drawn(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, seed: Any) -> Any:
            return torch.rand_like(seed), torch.rand_like(seed)

    model = weft.compile(exported(Drawn(), [X]), threads=1)
    assert [spec.name for spec in model.inputs] == ["seed", "seed_1"]
    a, b = model.run([X.numpy(), np.int64(0)])
    assert abs(np.corrcoef(a.reshape(-1), b.reshape(-1))[0, 1]) < 0.05


def test_in_a_branch() -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, torch.rand_like, lambda x: x * 2, (x,))

    model = weft.compile(exported(Module(function), [X]), threads=1)
    x = np.ones(X.shape, np.float32)
    drawn = [model.run([x, np.int64(seed)])[0] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert abs(np.corrcoef(drawn[0].reshape(-1), drawn[2].reshape(-1))[0, 1]) < 0.05
    np.testing.assert_array_equal(model.run([-x, np.int64(0)])[0], -2 * x)


def test_in_a_loop() -> None:
    def function(x: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            drawn = torch.rand_like(row)
            return state + drawn, drawn

        return scan(step, torch.zeros_like(x[0]), x)

    model = weft.compile(exported(Module(function), [X]), threads=1)
    calls = [model.run([X.numpy(), np.int64(seed)]) for seed in (0, 0, 1)]
    for total, rows in calls:
        np.testing.assert_allclose(total, rows.sum(axis=0), rtol=1e-4)
        assert len(np.unique(rows)) > 0.99 * rows.size
    np.testing.assert_array_equal(calls[0][1], calls[1][1])
    assert not np.isin(calls[0][1][:4], calls[2][1][:4]).mean() > 0.01
