"""Writes a whole program as one LLVM module."""

from __future__ import annotations

from typing import Final

from weft.codegen.backend import Source
from weft.codegen.entry_spec import entry_of
from weft.codegen.llvm.core.affine_operands import Affine
from weft.codegen.llvm.core.emitter import Emitter, Memory
from weft.codegen.llvm.expressions import (
    conditional_values,
    conversions,
    dot_products,
    integer_division,
    native_functions,
    operators,
    shuffles,
)
from weft.codegen.llvm.memory import addresses, loads
from weft.codegen.llvm.memory.promotable import promotable
from weft.codegen.llvm.statements.calls import is_task, param_type, quoted, signature, task_wrapper
from weft.codegen.llvm.statements.control_flow import emit
from weft.codegen.llvm.statements.entry_wrapper import entry_wrapper
from weft.loop import Buffer, Export, For, Function, MayAlias, Program, While, find_note, statements
from weft.targets import Target

_METADATA: Final = '!0 = !{}\n!1 = !{!"branch_weights", i32 2000, i32 1}\n'

EMITTERS: Final = (
    addresses,
    conditional_values,
    conversions,
    dot_products,
    integer_division,
    loads,
    native_functions,
    operators,
    shuffles,
)
"""The modules that register how each kind of expression is emitted, when they are imported."""


def llvm_text(program: Program, target: Target) -> str:
    """Returns *program*, whose functions are flat, as LLVM IR for *target*."""
    return write_module(program, target).text


def write_module(program: Program, target: Target) -> Source:
    """Writes all functions of *program*; the first, and any with the note `Export`, can be called from outside."""
    signatures = {fn.name: signature(fn) for fn in program.functions}
    parts: list[str] = []
    emitters: list[Emitter] = []

    def emitter(name: str) -> Emitter:
        made = Emitter(target, name, signatures)
        emitters.append(made)
        return made

    for fn in program.functions:
        spec = entry_of(fn)
        exported = spec is None and (fn is program.entry or find_note(fn.notes, Export) is not None)
        parts.append(_define(emitter(fn.name), fn, exported=exported))
        if is_task(fn):
            parts.append(task_wrapper(emitter(fn.name), fn))
        if spec is not None:
            parts.append(entry_wrapper(emitter(fn.name), fn, spec))
    declared = {symbol: text for e in emitters for symbol, text in e.globals.items()}
    head = [f'target triple = "{target.isa.triple}"', *declared.values()]
    text = "\n".join([*head, *parts, _attributes(target), _METADATA])
    return Source(text, tuple(sorted({a for e in emitters for a in e.asserts})), _is_straight(program))


def _is_straight(program: Program) -> bool:
    """Tells whether *program* is a host program without loops."""
    if not any(entry_of(f) for f in program.functions):
        return False
    return not any(isinstance(x, For | While) for f in program.functions for x in statements(f.body))


def _define(f: Emitter, function: Function, *, exported: bool) -> str:
    may_alias = find_note(function.notes, MayAlias) is not None
    shared = f.new_root()
    params = ["ptr noundef %ctx"]
    for i, p in enumerate(function.params):
        name = f"%p{i}"
        if isinstance(p, Buffer):
            f.buffers[p] = Memory(name, shared if may_alias else f.new_root(), Affine(0))
            params.append(f"ptr {'' if may_alias else 'noalias '}noundef {name}")
        else:
            f.bind(p, name)
            params.append(f"{param_type(p)} {name}")
            if is_task(function) and i < 2:
                f.build.nonnegative.add(name)
    f.registers.kinds.update(promotable(function.body))
    emit(f, function.body)
    f.build.block.end = "ret i32 0"
    linkage = "hidden" if exported else "internal"
    name = quoted(function.name)
    return f"define {linkage} i32 @{name}({', '.join(params)}) #0 {{\n{f.build.body()}\n}}"


def _attributes(target: Target) -> str:
    """Returns the attributes of all functions: the machine's features, and that no library is to be called."""
    pairs = {
        "target-cpu": target.isa.cpu,
        "tune-cpu": target.core.tune,
        "target-features": ",".join(target.isa.features),
        "prefer-vector-width": str(target.isa.vector_bits),
        "min-legal-vector-width": str(target.isa.vector_bits),
        "no-builtins": None,
        "frame-pointer": "none",
    }
    texts = [f'"{k}"' if v is None else f'"{k}"="{v}"' for k, v in pairs.items()]
    return f"attributes #0 = {{ nounwind {' '.join(texts)} }}"
