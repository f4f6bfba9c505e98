"""`weft targets`: what can be compiled for, and what can be run here."""

from __future__ import annotations

from rich.table import Table

from weft.cli.console import Json, out, print_json
from weft.targets.cpu import LEVELS, can_run, cpu, host


def targets(as_json: Json = False) -> None:
    """List the targets, which of them run here, and what is missing for the rest."""
    rows = [("cpu", host().cpu, True, f"this machine: {host().cores} cores, {host().vector_bits}-bit vectors")]
    for name in LEVELS:
        target = cpu(name)
        runs = can_run(target)
        note = f"{target.vector_bits}-bit vectors" + ("" if runs else f"; this processor lacks {name}")
        rows.append((f"cpu -mattr={name}", target.cpu, runs, note))
    if as_json:
        print_json([{"target": t, "cpu": c, "runs_here": r, "note": n} for t, c, r, n in rows])
        return
    table = Table("target", "processor", "runs here", "")
    for t, c, r, n in rows:
        table.add_row(t, c, "yes" if r else "no", n)
    out.print(table)
