"""LLVM as a backend: IR text, ELF objects, and one image, linked without a linker of the system's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Code, Image, Module, Rewrite, Source
from weft.codegen.llvm.ir_module import write_module
from weft.codegen.llvm.object_code import assembly, compile_module
from weft.codegen.objects import link
from weft.loop import Program
from weft.support.errors import ToolchainError
from weft.targets import Target


class LlvmBackend:
    """Machine code by way of LLVM, for every machine that it has; see `codegen.backend.Backend`."""

    name = "llvm"

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns none: unrolling of register tiles is left to the emitter."""
        return ()

    def write(self, program: Program, target: Target) -> Source:
        """Writes *program* as LLVM IR."""
        return write_module(program, target)

    def compile(self, source: Source, target: Target) -> Module:
        """Compiles LLVM IR to an ELF object; LLVM needs no interpreter lock."""
        return compile_module(source, target)

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Links ELF objects to one image."""
        return link(modules, target.caches.page)

    def image(self, code: Code, target: Target) -> Image:
        """Returns the image itself."""
        if not isinstance(code, Image):
            raise ToolchainError(f"{code.language} is no machine code", hint="this is a bug in Weft")
        return code

    def listing(self, program: Program, target: Target) -> str:
        """Returns the assembly of *program*."""
        return assembly(program, target)


BACKEND: Final = LlvmBackend()
