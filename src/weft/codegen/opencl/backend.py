"""OpenCL C as a backend: source text of kernels, which the device's driver compiles when a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Code, Image, Module, Rewrite, Source
from weft.codegen.c_family.kernel_source import read_facts
from weft.codegen.opencl.join_kernels import join
from weft.codegen.opencl.kernel_text import write_source
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
        return write_source(program, target)

    def compile(self, source: Source, target: Target) -> Module:
        """Returns the text itself: a source is made of all modules, and compiled by the driver of the device."""
        facts, _ = read_facts(source.text)
        return Module("opencl", source.text.encode(), source.messages, entries=facts.kernels)

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Joins modules to one source."""
        return join(modules)

    def image(self, code: Code, target: Target) -> Image:
        """Raises `ToolchainError`: a device's code is no part of this process."""
        raise ToolchainError(
            "kernels for OpenCL are no machine code of this processor", hint="weft.compile loads them on the device"
        )

    def listing(self, program: Program, target: Target) -> str:
        """Returns the source of *program*'s kernels."""
        return read_facts(write_source(program, target).text)[1]


BACKEND: Final = OpenCLBackend()
