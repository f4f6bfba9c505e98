"""Wrappers of C's signature around the functions that `codegen.entry_spec` describes: they read the tensors' descriptors."""

from __future__ import annotations

import re
from typing import Final

from weft.codegen import abi
from weft.codegen.entry_spec import KINDS
from weft.codegen.llvm.core.emitter import Emitter
from weft.codegen.llvm.statements.calls import param_type, quoted
from weft.codegen.llvm.statements.exits import context_field
from weft.loop import Entry, Function

_WORD: Final = re.compile(r"(in|out)(\d+)(?:\.(shape|\d+))?$")
_CONTEXT: Final = {"arena": abi.ARENA, "constants": abi.CONSTANTS}
_FIELDS: Final = {"arena_needed": abi.ARENA_NEEDED, "outside": abi.OUTSIDE}
"""Fields of the context that are passed by their address."""


def entry_wrapper(f: Emitter, function: Function, spec: Entry) -> str:
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
