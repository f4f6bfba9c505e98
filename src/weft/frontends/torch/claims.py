"""Tells PyTorch's models by their classes, without the package torch."""

from __future__ import annotations

from typing import Final

from weft.frontends.content import is_instance

READS: Final = (
    "the path or the bytes of a .pt2 file, a torch.export.ExportedProgram, or a torch.nn.Module with example_inputs"
)

ARCHIVE: Final = b"PK\x03\x04"
"""How ZIP archives begin; those of PyTorch's that are no exported programs are refused with a hint."""

PROGRAM: Final = "torch.export.exported_program.ExportedProgram"
MODULE: Final = "torch.nn.modules.module.Module"


def claims(model: object, head: bytes) -> bool:
    """Tells whether *model* is an ExportedProgram, a module, or an archive as exported programs are saved in."""
    return head.startswith(ARCHIVE) or is_instance(model, PROGRAM) or is_instance(model, MODULE)
