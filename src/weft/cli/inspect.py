"""`weft inspect`: what became of a model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import weft
from weft.cli.asked import Asked, Model, compiling
from weft.cli.console import human_bytes, human_seconds, out, print_json, print_table, print_text
from weft.runtime.artifact import is_artifact, read_artifact
from weft.runtime.package import Package
from weft.support.errors import InputError

if TYPE_CHECKING:  # these import the compiler, which an artifact does without
    from weft.driver.build import Compilation
    from weft.driver.kernel import Kernel

KERNEL = "KERNEL"
"""How `--schedule` and `--asm` name a kernel: as `--kernels` does, or by its number there."""


@compiling
def inspect(
    model: Model,
    asked: Asked,
    graph: Annotated[bool, typer.Option("--graph", help="The groups of operators, each one call of a kernel.")] = False,
    kernels: Annotated[bool, typer.Option("--kernels", help="The kernels, numbered.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Where each tensor lies, and when.")] = False,
    schedule: Annotated[
        str | None, typer.Option("--schedule", metavar=KERNEL, help="A kernel's loops, and the steps to them.")
    ] = None,
    asm: Annotated[str | None, typer.Option("--asm", metavar=KERNEL, help="A kernel's machine code.")] = None,
) -> None:
    """Show what MODEL becomes. Without options, a summary.

    Examples:

        weft inspect resnet18.onnx

        weft inspect resnet18.onnx --kernels

        weft inspect resnet18.onnx --schedule 3 --asm 3
    """
    if is_artifact(model):
        _show_artifact(model, asked.as_json, wants_more=bool(graph or kernels or memory or schedule or asm))
        return
    with asked.progress() as progress:
        made = weft.build(str(model), asked.machine(), asked.options, asked.sizes, asked.cache(), progress)
    if asked.as_json:
        print_json(_facts(made))
        return
    if graph:
        print_text(str(made.fused))
    if kernels:
        _show_kernels(made)
    if memory:
        print_text(str(made.plan))
    if schedule is not None:
        found = _kernel(made, schedule)
        print_text(f"{found.scheduled}\n# made by\n{found.trace}")
    if asm is not None:
        print_text(_kernel(made, asm).assembly(made.target))
    if not (graph or kernels or memory or schedule or asm):
        _show_summary(model, made)


def _kernel(made: Compilation, name: str) -> Kernel:
    """Returns a kernel by its name or its number; raises `InputError` listing them all."""
    found = list(made.kernels.values())
    for n, k in enumerate(found, 1):
        if name in (k.name, str(n)):
            return k
    names = "\n    ".join(f"{n} {k.name}" for n, k in enumerate(found, 1))
    raise InputError(f"there is no kernel {name}", hint=f"the kernels are\n    {names}")


def _rows(made: Compilation) -> list[dict[str, object]]:
    """Returns the facts of each kernel."""
    calls = Counter([g.key for g in made.fused.groups])
    sources = {g.key: g.source for g in reversed(made.fused.groups)}
    return [
        {
            "name": k.name, "calls": calls[key], "code_bytes": len(k.object.elf), "seconds": k.seconds,
            "first_call": sources[key],
        }
        for key, k in made.kernels.items()
    ]  # fmt: skip


def _facts(made: Compilation) -> dict[str, object]:
    return {
        "target": made.package.target,
        "inputs": list(map(str, made.package.inputs)), "outputs": list(map(str, made.package.outputs)),
        "nodes": len(made.source.nodes), "calls": len(made.fused.groups), "kernels": _rows(made),
        "constants_bytes": _constant_bytes(made), "code_bytes": len(made.package.image),
        "arena": str(made.plan).splitlines()[-1], "seconds": dict(made.seconds),
    }  # fmt: skip


def _constant_bytes(made: Compilation) -> int:
    return sum(c.nbytes for c in made.fused.constants)


def _show_summary(path: Path, made: Compilation) -> None:
    _show_signature(f"{path.name} for {made.package.target}", made.package)
    calls, kernels = len(made.fused.groups), len(made.kernels)
    code = f"{human_bytes(len(made.package.image))} of code, {human_bytes(_constant_bytes(made))} of constants"
    stages = ", ".join(f"{stage} {human_seconds(seconds)}" for stage, seconds in made.seconds.items())
    total = human_seconds(sum(made.seconds.values()))
    print_text(f"  work     {len(made.source.nodes)} nodes became {calls} calls of {kernels} kernels")
    print_text(f"  memory   {code}; {str(made.plan).splitlines()[-1]}")
    print_text(f"  compiled in {total}: {stages}")
    print_text("look closer with --graph, --kernels, --memory, --schedule KERNEL, --asm KERNEL")


def _show_signature(title: str, package: Package) -> None:
    out.print(title, style="bold", markup=False)
    for side, specs in (("input", package.inputs), ("output", package.outputs)):
        for s in specs:
            print_text(f"  {side:<8} {s}")


def _show_kernels(made: Compilation) -> None:
    cells = []
    for n, row in enumerate(_rows(made), 1):
        size, seconds = human_bytes(int(str(row["code_bytes"]))), human_seconds(float(str(row["seconds"])))
        cells.append([str(n), str(row["name"]), str(row["calls"]), size, seconds, str(row["first_call"])])
    print_table(("#", "kernel", "calls", "code", "made in", "first for"), cells, elastic="first for")


def _show_artifact(path: Path, as_json: bool, *, wants_more: bool) -> None:
    if wants_more:
        raise InputError(
            f"{path} is compiled: it holds code, no graph and no loops", hint="inspect the model it was made from"
        )
    package = read_artifact(path)
    if as_json:
        print_json({
            "target": package.target, "machine": package.machine, "features": list(package.features),
            "inputs": list(map(str, package.inputs)), "outputs": list(map(str, package.outputs)),
            "code_bytes": len(package.image),
        })  # fmt: skip
        return
    _show_signature(f"{path.name}, compiled for {package.target} ({package.machine})", package)
    print_text(f"  memory   {human_bytes(len(package.image))} of code, {human_bytes(path.stat().st_size)} in all")
