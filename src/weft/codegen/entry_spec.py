"""The C entry points of a model: wrappers that read the tensors' descriptors and call a loop-IR function.

A function with the note `Entry("main", args)` or `Entry("plan", args)` gets a wrapper `weft_main` or `weft_plan` of the C
signature `i32 (ctx, const weft_tensor *in, weft_tensor *out)`. *args* name, in a word for each parameter, the wrapper's argument:

    in2, out0        (a buffer) the data of input 2, of output 0
    in2.shape        (an i64 buffer) the sizes of input 2; those of an output are for the plan to fill in
    in2.1            (an i64) size 1 of input 2
    arena constants  (buffers) the planned memory and the packed weights
    constants@1      (a buffer) those in the memory of device 1, where a host program is replayed
    arena_needed     (an i64 buffer of one) where the plan leaves the bytes of arena it wants
    outside          (an i32 buffer of one) set by kernels where a watched number is outside of its limits
    arena_bytes threads   (an i64) as the context has them
"""

from __future__ import annotations

from typing import Final

from weft.loop import Entry, Function, find_note

KINDS: Final = ("main", "plan")


def entry_of(function: Function) -> Entry | None:
    """Returns how *function* is entered from C, or None if it is not."""
    return find_note(function.notes, Entry)
