"""Writes the definition of a kernel in OpenCL C."""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family import accesses, expressions
from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.kernel_facts import threads_of
from weft.codegen.c_family.statements import pointer_type, write
from weft.codegen.c_family.writer import Writer
from weft.loop import Buffer, Function, MayAlias, find_note

WRITERS: Final = (accesses, expressions)
"""The modules that register how each kind of expression is written, when they are imported."""


def define_kernel(w: Writer, fn: Function) -> str:
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
    shape = ", ".join([str(n) for n in threads_of(fn)])
    head = f"__attribute__((reqd_work_group_size({shape})))\nkernel void fn_{identifier(fn.name)}({', '.join(params)})"
    return f"{head} {{\n{w.body()}\n}}"
