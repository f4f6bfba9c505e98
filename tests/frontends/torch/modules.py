"""Modules of PyTorch, exported, and compared with what Weft makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import torch

from weft.driver.checking.reference import run_graph
from weft.frontends.torch.importer import from_exported_program
from weft.graph import Graph

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Tensors: TypeAlias = Sequence[torch.Tensor]


class Module(torch.nn.Module):  # type: ignore[misc]
    """A function of tensors as a module, with its weights."""

    def __init__(self, function: Callable[..., Any], **weights: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, w in weights.items():
            self.register_buffer(name, w)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs, *self.buffers())


def exported(module: torch.nn.Module, inputs: Tensors, dynamic: Any = None) -> Any:
    """Returns the exported program of a module, made for inference."""
    return torch.export.export(module.eval(), tuple(inputs), dynamic_shapes=dynamic)


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Returns normally distributed numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def array(t: torch.Tensor) -> Array:
    """Returns a tensor's elements."""
    if t.dtype is torch.bfloat16:
        return t.detach().contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return t.detach().numpy()  # type: ignore[no-any-return]


def wanted(module: torch.nn.Module, inputs: Tensors) -> list[Array]:
    """Returns what PyTorch computes, as a flat list."""
    made = module.eval()(*inputs)
    return [array(t) for t in torch.utils._pytree.tree_leaves(made)]


def check(program: Any, module: torch.nn.Module, inputs: Tensors, rtol: float = 1e-4, atol: float = 1e-5) -> Graph:
    """Compares the graph of a program, interpreted, with its module: types, shapes and values; returns the graph."""
    graph = from_exported_program(program)
    made = run_graph(graph, {v.name: array(x) for v, x in zip(graph.inputs, inputs, strict=True)})
    compare(made, wanted(module, inputs), rtol, atol)
    return graph


def compare(made: Sequence[Array], exact: Sequence[Array], rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Checks types, shapes and values."""
    assert [(a.dtype, a.shape) for a in made] == [(a.dtype, a.shape) for a in exact]
    for a, b in zip(made, exact, strict=True):
        if a.dtype.kind in "fV":
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(a, b)
