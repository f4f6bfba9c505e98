"""Counts its calls, and makes no code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Code, Image, Module, Rewrite, Source, SourceCode, merge_messages
from weft.loop import Program, print_program
from weft.support.errors import ToolchainError
from weft.targets import Target


class NullBackend:
    """See `codegen.backend.Backend`; `counts` has how often each step was asked for, by its name."""

    name = "null"

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def passes(self, target: Target) -> Sequence[Rewrite]:
        """Returns none."""
        self.counts["passes"] += 1
        return ()

    def write(self, program: Program, target: Target) -> Source:
        """Returns a source without text."""
        self.counts["write"] += 1
        return Source("")

    def compile(self, source: Source, target: Target) -> Module:
        """Returns an empty module."""
        self.counts["compile"] += 1
        return Module("null", source.text.encode(), source.messages)

    def link(self, modules: Sequence[Module], target: Target) -> Code:
        """Returns source code without text."""
        self.counts["link"] += 1
        return SourceCode("null", "", messages=merge_messages(modules))

    def image(self, code: Code, target: Target) -> Image:
        """Raises `ToolchainError`: there is nothing to run."""
        raise ToolchainError("the null backend makes no code that runs", hint="compile for another target")

    def listing(self, program: Program, target: Target) -> str:
        """Returns the program itself."""
        return print_program(program)


BACKEND: Final = NullBackend()
