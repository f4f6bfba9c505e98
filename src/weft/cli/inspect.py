"""`weft inspect`: what became of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from weft.cli.console import (
    Json,
    NoCache,
    Quiet,
    Shape,
    Target,
    human_bytes,
    is_artifact,
    out,
    parse_shapes,
    print_json,
    progress_bars,
)  # fmt: skip
from weft.codegen.llvm.compile import assembly
from weft.driver.build import Compilation
from weft.driver.cache import default_cache
from weft.driver.compile import check_options, compile_model
from weft.driver.kernel import Kernel
from weft.loop.parser import parse_program
from weft.runtime.artifact import read_artifact
from weft.support.errors import InputError
from weft.targets.cpu import parse_target


def inspect(
    model: Annotated[Path, typer.Argument(help="An ONNX file, or an artifact.", show_default=False)],
    graph: Annotated[bool, typer.Option("--graph", help="Show the groups of operators.")] = False,
    kernels: Annotated[bool, typer.Option("--kernels", help="List the kernels.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Show the memory plan.")] = False,
    schedule: Annotated[
        str | None, typer.Option("--schedule", help="Show the loops of a kernel, and the steps to them.")
    ] = None,
    asm: Annotated[str | None, typer.Option("--asm", help="Show the machine code of a kernel.")] = None,
    target: Target = "cpu",
    shape: Shape = None,
    no_cache: NoCache = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what MODEL becomes: its graph, kernels, memory, loops and code. Without options, a summary."""
    if is_artifact(model):
        _show_artifact(model, as_json)
        return
    with progress_bars(quiet or as_json) as progress:
        made = compile_model(
            str(model), parse_target(target), check_options(3, "model", False, None), parse_shapes(shape),
            None if no_cache else default_cache(), progress,
        )  # fmt: skip
    if as_json:
        print_json(_facts(made))
        return
    if not (graph or kernels or memory or schedule or asm):
        _show_summary(made)
    if graph:
        out.print(str(made.fused), markup=False, soft_wrap=True)
    if kernels:
        _show_kernels(made)
    if memory:
        out.print(str(made.plan), markup=False, soft_wrap=True)
    if schedule:
        found = _kernel(made, schedule)
        out.print(f"{found.scheduled}\n# made by\n{found.trace}", markup=False, soft_wrap=True)
    if asm:
        out.print(assembly(parse_program(_kernel(made, asm).flat), parse_target(target)), markup=False, soft_wrap=True)


def _kernel(made: Compilation, name: str) -> Kernel:
    for k in made.kernels.values():
        if k.name == name:
            return k
    names = ", ".join(k.name for k in made.kernels.values())
    raise InputError(f"there is no kernel {name}", hint=f"the kernels are: {names}")


def _calls(made: Compilation) -> dict[str, int]:
    """Returns how often each kernel is called, by name."""
    counts: dict[str, int] = {}
    for g in made.fused.groups:
        name = made.kernels[g.key].name
        counts[name] = counts.get(name, 0) + 1
    return counts


def _facts(made: Compilation) -> dict[str, object]:
    calls = _calls(made)
    rows = [
        {"name": k.name, "calls": calls[k.name], "code_bytes": len(k.object.elf), "seconds": k.seconds}
        for k in made.kernels.values()
    ]
    return {
        "nodes": len(made.source.nodes), "groups": len(made.fused.groups), "kernels": rows,
        "constants_bytes": _constant_bytes(made), "seconds": dict(made.seconds),
    }  # fmt: skip


def _constant_bytes(made: Compilation) -> int:
    return sum(int(c.array.nbytes) for c in made.fused.constants)


def _show_summary(made: Compilation) -> None:
    for side, specs in (("input", made.package.inputs), ("output", made.package.outputs)):
        for s in specs:
            out.print(f"{side:<7} {s}", markup=False)
    out.print(f"{len(made.source.nodes)} nodes became {len(made.fused.groups)} calls of {len(made.kernels)} kernels")
    out.print(f"constants {human_bytes(_constant_bytes(made))}, code {human_bytes(len(made.package.image))}")
    out.print(str(made.plan).splitlines()[-1], markup=False)
    out.print(", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in made.seconds.items()))


def _show_kernels(made: Compilation) -> None:
    calls = _calls(made)
    table = Table("kernel", "calls", "compiled in")
    for k in made.kernels.values():
        table.add_row(k.name, str(calls[k.name]), f"{k.seconds * 1e3:.0f} ms")
    out.print(table)


def _show_artifact(path: Path, as_json: bool) -> None:
    package = read_artifact(path)
    if as_json:
        print_json({"target": package.target, "inputs": [str(s) for s in package.inputs],
                    "outputs": [str(s) for s in package.outputs], "code_bytes": len(package.image)})  # fmt: skip
        return
    out.print(f"compiled for {package.target} ({package.machine}), code {human_bytes(len(package.image))}")
    for side, specs in (("input", package.inputs), ("output", package.outputs)):
        for s in specs:
            out.print(f"{side:<7} {s}", markup=False)
