"""Programs that `torch.export.save` writes."""

from __future__ import annotations

import io
import warnings
from typing import Any, Final

import torch
from tests.frontends.fuzz.files import Files, one
from tests.frontends.torch.cases import CASES
from tests.frontends.torch.modules import Module, numbers

NAMES: Final = ("linear", "conv2d", "masked attention", "layer_norm", "products", "embedding")
"""Cases of several families of operators."""


def programs() -> list[Files]:
    """Returns files of the cases, of a network with a symbolic size, and of a branch."""
    made = [_saved(Module(CASES[n][0]), CASES[n][1]) for n in NAMES]
    rows = numbers(5, 3)
    layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4))
    made.append(_saved(layers, [rows], ({0: torch.export.Dim("b")},)))
    branch = Module(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)))
    return [*made, _saved(branch, [rows])]


def _saved(module: torch.nn.Module, inputs: Any, sizes: Any = None) -> Files:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module.eval(), tuple(inputs), dynamic_shapes=sizes), file)
    return one(file.getvalue(), "model.pt2")
