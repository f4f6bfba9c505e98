"""Programs to code, by the backend of their target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.codegen.backend import Backend, Code, Image, Module
from weft.codegen.backends import package_of
from weft.support.lazy_import import resolve
from weft.targets import Target

if TYPE_CHECKING:  # who asks the cache needs no loops
    from weft.loop import Program


def backend_of(target: Target) -> Backend:
    """Returns the backend that makes code for *target*; raises `ToolchainError` for a target without one."""
    found: Backend = resolve(f"{package_of(target)}.backend:BACKEND")
    return found


def compile_program(program: Program, target: Target) -> Module:
    """Compiles *program*, whose functions are flat, by itself.

    Raises `LoweringError` for a node that has no translation, `ToolchainError` where the compiler refuses it.
    """
    backend = backend_of(target)
    return backend.compile(backend.write(program, target), target)


def link(modules: Sequence[Module], target: Target) -> Code:
    """Returns *modules* joined; raises `ToolchainError` for symbols that are undefined or defined twice."""
    return backend_of(target).link(modules, target)


def link_here(modules: Sequence[Module], target: Target) -> Image:
    """Returns *modules* joined to an image for this machine; raises `ToolchainError` where that takes a tool that is missing."""
    backend = backend_of(target)
    return backend.image(backend.link(modules, target), target)
