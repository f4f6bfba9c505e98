"""Takes the declarations out of a host program, or joins it with the programs of its kernels, for the interpreter."""

from __future__ import annotations

from collections.abc import Mapping

from weft.loop.host_program import external_module
from weft.loop.nodes import Call, Function, Program, Stmt
from weft.loop.visit import map_stmts


def definitions(program: Program) -> Program:
    """Returns *program* without the functions that are declared only."""
    kept = tuple([f for f in program.functions if external_module(f) is None])
    return program if kept == program.functions else Program(kept)


def link_programs(host: Program, code: Mapping[str, Program]) -> Program:
    """Returns *host* with the functions of *code* in the place of declarations: one program, for the interpreter.

    *code* maps the name of a declared function to the program whose entry it is; further functions of that program are renamed.
    Functions without code stay declared.
    """
    made: list[Function] = []
    for f in host.functions:
        found = code.get(f.name) if external_module(f) is not None else None
        made += [f] if found is None else _renamed(f.name, found)
    return Program(tuple(made))


def _renamed(name: str, program: Program) -> list[Function]:
    """Returns the functions of a program whose entry is to be called *name*, the others after it."""
    names = {f.name: name if f is program.entry else f"{name}.{f.name}" for f in program.functions}

    def change(s: Stmt) -> Stmt | None:
        return Call(names[s.callee], s.args) if isinstance(s, Call) and s.callee in names else None

    return [Function(names[f.name], f.params, map_stmts(f.body, change), f.notes) for f in program.functions]
