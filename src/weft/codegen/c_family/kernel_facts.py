"""Kernels as source text, headed by a comment that lists the declarations needed when several programs are joined."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.codegen.backend import Module, Source
from weft.codegen.c_family.c_types import identifier
from weft.codegen.c_family.writer import Needs, Writer
from weft.ir import Const
from weft.loop import Buffer, For, Function, Kernel, Program, Thread, find_note, statements
from weft.support.errors import ToolchainError

_NAME: Final = re.compile(r"\bfn_(\w+)\b")


@dataclass(frozen=True)
class KernelFacts:
    """Facts beside the text of a program's kernels: the helpers that they call, and their names."""

    helpers: tuple[str, ...]
    kernels: tuple[str, ...]


def write_kernels(program: Program, define: Callable[[Function, Needs], str]) -> Source:
    """Writes all functions of *program* that are kernels, each by *define*, called `fn_` and its name."""
    needs = Needs()
    kernels = [f for f in program.functions if find_note(f.notes, Kernel) is not None]
    text = "\n\n".join([define(f, needs) for f in kernels])
    facts = KernelFacts(tuple(sorted(needs.helpers)), tuple([f.name for f in kernels]))
    return Source(f"/* {json.dumps(facts.__dict__)} */\n{text}\n")


def read_facts(text: str) -> tuple[KernelFacts, str]:
    """Returns the facts in the comment at the head of a program's text, and the rest."""
    head, _, rest = text.partition("\n")
    return KernelFacts(**{k: tuple(v) for k, v in json.loads(head[3:-3]).items()}), rest


@dataclass(frozen=True)
class JoinedKernels:
    """The kernels of several programs under unique names: the helpers that they call, their texts, and `symbols`, their names."""

    helpers: frozenset[str]
    texts: tuple[str, ...]
    symbols: dict[str, str]


def join_kernels(modules: Sequence[Module]) -> JoinedKernels:
    """Returns the kernels of *modules*; raises `ToolchainError` for kernels of one name."""
    needed: set[str] = set()
    symbols: dict[str, str] = {}
    texts = []
    for m in modules:
        facts, text = read_facts(m.data.decode())
        needed.update(facts.helpers)
        known = {name: dict(m.renamed).get(name, name) for name in facts.kernels}
        for name in known.values():
            if name in symbols:
                raise ToolchainError(f"the kernel {name} is defined twice", hint="link each module once")
            symbols[name] = f"weft_k_{identifier(name)}"
        texts.append(_renamed(text, {identifier(old): symbols[new] for old, new in known.items()}))
    return JoinedKernels(frozenset(needed), tuple(texts), symbols)


def _renamed(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda m: names.get(m[1], m[0]), text)


def check_buffers(f: Writer, fn: Function, bound: int | None = None) -> None:
    """Raises `InputError` for a kernel that takes more buffers than the target lets one take, *bound* in all if that is given."""
    most = f.target.most_buffers
    count = sum(isinstance(p, Buffer) for p in fn.params) if bound is None else bound
    if most is not None and count > most:
        raise f.refusal(
            f"it takes {count} buffers, and a kernel of {f.target.name} takes {most}",
            hint="split the operator, or compile this model for a cpu target",
        )


def threads_of(fn: Function) -> list[int]:
    """Returns how many threads a block has along x, y and z."""
    found = {"x": 1, "y": 1, "z": 1}
    for axis, s in bound_loops(fn):
        if axis.startswith("threadIdx.") and isinstance(s.extent, Const):
            found[axis[-1]] = int(s.extent.value)
    return list(found.values())


def bound_loops(fn: Function) -> Iterator[tuple[str, For]]:
    """Yields the loops over blocks and threads, each with its axis."""
    for s in statements(fn.body):
        note = find_note(s.notes, Thread) if isinstance(s, For) else None
        if note is not None and isinstance(s, For):
            yield note.axis, s
