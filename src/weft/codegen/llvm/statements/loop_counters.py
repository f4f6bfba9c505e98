"""Strength reduction of large loops: the pointers that a loop moves are its own phis, and LLVM's own pass finds nothing to do.

    loop:                                           loop:
      %i = phi i64 [ 0, ... ], [ %next, %loop ]       %p = phi ptr [ %A, ... ], [ %opaque, %loop ]
      %step = mul i64 %i, 64                   ->     ...
      %p = getelementptr i8, ptr %A, i64 %step        %next = getelementptr i8, ptr %p, i64 64
      ...                                             %opaque = call ptr @llvm.launder.invariant.group.p0(ptr %next)

LLVM's loop strength reduction takes up to three quarters of the time that LLVM needs for a register tile, and comes to the same
few pointers, as all addresses of a tile are constants away from these. It looks for values that each iteration adds a constant
to, and does not see these behind an intrinsic that is dropped when instructions are selected. Small loops are left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.llvm.core.emitter import Emitter
from weft.codegen.llvm.core.ir_builder import BasicBlock

MOST_REDUCED: Final = 24
"""Addresses computed in a loop, and registers used in it, up to which it is left to LLVM's loop strength reduction."""

_OPAQUE_INTEGER: Final = "@llvm.expect.i64"
_OPAQUE_POINTER: Final = "@llvm.launder.invariant.group.p0"


def is_large(inside: Sequence[BasicBlock], registers: int) -> bool:
    """Tells whether a loop of the blocks *inside*, which uses *registers*, is so large that LLVM takes long to reduce it."""
    used = registers
    for b in inside:
        if used > MOST_REDUCED:  # the number of all of them takes as long as writing them
            return True
        used += sum(["= getelementptr" in line for line in b.lines])
    return used > MOST_REDUCED


def move_pointers(f: Emitter, counter: str, preheader: BasicBlock, inside: Sequence[BasicBlock]) -> list[str]:
    """Turns the pointers that move with *counter*, which begins at zero, into phis; returns their definitions."""
    moved = f.build.moving[counter]
    for b in inside if moved else ():
        b.lines = [line for line in b.lines if line not in moved]
    return [
        f"  {p} = phi ptr [ {base}, %{preheader.label} ], [ {_advanced(f, p, stride)}, %{f.build.block.label} ]"
        for p, base, stride in moved.values()
    ]


def _advanced(f: Emitter, pointer: str, stride: int) -> str:
    """Returns the value of *pointer* in the next iteration, which LLVM does not see to be *stride* bytes on."""
    f.globals[_OPAQUE_POINTER] = f"declare ptr {_OPAQUE_POINTER}(ptr)"
    following = f.build.here(f"getelementptr i8, ptr {pointer}, i64 {stride}")
    return f.build.here(f"call ptr {_OPAQUE_POINTER}(ptr {following})")


def uncounted(f: Emitter, following: str) -> str:
    """Returns the next value of a loop's counter, which LLVM does not see to be *following*."""
    f.globals[_OPAQUE_INTEGER] = f"declare i64 {_OPAQUE_INTEGER}(i64, i64)"
    return f.build.here(f"call i64 {_OPAQUE_INTEGER}(i64 {following}, i64 0)")
