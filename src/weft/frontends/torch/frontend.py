"""PyTorch as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from torch.export import ExportedProgram

from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.torch.importer import from_exported_program
from weft.graph import Graph
from weft.support.errors import ModelError


class TorchFrontend:
    """Programs that `torch.export.export` made."""

    def files(self, path: Path) -> list[Path]:
        """Returns the path: no file is claimed, so this is never asked for."""
        return [path]

    def to_graph(self, model: object, shapes: Shapes | None = None) -> Graph:
        """Imports an ExportedProgram; raises `ModelError` for a module that was not exported."""
        if not isinstance(model, ExportedProgram):
            raise ModelError(
                f"a {type(model).__name__} is a module of PyTorch's, not an exported program",
                hint="export it first, with inputs to try: torch.export.export(module.eval(), (x,))",
            )
        return from_exported_program(model, shapes)


FRONTEND: Final[Frontend] = TorchFrontend()
