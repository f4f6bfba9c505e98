"""`weft inspect`: the kernels, schedules, memory plan and code of a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import weft
from weft.cli.compile_options import CommandOptions, Model, compiling
from weft.cli.console import human_bytes, human_seconds, out, print_json, print_table, print_text
from weft.cli.wrap_text import readable_program, wrapped
from weft.runtime.artifact import is_artifact, read_artifact
from weft.runtime.devices import device_names
from weft.runtime.package import Package
from weft.support.errors import InputError
from weft.support.lazy_import import resolve
from weft.support.text import printable_line

if TYPE_CHECKING:  # these import the compiler, which an artifact does without
    from weft.cost import Question
    from weft.driver.build import Compilation
    from weft.driver.kernel import Kernel
    from weft.driver.kernel_request import KernelRequest
    from weft.frontends.onnx.support import Support
    from weft.records import Record
    from weft.targets import Target

SHORTENED = "# shortened to be read; --full, or a pipe, shows the program as the parser reads it"
"""The heading of a kernel's loops on a terminal, where they are printed in a shortened form."""

QUESTIONS = "weft.cli.plan_text:questions_of"
PLAN_LINES = "weft.cli.plan_text:plan_lines"
PLAN_FACTS = "weft.cli.plan_text:plan_facts"
"""The text of plans, which needs the compiler."""

SUPPORT = "weft.frontends.onnx.support:support_of"
"""Implements `--support`; resolved on demand, since it needs the package onnx."""

GRAPH = "graph"
"""The argument of `--plan` for the decisions about the graph; a kernel of that name is shown by its number."""

KERNEL = "KERNEL"
"""How `--schedule`, `--plan` and `--asm` name a kernel: as `--kernels` does, or by its number there."""


@compiling
def inspect(
    model: Model,
    asked: CommandOptions,
    graph: Annotated[
        bool, typer.Option("--graph", help="The groups of fused operators, one kernel call each.")
    ] = False,
    kernels: Annotated[bool, typer.Option("--kernels", help="The kernels, numbered.")] = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="The memory plan: offset and lifetime of each tensor.")
    ] = False,
    schedule: Annotated[
        str | None, typer.Option("--schedule", metavar=KERNEL, help="A kernel's loop nest, and its schedule.")
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar=KERNEL,
            help='The decisions about a kernel, or the graph ("graph"), with the runners-up and their costs.',
        ),
    ] = None,
    asm: Annotated[str | None, typer.Option("--asm", metavar=KERNEL, help="A kernel's machine code.")] = None,
    support: Annotated[
        bool, typer.Option("--support", help="How each operator of an ONNX model is implemented; compiles nothing.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not truncate lines (redirected output never is).")] = False,
) -> None:
    """Show the result of compiling MODEL: without options, a summary.

    Examples:

        weft inspect resnet18.onnx

        weft inspect resnet18.onnx --kernels

        weft inspect resnet18.onnx --schedule 3 --asm 3
    """
    if is_artifact(model):
        _show_artifact(
            model, as_json=asked.as_json, wants_more=bool(graph or kernels or memory or schedule or plan or asm)
        )
        return
    if support:
        _show_support(model, as_json=asked.as_json)
        return
    with asked.progress() as progress:
        made = weft.build(str(model), asked.machine(), asked.options, asked.sizes, asked.cache(), progress)
    chosen = _Chosen(made, graph=graph, kernels=kernels, memory=memory, schedule=schedule, plan=plan, asm=asm)
    if asked.as_json:
        print_json({**_facts(made), **chosen.facts()})
    elif chosen:
        chosen.show(short=out.is_terminal and not full)
    else:
        _show_summary(model, made)


class _Chosen:
    """The parts of a compilation to show; raises `InputError` for an unknown kernel."""

    def __init__(
        self,
        made: Compilation,
        *,
        graph: bool,
        kernels: bool,
        memory: bool,
        schedule: str | None,
        plan: str | None,
        asm: str | None,
    ) -> None:
        self.made, self.graph, self.kernels, self.memory = made, graph, kernels, memory
        self.schedule = None if schedule is None else _kernel(made, schedule)
        self.graph_plan = plan == GRAPH
        self.plan = None if plan is None or self.graph_plan else _kernel(made, plan)
        self.asm = None if asm is None else _kernel(made, asm)

    def __bool__(self) -> bool:
        """Tells whether any part is to be shown."""
        shown = (self.graph, self.kernels, self.memory, self.schedule, self.graph_plan, self.plan, self.asm)
        return any(shown)

    def show(self, *, short: bool) -> None:
        """Prints the parts; with *short*, lines are truncated to the width of the terminal."""
        if self.graph:
            _print(_graph_lines(self.made), short, hang=9)
        if self.kernels:
            _show_kernels(self.made)
        if self.memory:
            _show_memory(self.made)
        if self.schedule is not None:
            _print([_head(self.made, self.schedule)], short)
            program = self.schedule.scheduled
            if short:
                _print([SHORTENED], short)
            print_text(readable_program(program, out.width) if short else program)
            _print(["# made by", *self.schedule.trace.splitlines()], short)
        if self.graph_plan:
            lines = self._plan_lines(self.made.choices, self.made.graph_record)
            _print([f"# graph {self.made.fused.graph.name}", *lines], short)
        if self.plan is not None:
            lines = self._plan_lines(self._questions(self.plan), self._request(self.plan).record)
            _print([_head(self.made, self.plan), *lines], short)
        if self.asm is not None:
            _print([_head(self.made, self.asm)], short)
            _print(self.asm.assembly(self._target(self.asm)).splitlines(), short)

    def _plan_lines(self, questions: Sequence[Question], record: Record | None) -> list[str]:
        """Returns the lines of the decisions about a kernel or the graph."""
        is_shipped = record is not None and self.made.records.is_shipped(record)
        return list(resolve(PLAN_LINES)(questions, record, is_shipped=is_shipped))

    def _key(self, kernel: Kernel) -> str:
        """Returns the key of *kernel*."""
        return next(key for key, k in self.made.kernels.items() if k is kernel)

    def _request(self, kernel: Kernel) -> KernelRequest:
        """Returns the request that *kernel* was made from."""
        return self.made.requests[self._key(kernel)]

    def _target(self, kernel: Kernel) -> Target:
        """Returns the machine that runs *kernel*."""
        return self.made.target_of(self._key(kernel))

    def _questions(self, kernel: Kernel) -> Sequence[Question]:
        """Returns the choices behind *kernel*."""
        questions: Sequence[Question] = resolve(QUESTIONS)(self._request(kernel), self._target(kernel))
        return questions

    def facts(self) -> dict[str, object]:
        """Returns it for JSON; kernels are there without being asked for."""
        made, found = self.made, dict[str, object]()
        if self.graph:
            found["graph"] = _graph_lines(made)
        if self.memory:
            found["memory"] = [dict(zip(MEMORY, row, strict=True)) for row in _memory_rows(made)]
        if self.schedule is not None:
            k = self.schedule
            found["schedule"] = {"kernel": k.name, "program": k.scheduled, "trace": k.trace, "flat": k.flat}
        if self.graph_plan:
            facts = resolve(PLAN_FACTS)(made.choices, made.graph_record)
            found["plan"] = {"graph": made.fused.graph.name, **facts}
        if self.plan is not None:
            facts = resolve(PLAN_FACTS)(self._questions(self.plan), self._request(self.plan).record)
            found["plan"] = {"kernel": self.plan.name, **facts}
        if self.asm is not None:
            found["asm"] = {"kernel": self.asm.name, "text": self.asm.assembly(self._target(self.asm))}
        return found


def _print(lines: Sequence[str], short: bool, hang: int = 4) -> None:
    """Prints lines; with *short*, wrapped to the width of the terminal."""
    for line in map(printable_line, lines):
        text = line.expandtabs()
        print_text("\n".join(wrapped(text, out.width, hang)) if short and len(text) > out.width else line)


def _numbers(made: Compilation) -> dict[str, int]:
    """Returns the number of each kernel, by its key."""
    return {key: n for n, key in enumerate(made.kernels, 1)}


def _head(made: Compilation, kernel: Kernel) -> str:
    """Returns a line that says which kernel is shown."""
    key = next(key for key, k in made.kernels.items() if k is kernel)
    source = next(g.source for g in made.fused.kernel_groups if g.key == key)
    return f"# kernel {_numbers(made)[key]}: {kernel.name}{f', for {source}' if source else ''}"


def _graph_lines(made: Compilation) -> list[str]:
    """Returns a line for each call, with the number of its kernel, and a line for each tensor that is a view of another."""
    head, *lines = str(made.fused).splitlines()
    numbers = _numbers(made)
    calls = [numbers.get(g.key, "") for g in made.fused.calls]  # control flow has no kernel, but those of its regions
    marks = [f"{n:>4}" for n in calls] + [" " * 4] * (len(lines) - len(calls))
    return [f"{head}; the numbers are those of the kernels", *[m + line for m, line in zip(marks, lines, strict=True)]]


MEMORY = ("buffer", "type", "bytes", "steps", "offset")
"""The columns of a tensor in the arena."""


def _memory_rows(made: Compilation) -> list[list[str]]:
    """Returns the rows of the plan's table; a name may have anything in it, the other cells no two spaces together."""
    found = [re.split(" {2,}", line) for line in str(made.plan).splitlines()[1:-1]]
    return [["  ".join(cells[:-4]), *cells[-4:]] for cells in found]


def _show_memory(made: Compilation) -> None:
    print_table(MEMORY, _memory_rows(made), elastic="buffer")
    _print([str(made.plan).splitlines()[-1]], out.is_terminal)


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
    calls = Counter([g.key for g in made.fused.kernel_calls])
    sources = {g.key: g.source for g in reversed(made.fused.kernel_groups)}
    return [
        {
            "name": k.name,
            "calls": calls[key],
            "code_bytes": k.code_bytes,
            "seconds": k.seconds,
            "device": _device(made.target_of(key)),
            "first_call": sources[key],
        }
        for key, k in made.kernels.items()
    ]


def _device(target: Target) -> str:
    """Returns the name of the device that runs kernels: the one that this machine has for their target, else the target's."""
    names = device_names(target.isa.language)
    return printable_line(names[0]) if names else target.name


def _facts(made: Compilation) -> dict[str, object]:
    return {
        "target": made.package.target,
        "inputs": list(map(str, made.package.inputs)),
        "outputs": list(map(str, made.package.outputs)),
        "nodes": len(made.source.nodes),
        "calls": len(made.fused.kernel_calls),
        "kernels": _rows(made),
        "constants_bytes": _constant_bytes(made),
        "code_bytes": len(made.package.image),
        "arena": str(made.plan).splitlines()[-1],
        "seconds": dict(made.seconds),
        "records": made.package.notes["records"],
    }


def _constant_bytes(made: Compilation) -> int:
    return sum(c.nbytes for c in made.fused.constants)


def _show_summary(path: Path, made: Compilation) -> None:
    _show_signature(f"{path.name} for {made.package.target}", made.package)
    calls, kernels = len(made.fused.calls), len(made.kernels)
    code = f"{human_bytes(made.package.code_bytes)} of code, {human_bytes(_constant_bytes(made))} of constants"
    stages = ", ".join(f"{stage} {human_seconds(seconds)}" for stage, seconds in made.seconds.items())
    total = human_seconds(sum(made.seconds.values()))
    lines = [f"  work     {len(made.source.nodes)} nodes became {calls} calls of {kernels} kernels"]
    lines += [
        f"  memory   {code}; {str(made.plan).splitlines()[-1]}",
        *_from_records(made),
        f"  compiled in {total}: {stages}{_from_cache(made)}",
    ]
    lines.append("look closer with --graph, --kernels, --memory, --schedule KERNEL, --plan KERNEL, --asm KERNEL")
    _print(lines, out.is_terminal, hang=9)


def _from_records(made: Compilation) -> list[str]:
    """Returns a line that says how many schedules are from tuning records; none where the rules chose all."""
    told = made.package.notes["records"]
    return [] if told == "none" else [f"  records  {told}"]


def _from_cache(made: Compilation) -> str:
    """Returns a note of the number of cached kernels, without which compile times would mislead."""
    return f"; {made.cached} of {len(made.kernels)} kernels came from the cache" if made.cached else ""


def _show_signature(title: str, package: Package) -> None:
    out.print(title, style="bold", markup=False)
    for side, specs in (("input", package.inputs), ("output", package.outputs)):
        for s in specs:
            print_text(f"  {side:<8} {s}")


def _show_kernels(made: Compilation) -> None:
    cells = []
    is_mixed = made.target.processor is not None
    for n, row in enumerate(_rows(made), 1):
        size, seconds = human_bytes(int(str(row["code_bytes"]))), human_seconds(float(str(row["seconds"])))
        where = [str(row["device"])] if is_mixed else []
        cells.append([str(n), str(row["name"]), *where, str(row["calls"]), size, seconds, str(row["first_call"])])
    if made.target.kind == "grid" and not is_mixed:
        print_text(f"all kernels are for {_device(made.target)}, in {made.target.isa.language}")
    heads = ["#", "kernel", *(["device"] if is_mixed else []), "calls", "code", "made in", "first for"]
    print_table(heads, cells, elastic="first for")


def _show_support(path: Path, *, as_json: bool) -> None:
    """Shows how each operator is implemented, and a template to fill in for each one that is missing."""
    support_of: Callable[[str], list[Support]] = resolve(SUPPORT)
    rows = support_of(str(path))
    if as_json:
        facts = [
            {"domain": r.domain, "operator": r.name, "nodes": r.nodes, "way": r.way, "limits": r.limits} for r in rows
        ]
        print_json({"operators": facts})
        return
    cells = [
        [printable_line(r.name), printable_line(r.domain or "ai.onnx"), str(r.nodes), r.way, r.limits] for r in rows
    ]
    print_table(("operator", "domain", "nodes", "carried out", "not supported"), cells, elastic="not supported")
    for stub in [r.stub for r in rows if r.stub is not None]:
        print_text(f"\n{stub}")


def _show_artifact(path: Path, *, as_json: bool, wants_more: bool) -> None:
    if wants_more:
        raise InputError(
            f"{path} is compiled: it holds code, no graph and no loops", hint="inspect the model it was made from"
        )
    package = read_artifact(path)
    if as_json:
        print_json(
            {
                "target": package.target,
                "machine": package.machine,
                "features": list(package.features),
                "inputs": list(map(str, package.inputs)),
                "outputs": list(map(str, package.outputs)),
                "code_bytes": package.code_bytes,
                "arena_bytes": package.arena,
                "notes": dict(package.notes),
            }
        )
        return
    machine = f" ({package.machine})" if package.machine else ""
    _show_signature(f"{path.name}, compiled for {package.target}{machine}", package)
    print_text(f"  memory   {human_bytes(package.code_bytes)} of code, {human_bytes(path.stat().st_size)} in all")
    _show_provenance(package)


def _show_provenance(package: Package) -> None:
    """Shows the provenance of a compiled model, its compiler and its files: a line of `sha256sum` for each file."""
    notes = package.notes
    if "weft" in notes:
        print_text(
            f"  made by  Weft {notes['weft']} ({notes['llvm']}) with {notes['options']}, records: {notes['records']}"
        )
        for line in notes["model"].splitlines():
            print_text(f"  from     {line}")
