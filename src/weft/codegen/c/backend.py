"""C99 as a backend: source text to compile elsewhere, and, with the system's C compiler, an image for this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Code, Image, Module, Rewrite, Source
from weft.codegen.c.compiler import image_of
from weft.codegen.c.module_text import read_facts, write_module
from weft.codegen.c.unit import join
from weft.loop import Program
from weft.targets import Target


class CBackend:
    """C99 source; see `codegen.backend.Backend`."""

    name = "c"

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns none: C's own compiler unrolls loops."""
        return ()

    def write(self, program: Program, target: Target) -> Source:
        """Writes the functions of *program*, without the head of their file."""
        return write_module(program, target)

    def compile(self, source: Source, target: Target) -> Module:
        """Returns the text itself: a file is made of all modules, and compiled as a whole."""
        facts, _ = read_facts(source.text)
        return Module("c", source.text.encode(), source.messages, entries=(*facts.exports, *facts.entries))

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Joins modules to one file."""
        return join(modules)

    def image(self, code: Code, target: Target) -> Image:
        """Compiles the file with the system's C compiler."""
        return code if isinstance(code, Image) else image_of(code, target.caches.page)

    def listing(self, program: Program, target: Target) -> str:
        """Returns the C source of *program*'s functions."""
        return read_facts(write_module(program, target).text)[1]


BACKEND: Final = CBackend()
