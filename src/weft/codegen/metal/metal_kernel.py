"""Writes the definition of a kernel in Metal Shading Language.

Buffer n of the kernel is bound at index n, from where it begins; the numbers, of 64 bits each in the order of the parameters,
follow as one buffer.
"""

from __future__ import annotations

from math import prod
from typing import Final

from weft.codegen.c_family import accesses, expressions
from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.kernel_facts import check_buffers, threads_of
from weft.codegen.c_family.statements import pointer_type, write
from weft.codegen.c_family.writer import Writer
from weft.codegen.metal.metal_dialect import BLOCK, THREAD
from weft.codegen.metal.simdgroup_products import NUMBER, PARAMETERS, has_products
from weft.loop import Buffer, Function

WRITERS: Final = (accesses, expressions)
"""The modules that register how each kind of expression is written, when they are imported."""

NUMBERS: Final = "weft_numbers"


def define_kernel(w: Writer, fn: Function) -> str:
    """Returns the definition of a kernel; raises `InputError` for one with more buffers than can be bound."""
    check_buffers(w, fn)
    params: list[str] = []
    for p in fn.params:
        if isinstance(p, Buffer):
            params.append(f"{pointer_type(w, p)}{w.declare(p)} [[buffer({len(params)})]]")
    numbers = [p for p in fn.params if not isinstance(p, Buffer)]
    for n, p in enumerate(numbers):
        kind, name = scalar_type(p.dtype), w.declare(p)
        w.local(name, f"const {kind} {name} = ({kind}){NUMBERS}[{n}];")
    if numbers:
        params.append(f"constant int64_t *{NUMBERS} [[buffer({len(params)})]]")
    params.append(f"uint3 {BLOCK} [[threadgroup_position_in_grid]]")
    if has_products(fn):
        params += PARAMETERS
        w.local(THREAD, f"const uint3 {THREAD} = {NUMBER};")
    else:
        params.append(f"uint3 {THREAD} [[thread_position_in_threadgroup]]")
    write(w, fn.body)
    head = f"[[max_total_threads_per_threadgroup({prod(threads_of(fn))})]]"
    return f"{head}\nkernel void fn_{identifier(fn.name)}({', '.join(params)}) {{\n{w.body()}\n}}"
