"""Writes a whole program as C functions, with a comment that tells `unit` the declarations needed at the head of their file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from weft.codegen.backend import Source
from weft.codegen.c.entry_wrapper import entry_wrapper
from weft.codegen.c.statements import C, is_task
from weft.codegen.c_family import accesses, expressions
from weft.codegen.c_family.c_types import identifier, scalar_type
from weft.codegen.c_family.expressions import lanes
from weft.codegen.c_family.statements import pointer_type, write
from weft.codegen.c_family.writer import Needs, Value, Writer
from weft.codegen.entry_spec import entry_of
from weft.ir import Var, post_order
from weft.loop import Buffer, Export, Function, MayAlias, Param, Program, View, find_note
from weft.support.dtypes import u8
from weft.targets import Target

WRITERS: Final = (accesses, expressions)
"""The modules that register how each kind of expression is written, when they are imported."""


@dataclass(frozen=True)
class Facts:
    """Facts beside a program's text: the declarations it needs, its functions, those it exports, and those it imports.

    `entries` are the C functions that the runtime calls, which keep their names; all else is known as `fn_NAME`.
    """

    helpers: tuple[str, ...]
    vectors: tuple[str, ...]
    includes: tuple[str, ...]
    functions: tuple[str, ...]
    exports: tuple[str, ...]
    calls: tuple[str, ...]
    entries: tuple[str, ...]


def write_module(program: Program, target: Target) -> Source:
    """Writes all functions of *program*; the first, and any with the note `Export`, can be called from outside."""
    needs = Needs()
    tasks = {f.name: f for f in program.functions if is_task(f)}
    heads, bodies = [], []
    asserts: set[tuple[int, str]] = set()
    calls: set[str] = set()
    exports, entries = [], []
    for fn in program.functions:
        w = Writer(target, fn.name, needs, C)
        w.tasks = tasks
        spec = entry_of(fn)
        exported = spec is None and (fn is program.entry or find_note(fn.notes, Export) is not None)
        exports += [fn.name] if exported else []
        head, body = _define(w, fn, "WEFT_EXPORT" if exported else "static")
        heads.append(f"{head};")
        if is_task(fn):
            heads.append(_task_types(w, fn))
        bodies.append(body)
        if spec is not None:
            entries.append(spec.symbol)
            bodies.append(entry_wrapper(w, fn, spec))
        asserts |= w.asserts
        calls |= w.calls
    names = [fn.name for fn in program.functions]
    facts = Facts(
        tuple(sorted(needs.helpers)),
        tuple(sorted(needs.vectors)),
        tuple(sorted(needs.includes)),
        tuple(names),
        tuple(exports),
        tuple(sorted(calls - set(names))),
        tuple(entries),
    )
    text = "\n\n".join(["\n".join(heads), *bodies])
    return Source(f"/* {json.dumps(facts.__dict__)} */\n{text}\n", tuple(sorted(asserts)))


def read_facts(text: str) -> tuple[Facts, str]:
    """Returns the facts in the comment at the head of a program's text, and the rest."""
    head, _, rest = text.partition("\n")
    return Facts(**{k: tuple(v) for k, v in json.loads(head[3:-3]).items()}), rest


def _define(w: Writer, fn: Function, linkage: str) -> tuple[str, str]:
    """Returns the declaration of a function, and its definition."""
    w.has_puns = _has_puns(fn)
    restrict = "" if find_note(fn.notes, MayAlias) else "restrict "
    params = ["weft_ctx *ctx"]
    for p in fn.params:
        name = w.declare(p)
        if isinstance(p, Buffer):
            params.append(f"{pointer_type(w, p)}{restrict}{name}")
        else:
            w.known[-1][p] = _lane_names(w, p, name)
            params += [f"{scalar_type(p.dtype)} {x}" for x in lanes(w, p)]
    write(w, fn.body)
    head = f"{linkage} int32_t fn_{identifier(fn.name)}({', '.join(params)})"
    return head, f"{head} {{\n{w.body()}\n  return 0;\n}}".replace("{\n\n", "{\n")


def _lane_names(w: Writer, p: Var, name: str) -> Value:
    """Returns the names of a parameter's lanes, each of which is a parameter in C."""
    return name if p.dtype.lanes == 1 else tuple([w.fresh(f"{name}_{n}") for n in range(p.dtype.lanes)])


def _has_puns(fn: Function) -> bool:
    """Tells whether a function reads memory of one type as another; bytes may hold anything."""
    views = [s for s in post_order(fn.body) if isinstance(s, View)]
    return any(s.source.dtype.element not in (s.buffer.dtype.element, u8) for s in views)


def _task_types(w: Writer, task: Function) -> str:
    """Returns the arguments of a task as a structure, and the function that unpacks them."""
    name, captured = f"fn_{identifier(task.name)}", task.params[2:]
    kinds = [kind for p in captured for kind in _field_types(w, p)]
    fields = [f"{kind}a{n};" for n, kind in enumerate(kinds)] or ["char unused;"]
    given = ", ".join(["ctx", "begin", "end", *[f"a->a{n}" for n in range(len(kinds))]])
    unpack = f"  const struct {name}__args *a = args;\n" if captured else "  (void)args;\n"
    return (
        f"struct {name}__args {{ {' '.join(fields)} }};\n"
        f"static int32_t {name}__task(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {{\n"
        f"{unpack}  return {name}({given});\n}}"
    )


def _field_types(w: Writer, p: Param) -> list[str]:
    return [pointer_type(w, p)] if isinstance(p, Buffer) else [f"{scalar_type(p.dtype)} "] * p.dtype.lanes
