"""Writes the kernels of a program in OpenCL C."""

from __future__ import annotations

from weft.codegen.backend import Source
from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.kernel_source import threads_of, write_kernels
from weft.codegen.c_family.statements import pointer_type, write
from weft.codegen.c_family.writer import Writer
from weft.codegen.opencl.statements import OPENCL
from weft.loop import Buffer, Function, MayAlias, Program, find_note
from weft.targets import Target


def write_source(program: Program, target: Target) -> Source:
    """Writes all functions of *program* that are kernels, with a comment that tells `join_kernels` what they need."""
    return write_kernels(program, target, OPENCL, _define)


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
    shape = ", ".join([str(n) for n in threads_of(fn)])
    head = f"__attribute__((reqd_work_group_size({shape})))\nkernel void fn_{identifier(fn.name)}({', '.join(params)})"
    return f"{head} {{\n{w.body()}\n}}"
