"""`weft doctor --calibrate`: this processor's operations and bytes a cycle, as a row for the table of processors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

import typer

from weft.cli.console import out, print_json, progress_bar
from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import calibrate
from weft.targets import KnownCore, cpuinfo, listed_core

Calibrate = Annotated[bool, typer.Option("--calibrate", help="Measure this processor, and print its row of the table.")]

LISTED: Final = "The table has this processor: compiling uses what stands there, not what was measured."
UNLISTED: Final = "The table does not have this processor: compiling uses what was measured. It is kept in the cache."
BYTES: Final = {"l2_speed", "l3_speed", "memory_speed"}
"""Facts in bytes of a cycle."""


def show_calibration(as_json: bool, quiet: bool) -> None:
    """Measures this processor and prints its row; the facts that the table has otherwise are marked."""
    with progress_bar(quiet or as_json) as progress:
        core = calibrate(progress, default_cache())
    told, listed = cpuinfo(), listed_core(cpuinfo())
    if as_json:
        print_json({"listed": listed is not None, "row": asdict(core)})
        return
    out.print(row_text(core), markup=False, highlight=False, soft_wrap=True)
    if quiet:
        return
    out.print(
        f"# {told['vendor_id']}, family {told['cpu family']}, model {told['model']}", markup=False, highlight=False
    )
    if listed is not None:
        for name, measured in asdict(core).items():
            there = getattr(listed, name)
            if name not in ("tune", "source") and measured != there:
                unit = " bytes a cycle" if name in BYTES else ""
                out.print(f"# {name}: measured {measured}, in the table {there}{unit}", markup=False)
    out.print(f"# {UNLISTED if listed is None else LISTED}", markup=False, soft_wrap=True)


def row_text(core: KnownCore) -> str:
    """Returns the row of *core* in Python, the facts that it has in common with all other cores left out."""
    common = asdict(KnownCore(core.tune, core.source))
    facts = [f"{name}={value!r}" for name, value in asdict(core).items() if value != common[name]]
    return f"KnownCore({', '.join([repr(core.tune), repr(core.source), *facts])})"
