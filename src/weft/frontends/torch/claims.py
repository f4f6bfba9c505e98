"""Tells PyTorch's models by their classes, without the package torch."""

from __future__ import annotations

from typing import Final

from weft.frontends.content import is_instance

READS: Final = "a torch.export.ExportedProgram"

PROGRAM: Final = "torch.export.exported_program.ExportedProgram"
MODULE: Final = "torch.nn.modules.module.Module"


def claims(model: object, head: bytes) -> bool:
    """Tells whether *model* is an ExportedProgram, or a module, which the frontend refuses with a hint."""
    return is_instance(model, PROGRAM) or is_instance(model, MODULE)
