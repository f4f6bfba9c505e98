"""Writes the kernels of a program in OpenCL C, with a comment that tells `join_kernels` what their source needs at its head."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from weft.codegen.backend import Source
from weft.codegen.c_family import accesses, expressions
from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.statements import pointer_type, write
from weft.codegen.c_family.writer import Needs, Writer
from weft.codegen.opencl.statements import OPENCL
from weft.ir import Const
from weft.loop import Buffer, For, Function, Kernel, MayAlias, Program, Thread, find_note, statements
from weft.targets import Target

WRITERS: Final = (accesses, expressions)
"""The modules that register how each kind of expression is written, when they are imported."""


@dataclass(frozen=True)
class KernelFacts:
    """Facts beside the text of a program's kernels: the helpers that they call, and their names."""

    helpers: tuple[str, ...]
    kernels: tuple[str, ...]


def write_kernels(program: Program, target: Target) -> Source:
    """Writes all functions of *program* that are kernels."""
    needs = Needs()
    kernels = [f for f in program.functions if find_note(f.notes, Kernel) is not None]
    text = "\n\n".join([_define(Writer(target, f.name, needs, OPENCL), f) for f in kernels])
    facts = KernelFacts(tuple(sorted(needs.helpers)), tuple([f.name for f in kernels]))
    return Source(f"/* {json.dumps(facts.__dict__)} */\n{text}\n")


def read_facts(text: str) -> tuple[KernelFacts, str]:
    """Returns the facts in the comment at the head of a program's text, and the rest."""
    head, _, rest = text.partition("\n")
    return KernelFacts(**{k: tuple(v) for k, v in json.loads(head[3:-3]).items()}), rest


def _define(w: Writer, fn: Function) -> str:
    """Returns the definition of a kernel, which takes a buffer as a block and the bytes into it at which the buffer begins."""
    restrict = "" if find_note(fn.notes, MayAlias) else "restrict "
    params = []
    for p in fn.params:
        name = w.declare(p)
        if not isinstance(p, Buffer):
            params.append(f"{scalar_type(p.dtype)} {name}")
            continue
        block, at, kind = w.fresh(f"{name}_block"), w.fresh(f"{name}_at"), pointer_type(w, p)
        params += [f"global uchar *{block}", f"int64_t {at}"]
        w.local(name, f"{kind}{restrict}const {name} = ({kind})({block} + {at});")
    write(w, fn.body)
    shape = ", ".join([str(n) for n in _threads(fn)])
    head = f"__attribute__((reqd_work_group_size({shape})))\nkernel void fn_{identifier(fn.name)}({', '.join(params)})"
    return f"{head} {{\n{w.body()}\n}}"


def _threads(fn: Function) -> list[int]:
    """Returns how many threads a block has along x, y and z."""
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
