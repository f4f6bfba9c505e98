"""The versions that code made by LLVM depends on."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from weft.targets import Target


def facts(target: Target) -> str:
    """Returns the version of the package with LLVM, whatever the target."""
    return f"llvmlite {_installed()}"


@cache
def _installed() -> str:
    """Returns the version that is installed: to read it takes a millisecond, and every kernel's key has it."""
    return version("llvmlite")
