"""Wrappers with the signature that the runtime calls, around the entry functions that `codegen.entry_spec` describes."""

from __future__ import annotations

import re
from typing import Final

from weft.codegen.c_family.c_types import identifier
from weft.codegen.c_family.writer import Writer
from weft.codegen.entry_spec import KINDS
from weft.loop import Entry, Function

_WORD: Final = re.compile(r"(in|out)(\d+)(?:\.(shape|\d+))?$")
_CONTEXT: Final = {
    "arena": "ctx->arena",
    "constants": "(void *)ctx->constants",
    "arena_needed": "&ctx->arena_needed",
    "outside": "&ctx->outside",
    "arena_bytes": "ctx->arena_bytes",
    "threads": "ctx->threads",
}


def entry_wrapper(w: Writer, function: Function, spec: Entry) -> str:
    """Returns the text of the C entry point; raises `LoweringError` for words that do not fit the parameters."""
    if spec.kind not in KINDS:
        raise w.error(f"there is no entry point {spec.kind!r}", hint=f"use one of {', '.join(KINDS)}")
    if len(spec.args) != len(function.params):
        raise w.error(f"{len(function.params)} parameters are described by {len(spec.args)} words: {spec.args}")
    given = ", ".join(["ctx", *[_argument(w, word) for word in spec.args]])
    head = f"WEFT_EXPORT int32_t {spec.symbol}(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out)"
    sides = "".join([f"  (void){side};\n" for side in ("in", "out") if f"{side}[" not in given])
    return f"{head};\n{head} {{\n{sides}  return fn_{identifier(function.name)}({given});\n}}"


def _argument(w: Writer, word: str) -> str:
    if word in _CONTEXT:
        return _CONTEXT[word]
    match = _WORD.match(word)
    if match is None:
        raise w.error(f"the entry argument {word!r} is not understood")
    tensors, number, part = match[1], int(match[2]), match[3]
    if part is None:
        return f"{tensors}[{number}].data"
    return f"{tensors}[{number}].shape" + ("" if part == "shape" else f"[{int(part)}]")
