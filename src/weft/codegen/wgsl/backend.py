"""WGSL as a backend: source text of kernels, which the device's driver compiles when a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Code, Image, Module, Rewrite, Source, SourceCode
from weft.codegen.c_family.kernel_facts import join_kernels, read_facts, write_kernels
from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.statements import WGSL
from weft.codegen.wgsl.wgsl_helpers import helpers
from weft.codegen.wgsl.wgsl_kernel import define_kernel
from weft.loop import Program
from weft.support.errors import ToolchainError
from weft.targets import Target


class WGSLBackend:
    """Kernels in WGSL; see `codegen.backend.Backend`."""

    name = "wgsl"

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns none: the driver's compiler unrolls loops."""
        return ()

    def write(self, program: Program, target: Target) -> Source:
        """Writes the kernels of *program*, without the helpers that they call."""
        return write_kernels(program, lambda f, needs: define_kernel(KernelWriter(target, f.name, needs, WGSL), f))

    def compile(self, source: Source, target: Target) -> Module:
        """Returns the text itself: the driver of the device compiles it."""
        facts, _ = read_facts(source.text)
        return Module("wgsl", source.text.encode(), source.messages, entries=facts.kernels)

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Joins modules to one text: the helpers, then the kernels, each of which is a module of the language with them."""
        joined = join_kernels(modules)
        return SourceCode("wgsl", "\n".join([helpers(joined.helpers), *joined.texts]), joined.symbols)

    def image(self, code: Code, target: Target) -> Image:
        """Raises `ToolchainError`: a device's code is no part of this process."""
        raise ToolchainError(
            "kernels in WGSL are no machine code of this processor", hint="weft.compile loads them on the device"
        )

    def listing(self, program: Program, target: Target) -> str:
        """Returns the source of *program*'s kernels."""
        return read_facts(self.write(program, target).text)[1]


BACKEND: Final = WGSLBackend()
