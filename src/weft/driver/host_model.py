"""Models of host programs: written by hand, with the loops of their kernels, or those of compiled models, replayed from bytes.

host = parse_program(text)                          # `main`, `plan`, and a declaration of each kernel
made = compile_host(host, {"halve": halve}, [TensorSpec("x", i64, ("n",))], [TensorSpec("y", i64, ("n",))])
Model(made)(x)                                      # LLVM's code
Model(compile_host(..., replay=True))(x)            # bytes, and an image for each module
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.codegen import Module, compile_program, link_here
from weft.codegen.launch import write_launch
from weft.driver.build import Compilation
from weft.driver.check_target import check_runs_here
from weft.driver.runnable import with_image
from weft.loop import Program, definitions, external_module, link_programs, verify, verify_host
from weft.lower import expand_copies, lower
from weft.native import _rt
from weft.runtime import Package, Replay, TensorSpec
from weft.support.errors import InputError
from weft.targets import Target, host, needed_flags


def compile_host(
    program: Program,
    kernels: Mapping[str, Program],
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    constants: bytes = b"",
    *,
    target: Target | None = None,
    replay: bool = False,
) -> Package:
    """Compiles a host program, and the *kernels* that it declares, scheduled or not, for this machine.

    With *replay*, the host program becomes bytes, and each of its modules an image of its own; else LLVM compiles all to one.
    Raises `VerifyError` for a program that breaks a rule of host programs, or a kernel whose parameters are not those declared,
    `InputError` for a kernel that is not given, `LoweringError` for one in another space than the host's.
    """
    machine = host() if target is None else target
    check_runs_here(machine, machine.name, "compile for this machine")
    verify_host(program)
    wanted = {f.name: module for f in program.functions if (module := external_module(f)) is not None}
    if missing := [name for name in wanted if name not in kernels]:
        raise InputError(
            f"the code of {missing[0]} is not given", hint=f"give a program for it, of the entry {missing[0]}"
        )
    expanded = expand_copies(program)  # refuses other spaces than the host's
    flat = {name: lower(kernels[name], machine) for name in wanted}
    verify(link_programs(program, flat), flat=True)
    modules = {name: _named(name, p, machine) for name, p in flat.items()}
    package = Package(
        image=b"",
        plan=0,
        main=0,
        constants=constants,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        target=machine.name,
        machine=_rt.MACHINE,
        features=() if machine.isa.language else needed_flags(machine),
    )
    if replay:
        return _replayed(package, program, modules, machine)
    entry = compile_program(definitions(expanded), machine)
    return with_image(package, link_here([entry, *modules.values()], machine))


def _named(name: str, flat: Program, target: Target) -> Module:
    """Returns the code of a kernel under the name by which it is declared."""
    made = compile_program(flat, target)
    return replace(made, renamed=((flat.entry.name, name),)) if flat.entry.name != name else made


def replay_model(made: Compilation) -> Package:
    """Returns a compiled model whose host program is replayed, as it is for other devices; its results are the same."""
    return _replayed(made.package, made.host, {k.name: k.module for k in made.kernels.values()}, made.target)


def _replayed(package: Package, program: Program, modules: Mapping[str, Module], target: Target) -> Package:
    """Returns a package that replays *program*; the functions of a module of it are in one image."""
    code = write_launch(program, len(package.inputs), len(package.outputs))
    parts: dict[str, list[Module]] = {}
    for module, name in code.callees:
        parts.setdefault(module, []).append(modules[name])
    images = {module: link_here(found, target) for module, found in parts.items()}
    mapped = {module: _rt.Image(image.code, image.readonly) for module, image in images.items()}
    messages = {n: text for image in images.values() for n, text in image.messages.items()} | dict(code.messages)
    callees = tuple([(mapped[module], images[module].symbols[name]) for module, name in code.callees])
    return replace(package, image=b"", asserts=messages, replay=Replay(code.data, callees))
