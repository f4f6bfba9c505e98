"""The kernels of a program as text, with a comment that tells what their source needs at its head."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.codegen.backend import Source
from weft.codegen.c_family import accesses, expressions
from weft.codegen.c_family.dialect import Dialect
from weft.codegen.c_family.writer import Needs, Writer
from weft.ir import Const
from weft.loop import For, Function, Kernel, Program, Thread, find_note, statements
from weft.targets import Target

WRITERS: Final = (accesses, expressions)
"""The modules that register how each kind of expression is written, when they are imported."""


@dataclass(frozen=True)
class KernelFacts:
    """Facts beside the text of a program's kernels: the helpers that they call, and their names."""

    helpers: tuple[str, ...]
    kernels: tuple[str, ...]


def write_kernels(
    program: Program, target: Target, dialect: Dialect, define: Callable[[Writer, Function], str]
) -> Source:
    """Writes all functions of *program* that are kernels, each by *define*."""
    needs = Needs()
    kernels = [f for f in program.functions if find_note(f.notes, Kernel) is not None]
    text = "\n\n".join([define(Writer(target, f.name, needs, dialect), f) for f in kernels])
    facts = KernelFacts(tuple(sorted(needs.helpers)), tuple([f.name for f in kernels]))
    return Source(f"/* {json.dumps(facts.__dict__)} */\n{text}\n")


def read_facts(text: str) -> tuple[KernelFacts, str]:
    """Returns the facts in the comment at the head of a program's text, and the rest."""
    head, _, rest = text.partition("\n")
    return KernelFacts(**{k: tuple(v) for k, v in json.loads(head[3:-3]).items()}), rest


def threads_of(fn: Function) -> list[int]:
    """Returns how many threads a block of a kernel has along x, y and z."""
    found = {"x": 1, "y": 1, "z": 1}
    for s in statements(fn.body):
        note = find_note(s.notes, Thread) if isinstance(s, For) else None
        if (
            note is not None
            and note.axis.startswith("threadIdx.")
            and isinstance(s, For)
            and isinstance(s.extent, Const)
        ):
            found[note.axis[-1]] = int(s.extent.value)
    return list(found.values())
