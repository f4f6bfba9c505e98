"""`torch.cond`, `while_loop`, `scan` and `map` become regions, and compute as PyTorch does."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.modules import Module, check, exported, numbers  # noqa: E402
from torch._higher_order_ops.map import map as of_each_row  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

X = numbers(3, 4)


def agrees(function: Any, operator: str, *inputs: Any) -> None:
    """Checks that a function agrees, and that its graph has a node of *operator*."""
    module = Module(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        program = exported(module, list(inputs))
        graph = check(program, module, list(inputs))
    assert operator in {n.operator.name for n in graph.nodes}


@pytest.mark.parametrize("sign", [1, -1])
def test_branches(sign: int) -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,))

    agrees(function, "if", sign * X.abs())


def test_a_loop_while_a_condition_holds() -> None:
    def function(x: Any, y: Any) -> Any:
        start = (torch.zeros((), dtype=torch.int64), x)
        return while_loop(lambda k, s: k < s.abs().sum(), lambda k, s: (k + 1, s * 0.9 + y), start)

    agrees(function, "loop", X, numbers(3, 4, seed=1))


def test_a_scan_of_rows() -> None:
    def function(x: Any) -> Any:
        return scan(lambda s, row: (s + row, s * row), torch.zeros(4), x)

    agrees(function, "loop", X)


def test_a_function_of_each_row() -> None:
    agrees(lambda x, y: of_each_row(lambda row, y: row @ y, x, y), "loop", X, numbers(4, 2, seed=1))


def test_regions_that_are_compiled_once_are_a_part_of_the_graph() -> None:
    region = torch.compiler.nested_compile_region(lambda x: x.sin() * 2)
    agrees(lambda x: region(region(x)), "sin", X)
