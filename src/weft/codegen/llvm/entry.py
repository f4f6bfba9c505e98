"""The C entry points of a model: wrappers that read the tensors' descriptors and call a loop-IR function.

A function annotated `("entry", "main")` or `("entry", "plan")` gets a wrapper `weft_main` or `weft_plan` of the C signature
`i32 (ctx, const weft_tensor *in, weft_tensor *out)`. Its annotation `("args", "in0 in0.1 out0 arena constants")` says, one word
for each parameter, what the wrapper passes:

    in2, out0        (a buffer) the data of input 2, of output 0
    in2.shape        (an i64 buffer) the sizes of input 2; those of an output are for the plan to fill in
    in2.1            (an i64) size 1 of input 2
    arena constants  (buffers) the planned memory and the packed weights
    arena_needed     (an i64 buffer of one) where the plan leaves the bytes of arena it wants
    outside          (an i32 buffer of one) what kernels set where a watched number is outside of its limits
    arena_bytes threads   (an i64) as the context has them
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.codegen.llvm import abi
from weft.codegen.llvm.calls import param_type, quoted
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.exits import context_field
from weft.loop.nodes import Function

KINDS: Final = ("main", "plan")
_WORD: Final = re.compile(r"(in|out)(\d+)(?:\.(shape|\d+))?$")
_CONTEXT: Final = {"arena": abi.ARENA, "constants": abi.CONSTANTS}
_FIELDS: Final = {"arena_needed": abi.ARENA_NEEDED, "outside": abi.OUTSIDE}
"""Fields of the context that are passed by their address."""


@dataclass(frozen=True)
class EntrySpec:
    """How a C entry point calls a function: the kind of entry, and a word for each parameter."""

    kind: str
    args: tuple[str, ...]

    @property
    def symbol(self) -> str:
        """The name of the C function."""
        return f"weft_{self.kind}"

    def annotations(self) -> tuple[tuple[str, str], ...]:
        """Returns the annotations that say the same on a function."""
        return ("entry", self.kind), ("args", " ".join(self.args))


def entry_of(function: Function) -> EntrySpec | None:
    """Returns how *function* is entered from C, or None if it is not."""
    notes = dict(function.annotations)
    kind = notes.get("entry")
    return None if kind is None else EntrySpec(str(kind), tuple(str(notes.get("args", "")).split()))


def entry_wrapper(f: Emitter, function: Function, spec: EntrySpec) -> str:
    """Returns the text of the C entry point; raises `LoweringError` for words that do not fit the parameters."""
    if spec.kind not in KINDS:
        raise f.error(f"there is no entry point {spec.kind!r}", hint=f"use one of {', '.join(KINDS)}")
    if len(spec.args) != len(function.params):
        raise f.error(f"{len(function.params)} parameters are described by {len(spec.args)} words: {spec.args}")
    given = ["ptr %ctx"]
    for word, p in zip(spec.args, function.params, strict=True):
        kind, x = _argument(f, word)
        if kind != param_type(p):
            raise f.error(f"the parameter {p.name} is {param_type(p)}, but {word!r} is {kind}")
        given.append(f"{kind} {x}")
    status = f.build.here(f"call i32 @{quoted(function.name)}({', '.join(given)})")
    f.build.block.end = f"ret i32 {status}"
    return f"define hidden i32 @{spec.symbol}(ptr %ctx, ptr %in, ptr %out) #0 {{\n{f.build.body()}\n}}"


def _argument(f: Emitter, word: str) -> tuple[str, str]:
    if word in _CONTEXT:
        return "ptr", _load(f, "ptr", context_field(f, _CONTEXT[word]))
    if word in _FIELDS:
        return "ptr", context_field(f, _FIELDS[word])
    if word == "arena_bytes":
        return "i64", _load(f, "i64", context_field(f, abi.ARENA_BYTES))
    if word == "threads":
        count = _load(f, "i32", context_field(f, abi.THREADS))
        return "i64", f.build.pure(f"sext i32 {count} to i64", count)
    match = _WORD.match(word)
    if match is None:
        raise f.error(f"the entry argument {word!r} is not understood")
    tensors, number, part = match[1], int(match[2]), match[3]
    tensor = abi.TENSOR_BYTES * number
    if part is None:
        return "ptr", _load(f, "ptr", _at(f, f"%{tensors}", tensor))
    shape = _load(f, "ptr", _at(f, f"%{tensors}", tensor + abi.TENSOR_SHAPE))
    return ("ptr", shape) if part == "shape" else ("i64", _load(f, "i64", _at(f, shape, 8 * int(part))))


def _at(f: Emitter, base: str, offset: int) -> str:
    return f.build.pure(f"getelementptr i8, ptr {base}, i64 {offset}", base)


def _load(f: Emitter, kind: str, where: str) -> str:
    return f.build.here(f"load {kind}, ptr {where}, align {4 if kind == 'i32' else 8}")
