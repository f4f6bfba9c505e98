"""The backends by name. A backend is one folder, and one line here; nothing else names it."""

from __future__ import annotations

from typing import Final

from weft.support.errors import ToolchainError
from weft.support.lazy_import import resolve
from weft.targets import Target

BACKENDS: Final[dict[str, str]] = {
    "c": "weft.codegen.c",
    "cuda": "weft.codegen.cuda",
    "llvm": "weft.codegen.llvm",
    "metal": "weft.codegen.metal",
    "null": "weft.codegen.null",
    "opencl": "weft.codegen.opencl",
    "wgsl": "weft.codegen.wgsl",
}
"""Packages, imported when first used; each has a module `backend` with `BACKEND`, and a module `facts` (see `backend`)."""


def package_of(target: Target) -> str:
    """Returns the package of the backend that makes code for *target*; raises `ToolchainError` for a target without one."""
    if target.backend not in BACKENDS:
        raise ToolchainError(
            f"the target {target.name} has no backend: there are {', '.join(BACKENDS)}",
            hint="schedule, lower and interpret its programs; no code can be made of them",
        )
    return BACKENDS[target.backend]


def backend_facts(target: Target) -> str:
    """Returns the versions of the tools that code for *target* depends on, without importing the backend."""
    facts: str = resolve(f"{package_of(target)}.facts:facts")(target)
    return facts
