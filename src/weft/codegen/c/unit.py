"""Joins programs to one C file: one head for all, functions under unique names, each after its callees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Module, SourceCode, merge_messages
from weft.codegen.c.module_text import Facts, read_facts
from weft.codegen.c.prelude import HEAD
from weft.codegen.c_family.c_types import identifier, memory_type
from weft.codegen.c_family.helpers import helpers
from weft.support.dtypes import parse_dtype
from weft.support.errors import ToolchainError

_NAME: Final = re.compile(r"\bfn_(\w+?)(__args|__task)?\b")


def join(modules: Sequence[Module]) -> SourceCode:
    """Returns *modules* as one file; raises `ToolchainError` for functions that are undefined or defined twice."""
    parts = [read_facts(m.data.decode()) for m in modules]
    exported = _exports(modules, [facts for facts, _ in parts])
    missing = sorted({c for facts, _ in parts for c in facts.calls if c not in exported})
    if missing:
        raise ToolchainError(f"undefined symbols: {', '.join(missing)}", hint="link the modules that define them")
    names = [_own_names(n, m, facts, exported) for n, (m, (facts, _)) in enumerate(zip(modules, parts, strict=True))]
    bodies = [_renamed(text, own) for own, (_, text) in zip(names, parts, strict=True)]
    callers = [bool(facts.calls) for facts, _ in parts]
    ordered = [b for b, calls in zip(bodies, callers, strict=True) if not calls]
    ordered += [b for b, calls in zip(bodies, callers, strict=True) if calls]
    head = file_head([facts for facts, _ in parts])
    symbols = exported | {e: e for facts, _ in parts for e in facts.entries}
    return SourceCode("c", "\n".join([head, *ordered]), symbols, merge_messages(modules))


def file_head(facts: Sequence[Facts]) -> str:
    """Returns the head of a file of C programs."""
    includes = [f"#include <{name}>\n" for name in sorted({n for f in facts for n in f.includes})]
    vectors = [_vector_types(n) for n in sorted({n for f in facts for n in f.vectors})]
    return "".join(includes) + "\n".join([HEAD, *vectors, helpers({n for f in facts for n in f.helpers})])


def _vector_types(name: str) -> str:
    """Returns the declaration of a vector type, and of the same anywhere in memory."""
    dtype = parse_dtype(name)
    kind, size, align = memory_type(dtype), dtype.bytes, dtype.element.bytes
    return (
        f"typedef {kind} weft_{name} __attribute__((vector_size({size})));\n"
        f"typedef {kind} weft_{name}_u __attribute__((vector_size({size}), aligned({align}), may_alias));"
    )


def _exports(modules: Sequence[Module], facts: Sequence[Facts]) -> dict[str, str]:
    """Returns the C names of the functions that modules give one another."""
    exported: dict[str, str] = {}
    for m, of in zip(modules, facts, strict=True):
        for name in of.exports:
            known = dict(m.renamed).get(name, name)
            if known in exported:
                raise ToolchainError(f"the symbol {known} is defined twice", hint="link each module once")
            exported[known] = f"weft_k_{identifier(known)}"
    return exported


def _own_names(number: int, module: Module, facts: Facts, exported: dict[str, str]) -> dict[str, str]:
    """Returns the C names of the functions that a module's text mentions, by their names there."""
    names = {identifier(n): f"weft_m{number}_{identifier(n)}" for n in facts.functions}
    names |= {identifier(n): exported[dict(module.renamed).get(n, n)] for n in facts.exports}
    return names | {identifier(n): exported[n] for n in facts.calls}


def _renamed(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda m: names[m[1]] + (m[2] or ""), text)
