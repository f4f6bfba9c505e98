"""`weft bench --peak`: the machine's peak arithmetic rates and bandwidths, measured by generated code."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from weft.cli.bench.measure import machine
from weft.cli.console import human_bytes, print_table, progress_bar
from weft.cli.output_files import write_json
from weft.driver.measure.limits import Limit, measure_limits

COLUMNS = ("limit", "over", "one core", "all cores", "unit")


def bench_peak(json_file: Path | None, quiet: bool) -> None:
    """Measures the machine's limits and prints them."""
    with progress_bar(quiet) as progress:
        limits = measure_limits(progress=progress)
    print_table(COLUMNS, [_cells(x) for x in limits], elastic="limit")
    if json_file is not None:
        write_json(json_file, {"machine": machine(), "limits": [asdict(x) for x in limits]})


def _cells(x: Limit) -> list[str]:
    return [x.name, human_bytes(x.nbytes) if x.nbytes else "", f"{x.one_core:.1f}", f"{x.all_cores:.1f}", x.unit]
