"""Writes the kernels of a program in CUDA C++, and the whole source that NVRTC compiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Source
from weft.codegen.c_family import accesses, expressions
from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.helpers import helpers
from weft.codegen.c_family.kernel_facts import read_facts, threads_of, write_kernels
from weft.codegen.c_family.statements import pointer_type, write
from weft.codegen.c_family.writer import Writer
from weft.codegen.cuda.async_copies import COPY_HELPERS, COPY_MACROS
from weft.codegen.cuda.cuda_dialect import CUDA, OWN_HELPERS
from weft.codegen.cuda.cuda_head import HEAD
from weft.codegen.cuda.dependent_launches import write_wait
from weft.codegen.cuda.fragments import FRAGMENT_HELPERS, GATHER, MMA
from weft.codegen.cuda.group_products import GROUP_HELPERS, GROUP_MACROS, PRODUCT_MACROS
from weft.loop import Buffer, Function, MayAlias, Program, find_note
from weft.runtime.devices import dynamic_symbol
from weft.targets import Target

WRITERS: Final = (accesses, expressions)
"""The modules that register how each kind of expression is written, when they are imported."""


def write_source(program: Program, target: Target) -> Source:
    """Writes all functions of *program* that are kernels, with a comment that tells the resources of each."""
    return write_kernels(program, lambda f, needs: _define(Writer(target, f.name, needs, CUDA), f))


def whole_source(source: Source) -> str:
    """Returns the text of `write_source` with its head and its helpers, as NVRTC takes it."""
    facts, text = read_facts(source.text)
    return "\n".join([HEAD, *macros(facts.helpers), helpers(facts.helpers, OWN_HELPERS), text])


def macros(needs: Sequence[str]) -> list[str]:
    """Returns the macros of instructions that helpers called *needs*, and the statements beside them, are written with."""
    groups = dict.fromkeys([PRODUCT_MACROS[n.removeprefix("group_")] for n in needs if n in GROUP_HELPERS])
    found = [MMA] if set(needs) & set(FRAGMENT_HELPERS) else []
    found += [GATHER] if set(needs) & {*FRAGMENT_HELPERS, *GROUP_HELPERS} else []
    found += [COPY_MACROS] if set(needs) & {*COPY_HELPERS, *GROUP_HELPERS} else []
    return [*found, *([GROUP_MACROS, *groups] if groups else [])]


def code_arch(target: Target) -> str:
    """Returns the architecture that machine code is for, with its instructions that no later one has where these are used."""
    return f"{target.isa.cpu}a" if target.has("wgmma") else target.isa.cpu


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
    symbol = symbol_of(fn.name)
    asked = write_wait(w, fn, symbol)
    write(w, fn.body)
    x, y, z = threads_of(fn)
    if w.dynamic_bytes:
        asked += f'extern "C" __device__ unsigned int {dynamic_symbol(symbol)} = {w.dynamic_bytes};\n'
    memory = "  WEFT_DYNAMIC(weft_dynamic)\n" if w.dynamic_bytes else ""
    head = f'extern "C" __global__ void __launch_bounds__({x * y * z})\n{symbol}({", ".join(params)})'
    return f"{asked}{head} {{\n{memory}{w.body()}\n}}"
