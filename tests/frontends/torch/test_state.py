"""Buffers that a program changes are states; numbers among the inputs are constants; ranges of sizes are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.modules import Module, array, compare, exported, numbers  # noqa: E402

import weft  # noqa: E402

nn = torch.nn


class Counter(nn.Module):  # type: ignore[misc, name-defined]
    """A module with a state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.ones(2))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return x + self.count


def test_a_buffer_is_a_state_that_begins_with_its_value() -> None:
    model = weft.compile(exported(Counter(), [torch.zeros(2)]))
    state = model.new_state()
    for k in (2, 3):
        np.testing.assert_array_equal(model.run([np.zeros(2, np.float32)], state=state)[0], np.full(2, k, np.float32))


def test_statistics_of_training_are_states() -> None:
    norm, x = nn.BatchNorm2d(4).train(), numbers(2, 4, 3, 3)
    model = weft.compile(torch.export.export(norm, (x,)))
    state = model.new_state()
    compare([model.run([array(x)], state=state)[0]], [array(norm(x))])
    np.testing.assert_allclose(state["running_var"], array(norm.running_var), rtol=1e-5)


def test_a_number_for_an_input_is_a_constant() -> None:
    model = weft.compile(torch.export.export(Module(lambda x, n: x * n), (numbers(3), 3)))
    compare([np.asarray(model(array(numbers(3))))], [array(numbers(3) * 3)])


def test_ranges() -> None:
    program = exported(Module(lambda x: x * 2), [numbers(3)], (({0: torch.export.Dim("n", min=3, max=8)},),))
    model = weft.compile(program)
    assert np.asarray(model(np.ones(8, np.float32))).tolist() == [2.0] * 8
    with pytest.raises(weft.InputError, match="was compiled for 3 to 8"):
        model(np.ones(9, np.float32))
