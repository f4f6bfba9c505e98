"""Tells PyTorch's models by their classes, without the package torch."""

from __future__ import annotations

from typing import Final

from weft.frontends.content import first_member, is_instance

READS: Final = "a .pt2 file, a torch.export.ExportedProgram, or a torch.nn.Module with example_inputs"

PROGRAM: Final = "torch.export.exported_program.ExportedProgram"
MODULE: Final = "torch.nn.modules.module.Module"


def claims(model: object, head: bytes) -> bool:
    """Tells whether *model* is an ExportedProgram, a module, or a ZIP archive: those of other things are refused with a hint."""
    return first_member(head) != "" or is_instance(model, PROGRAM) or is_instance(model, MODULE)
