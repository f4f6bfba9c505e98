"""OpenCL C as a backend: source text of kernels, which the device's driver compiles when a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Code, Image, Module, Rewrite, Source, SourceCode
from weft.codegen.c_family.helpers import helpers
from weft.codegen.c_family.kernel_facts import join_kernels, read_facts, write_kernels
from weft.codegen.c_family.writer import Writer
from weft.codegen.opencl.kernel_text import define_kernel
from weft.codegen.opencl.opencl_head import HEAD
from weft.codegen.opencl.statements import OPENCL
from weft.loop import Program
from weft.support.errors import ToolchainError
from weft.targets import Target


class OpenCLBackend:
    """Kernels in OpenCL C; see `codegen.backend.Backend`."""

    name = "opencl"

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns none: the driver's compiler unrolls loops."""
        return ()

    def write(self, program: Program, target: Target) -> Source:
        """Writes the kernels of *program*, without the head of their source."""
        return write_kernels(program, lambda f, needs: define_kernel(Writer(target, f.name, needs, OPENCL), f))

    def compile(self, source: Source, target: Target) -> Module:
        """Returns the text itself: a source is made of all modules, and compiled by the driver of the device."""
        facts, _ = read_facts(source.text)
        return Module("opencl", source.text.encode(), source.messages, entries=facts.kernels)

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Joins modules to one source."""
        joined = join_kernels(modules)
        text = "\n".join([HEAD, helpers(joined.helpers), *joined.texts])
        return SourceCode("opencl", text, joined.symbols)

    def image(self, code: Code, target: Target) -> Image:
        """Raises `ToolchainError`: a device's code is no part of this process."""
        raise ToolchainError(
            "kernels for OpenCL are no machine code of this processor", hint="weft.compile loads them on the device"
        )

    def listing(self, program: Program, target: Target) -> str:
        """Returns the source of *program*'s kernels."""
        return read_facts(self.write(program, target).text)[1]


BACKEND: Final = OpenCLBackend()
