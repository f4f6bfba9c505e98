"""Writes the kernels of a program in CUDA C++, and the whole source that NVRTC compiles."""

from __future__ import annotations

from typing import Final

from weft.codegen.backend import Source
from weft.codegen.c_family import accesses, expressions
from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.helpers import helpers
from weft.codegen.c_family.kernel_facts import read_facts, threads_of, write_kernels
from weft.codegen.c_family.statements import pointer_type, write
from weft.codegen.c_family.writer import Writer
from weft.codegen.cuda.cuda_dialect import CUDA, OWN_HELPERS
from weft.codegen.cuda.cuda_head import HEAD
from weft.codegen.cuda.fragments import FRAGMENT_HELPERS, GATHER, MMA
from weft.loop import Buffer, Function, MayAlias, Program, find_note
from weft.targets import Target

WRITERS: Final = (accesses, expressions)
"""The modules that register how each kind of expression is written, when they are imported."""


def write_source(program: Program, target: Target) -> Source:
    """Writes all functions of *program* that are kernels, with a comment that tells what they need."""
    return write_kernels(program, lambda f, needs: _define(Writer(target, f.name, needs, CUDA), f))


def whole_source(source: Source) -> str:
    """Returns the text of `write_source` with its head and its helpers, as NVRTC takes it."""
    facts, text = read_facts(source.text)
    head = [HEAD, MMA, GATHER] if set(facts.helpers) & set(FRAGMENT_HELPERS) else [HEAD]
    return "\n".join([*head, helpers(facts.helpers, OWN_HELPERS), text])


def symbol_of(kernel: str) -> str:
    """Returns the name in compiled code of the kernel that a program calls *kernel*."""
    return f"fn_{identifier(kernel)}"


def _define(w: Writer, fn: Function) -> str:
    """Returns the definition of a kernel, which takes a buffer as the address at which it begins."""
    restrict = "" if find_note(fn.notes, MayAlias) else "__restrict__ "
    params = []
    for p in fn.params:
        name = w.declare(p)
        params.append(
            f"{pointer_type(w, p)}{restrict}{name}" if isinstance(p, Buffer) else f"{scalar_type(p.dtype)} {name}"
        )
    write(w, fn.body)
    x, y, z = threads_of(fn)
    head = f'extern "C" __global__ void __launch_bounds__({x * y * z})\n{symbol_of(fn.name)}({", ".join(params)})'
    return f"{head} {{\n{w.body()}\n}}"
