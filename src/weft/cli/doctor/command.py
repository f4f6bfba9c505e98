"""`weft doctor`: what this machine can do, and what is missing, with what to do about it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import typer

from weft.cli.console import Json, Quiet, human_count, out, print_json
from weft.cli.doctor.calibration import Calibrate, show_calibration
from weft.cli.doctor.check_machine import MACHINE
from weft.cli.doctor.findings import Finding, State, checked
from weft.support.lazy_import import resolve

STYLES = {State.OK: "green", State.ADVICE: "yellow", State.PROBLEM: "bold red"}
CHECKS = "weft.cli.doctor.check_weft:CHECKS"
"""The checks of Weft itself; resolved on demand, since they import LLVM."""

INDENT = 25
"""The column where the text of a finding begins."""


def doctor(as_json: Json = False, quiet: Quiet = False, calibrate: Calibrate = False) -> None:
    """Check this machine and Weft's installation, and suggest a remedy for each problem.

    Advice concerns speed and optional features; a problem is something that does not work, and gives exit code 1.

    Examples:

        weft doctor

        weft doctor --json

        weft doctor --quiet    # problems and advice alone

        weft doctor --calibrate    # measure this processor: its row for the table of processors
    """
    if calibrate:
        show_calibration(as_json, quiet)
        return
    found = examine(Path("/"))
    problems = [f for part in found.values() for f in part if f.state is State.PROBLEM]
    if as_json:
        print_json({part: {f.name: _facts(f) for f in findings} for part, findings in found.items()})
    else:
        _show(found, quiet=quiet)
    if problems:
        raise typer.Exit(1)


def examine(root: Path) -> dict[str, list[Finding]]:
    """Returns all findings by part; the system's files are under *root*."""
    found = {"machine": [checked(c, root) for c in MACHINE]}
    try:
        weft, extras, tools = resolve(CHECKS)
    except ImportError as e:
        told = f"the compiler can't be imported: {e}"
        return {
            **found,
            "weft": [Finding("code", State.PROBLEM, told, "pip install --force-reinstall . (in the checkout of Weft)")],
        }
    found["weft"] = [checked(c, root) for c in weft]
    return {**found, "packages": list(extras()), "tools": list(tools())}


def _facts(f: Finding) -> dict[str, str]:
    return {"state": str(f.state), "told": f.told, **({"todo": f.todo} if f.todo else {})}


def _show(found: dict[str, list[Finding]], *, quiet: bool) -> None:
    for part, findings in found.items():
        shown = [f for f in findings if not quiet or f.state is not State.OK]
        if shown:
            out.print(part, style="bold")
        for f in shown:
            _show_finding(f)
    counts = {state: sum(f.state is state for part in found.values() for f in part) for state in State}
    if not quiet:
        bad, advice = counts[State.PROBLEM], counts[State.ADVICE]
        out.print(
            "all is well" if not bad + advice else f"{_count(bad, 'problem')}, {_count(advice, 'piece')} of advice"
        )


def _count(n: int, noun: str) -> str:
    return human_count(n, noun) if n else f"no {noun}s"


def _show_finding(f: Finding) -> None:
    room = max(20, min(out.width, 120) - INDENT)
    lines = textwrap.wrap(f.told, room, break_on_hyphens=False) or [""]
    out.print(f"  [{STYLES[f.state]}]{f.state:<8}[/]", end="")
    out.print(f" {f.name:<13} {lines[0]}", markup=False)
    todo = textwrap.wrap(f.todo, room - 3, break_on_hyphens=False)
    for line in [*lines[1:], *[("-> " if n == 0 else "   ") + t for n, t in enumerate(todo)]]:
        out.print(" " * INDENT + line, markup=False)
