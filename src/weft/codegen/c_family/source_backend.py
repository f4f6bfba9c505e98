"""Backends that leave a source text: kernels that the driver of whatever device runs them compiles when a model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.codegen.backend import Code, Image, Module, Rewrite, Source, SourceCode
from weft.codegen.c_family.kernel_facts import JoinedKernels, join_kernels, read_facts, write_kernels
from weft.codegen.c_family.writer import Needs
from weft.loop import Function, Program
from weft.support.errors import ToolchainError
from weft.targets import Target


@dataclass(frozen=True)
class SourceBackend:
    """A backend of one language of kernels; see `codegen.backend.Backend`.

    `language` is its name in messages. `define` writes a kernel, `whole` makes the source of a model of its kernels. `own_passes`
    come before.
    """

    name: str
    language: str
    define: Callable[[Function, Target, Needs], str]
    whole: Callable[[JoinedKernels], str]
    own_passes: Sequence[Rewrite] = ()

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns the language's own passes; the driver's compiler unrolls loops."""
        return self.own_passes

    def write(self, program: Program, target: Target) -> Source:
        """Writes the kernels of *program*, without the head of their source and the helpers that they call."""
        return write_kernels(program, lambda f, needs: self.define(f, target, needs))

    def compile(self, source: Source, target: Target) -> Module:
        """Returns the text itself: the driver of the device compiles it."""
        facts, _ = read_facts(source.text)
        return Module(self.name, source.text.encode(), source.messages, entries=facts.kernels)

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Joins modules to one source."""
        joined = join_kernels(modules)
        return SourceCode(self.name, self.whole(joined), joined.symbols)

    def image(self, code: Code, target: Target) -> Image:
        """Raises `ToolchainError`: a device's code is no part of this process."""
        raise ToolchainError(
            f"kernels in {self.language} are no machine code of this processor",
            hint="weft.compile loads them on the device",
        )

    def listing(self, program: Program, target: Target) -> str:
        """Returns the source of *program*'s kernels."""
        return read_facts(self.write(program, target).text)[1]
