"""PyTorch as a frontend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch.export import ExportedProgram

from weft.frontends.frontend import Exporter, Shapes
from weft.frontends.torch.archive import read_program
from weft.frontends.torch.export_module import export_module
from weft.frontends.torch.importer import from_exported_program
from weft.graph import Graph
from weft.support.errors import InputError, ModelError


class TorchFrontend:
    """Programs that `torch.export.export` made, and files in which `torch.export.save` keeps them."""

    def files(self, path: Path) -> list[Path]:
        """Returns the path: a program is one file."""
        return [path]

    def export(self, model: Any, inputs: Sequence[Any] | Mapping[str, Any], shapes: Shapes | None) -> ExportedProgram:
        """Exports a module, called with *inputs*; raises `ModelError` where PyTorch can't, or *model* is no module."""
        if not isinstance(model, torch.nn.Module):
            raise InputError("example_inputs are given for a model that is exported already", hint="leave them out")
        return export_module(model, inputs, shapes)

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports a program; raises `ModelError` for a module that was not exported."""
        if isinstance(model, str | Path | bytes):
            model = read_program(model)
        if not isinstance(model, ExportedProgram):
            raise ModelError(
                f"a {type(model).__name__} is a module of PyTorch's, not an exported program",
                hint="give inputs to try it with: weft.compile(module.eval(), example_inputs=(x,))",
            )
        return from_exported_program(model, shapes)


FRONTEND: Final[Exporter] = TorchFrontend()
