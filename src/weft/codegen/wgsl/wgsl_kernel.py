"""Writes a kernel in WGSL as a module of its own: its bindings, the memory of its blocks, and its code.

Binding 0 has a word for each buffer, the bytes from the begin of its binding to its own, and two words for each number, in the
order of the parameters, then a zero, which no compiler knows. Blocks are counted along x, and along y where x is full,
so that a grid may have any shape: the numbers of a block along its own axes follow from its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from weft.codegen.c_family.c_types import identifier
from weft.codegen.c_family.kernel_facts import bound_loops, check_buffers, threads_of
from weft.codegen.c_family.statements import write
from weft.codegen.wgsl.atomic_words import updated_buffers
from weft.codegen.wgsl.buffer_parts import Parts, count_parts
from weft.codegen.wgsl.expressions import low_word
from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.packed_accesses import QUAD, QUAD_TYPE, element_type, is_in_quads
from weft.codegen.wgsl.wgsl_types import WIDE, is_packed, packed_bits
from weft.ir import Const, post_order
from weft.loop import Buffer, Function, Load, Store, stores

WORD: Final = 4
"""Bytes of a word, in which shorter elements are packed."""

ROW: Final = 65535
"""Blocks along x; the runtime launches those beyond it along y (`runtime.devices.webgpu.MOST_BLOCKS`)."""


def define_kernel(f: KernelWriter, fn: Function) -> str:
    """Returns the definition of a kernel."""
    counts = [count_parts(p, f.target) for p in fn.params if isinstance(p, Buffer)]
    check_buffers(f, fn, sum(counts))
    f.written.update(s.buffer for s in stores(fn.body))
    f.updated.update(updated_buffers(fn.body))
    f.quads.update(b for b, found in _accesses(fn).items() if b not in f.updated and is_in_quads(b, found))
    bindings, words = _parameters(f, fn)
    _number_blocks(f, fn)
    write(f, fn.body)
    name = f"fn_{identifier(fn.name)}"
    head = [
        f"// kernel {name}: {len(bindings)} buffers{_parts_of(f, counts)}",
        f"struct Given {{ {', '.join([f'{w}: u32' for w in words])} }}",
        "@group(0) @binding(0) var<uniform> given: Given;",
        *bindings,
        *f.outside,
        *[line for parts in f.parts.values() for line in parts.functions()],
        f"@compute @workgroup_size({', '.join([str(n) for n in threads_of(fn)])})",
        f"fn {name}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {{",
    ]
    return "\n".join([*head, f.body(), "}"])


def _parts_of(f: KernelWriter, counts: Sequence[int]) -> str:
    """Returns the note of the parts of each buffer for the runtime, where any has several."""
    assert f.target.grid is not None
    several = max(counts, default=1) > 1
    return f", in {' '.join([str(n) for n in counts])} parts of {f.target.grid.buffer_bytes} bytes" if several else ""


def _accesses(fn: Function) -> dict[Buffer, list[Load | Store]]:
    """Returns the loads and stores of each buffer."""
    found: dict[Buffer, list[Load | Store]] = {}
    for n in post_order(fn.body):
        if isinstance(n, Load | Store):
            found.setdefault(n.buffer, []).append(n)
    return found


def _parameters(f: KernelWriter, fn: Function) -> tuple[list[str], list[str]]:
    """Declares the parameters; returns the bindings of buffers, and the names of the words in binding 0."""
    bindings: list[str] = []
    words: list[str] = []
    for p in fn.params:
        name = f.declare(p)
        if isinstance(p, Buffer):
            is_quad = p in f.quads
            kind = QUAD_TYPE[p.dtype.kind] if is_quad else element_type(f, p)
            each = _bytes(p) * (len(QUAD) if is_quad else 1)
            for part in _part_names(f, p, name, kind, each):
                bindings.append(
                    f"@group(0) @binding({len(bindings) + 1}) var<storage, read_write> {part}: array<{kind}>;"
                )
            words.append(f"{name}_at")
            f.begins[p] = f.fresh(f"{name}_begin")
            f.local(f.begins[p], f"let {f.begins[p]} = i32(given.{name}_at / {each}u);")
        else:
            f.local(name, f"let {name} = {WIDE}(given.{name}_low, given.{name}_high);")
            words += [f"{name}_low", f"{name}_high"]
    return bindings, [*words, "zero"]


def _part_names(f: KernelWriter, p: Buffer, name: str, kind: str, each: int) -> list[str]:
    """Returns the names of the bindings of a buffer, whose elements have so many bytes *each* in arrays; notes its parts."""
    names = [name, *[f.fresh(f"{name}_part") for _ in range(count_parts(p, f.target) - 1)]]
    if len(names) > 1:
        assert f.target.grid is not None
        assert f.target.grid.buffer_bytes is not None
        f.parts[p] = Parts(tuple(names), kind, f.target.grid.buffer_bytes // (WORD if is_packed(p.dtype) else each))
    return names


def _bytes(buffer: Buffer) -> int:
    return packed_bits(buffer.dtype) // 8 if is_packed(buffer.dtype) else buffer.dtype.bytes


def _number_blocks(f: KernelWriter, fn: Function) -> None:
    """Names the number of a block along each axis of the grid; a block beyond the grid, in its last row, ends."""
    loops = {axis[-1]: s for axis, s in bound_loops(fn) if axis.startswith("blockIdx.")}
    axes = [a for a in "xyz" if a in loops]
    if all(isinstance(s.extent, Const) for s in loops.values()):
        counts = [f"{int(s.extent.value)}u" for s in (loops[a] for a in axes) if isinstance(s.extent, Const)]
        is_row = prod([int(n[:-1]) for n in counts]) <= ROW
    else:
        counts, is_row = [f.temporary_word(f"u32({low_word(f, loops[a].extent)})") for a in axes], False
    place = "group.x"
    if not is_row:
        place = f.temporary_word(f"group.y * {ROW}u + group.x")
        f.line(f"if ({place} >= {' * '.join(counts)}) {{ return; }}")
    inner = "1u"
    for a, n in zip(axes, counts, strict=True):
        along = place if inner == "1u" else f"({place} / ({inner}))"
        f.block_numbers[a] = along if a == axes[-1] else f"{along} % {n}"
        inner = n if inner == "1u" else f"{inner} * {n}"
