"""The versions that code made by LLVM depends on."""

from __future__ import annotations

from importlib.metadata import version

from weft.targets import Target


def facts(target: Target) -> str:
    """Returns the version of the package with LLVM, whatever the target."""
    return f"llvmlite {version('llvmlite')}"
