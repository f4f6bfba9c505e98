"""Joins the kernels of several programs to one source, under unique names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weft.codegen.backend import Module, SourceCode
from weft.codegen.c_family.c_types import identifier
from weft.codegen.c_family.helpers import helpers
from weft.codegen.c_family.kernel_source import read_facts
from weft.codegen.opencl.opencl_head import HEAD
from weft.support.errors import ToolchainError

_NAME: Final = re.compile(r"\bfn_(\w+)\b")


def join(modules: Sequence[Module]) -> SourceCode:
    """Returns the kernels of *modules* as one source; raises `ToolchainError` for kernels of one name."""
    parts = [read_facts(m.data.decode()) for m in modules]
    symbols: dict[str, str] = {}
    bodies = []
    for m, (facts, text) in zip(modules, parts, strict=True):
        known = {name: dict(m.renamed).get(name, name) for name in facts.kernels}
        for name in known.values():
            if name in symbols:
                raise ToolchainError(f"the kernel {name} is defined twice", hint="link each module once")
            symbols[name] = f"weft_k_{identifier(name)}"
        bodies.append(_renamed(text, {identifier(old): symbols[new] for old, new in known.items()}))
    needed = helpers({n for facts, _ in parts for n in facts.helpers})
    return SourceCode("opencl", "\n".join([HEAD, needed, *bodies]), symbols)


def _renamed(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda m: names[m[1]], text)
