"""`weft bench --roofline`: why a model takes as long as it does, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TypeAlias

import weft
from weft.cli.bench.measure import machine
from weft.cli.console import print_table, print_text, progress_bar
from weft.cli.output_files import check_result, write_json
from weft.driver.build import read_model
from weft.driver.cache.code_cache import default_cache
from weft.driver.measure.random_inputs import example_sizes, random_inputs
from weft.driver.measure.roofline import Roofs, Standing, measure_roofs, place_kernels
from weft.driver.options import check_options
from weft.support.dim import Dim
from weft.support.errors import ToolchainError
from weft.support.lazy_import import resolve

COLUMNS = ("kernel", "calls", "us", "of all", "MFLOP", "MB", "FLOP/B", "GFLOP/s", "bound by", "first for")
"""The columns of a kernel: "us" and those after it are of one call, "of all" is the part of the model's time."""

DRAW = "weft.cli.bench.roofline_picture:draw"
"""Draws the picture; imported when one is wanted, since it needs matplotlib."""

Drawing: TypeAlias = Callable[[Path, str, Sequence[Standing], Roofs], None]


def bench_roofline(
    path: Path,
    seconds: float,
    sizes: Mapping[str, int],
    json_file: Path | None,
    picture: Path | None,
    quiet: bool,
    records: Path | None = None,
) -> None:
    """Times the kernels of *path* on one core and prints where they stand; draws *picture* if that is asked for."""
    draw = None
    if picture is not None:
        check_result(picture, path)
        draw = _drawing()
    with progress_bar(quiet) as progress:
        shapes = all_sizes(path, sizes)
        options = check_options(records=records)
        made = weft.build(str(path), "cpu", options, shapes, default_cache(), progress)
        roofs = measure_roofs(made.target, progress=progress)
        found = place_kernels(made, random_inputs(made.package.inputs), roofs, seconds)
    _show(found, roofs)
    if picture is not None and draw is not None:
        draw(picture, path.stem, found, roofs)
    if json_file is not None:
        write_json(json_file, {"machine": machine(), "roofs": _roof_facts(roofs), "rows": [_facts(s) for s in found]})


def _drawing() -> Drawing:
    """Returns the function that draws the picture; raises `ToolchainError` where its library is missing."""
    try:
        drawing: Drawing = resolve(DRAW)
    except ModuleNotFoundError as e:
        raise ToolchainError(f"the picture needs {e.name}, which is not installed", hint=f"pip install {e.name}") from e
    return drawing


def all_sizes(path: Path, given: Mapping[str, int | Dim]) -> dict[str, int]:
    """Returns a size for every symbolic dimension of the inputs: the one that is given, else one of `example_sizes`."""
    graph, _ = read_model(str(path), given)
    return example_sizes(graph, given)


def _show(found: Sequence[Standing], roofs: Roofs) -> None:
    total = sum(s.calls * s.seconds for s in found)
    print_table(COLUMNS, [_cells(s, total) for s in found], elastic="first for")
    limit = sum(s.calls * s.limit for s in found)
    levels = ", ".join(f"{x.name} {x.bandwidth:.0f}" for x in roofs.levels)
    narrow = "".join([f", of {t} {rate:.0f}" for t, rate in roofs.narrow.items()])
    print_text(f"one core: {roofs.peak:.0f} GFLOP/s{narrow}, and GB/s read from {levels}")
    print_text(f"all kernels take {total * 1e3:.3f} ms; at their limits they would take {limit * 1e3:.3f} ms")
    print_text("timed on random inputs: other values may take another time where results underflow")


def _cells(s: Standing, total: float) -> list[str]:
    share = f"{s.calls * s.seconds / total:.1%}" if total else "-"  # a model may be too small for the clock
    return [
        s.name,
        str(s.calls),
        f"{s.seconds * 1e6:.1f}",
        share,
        f"{s.operations / 1e6:.2f}",
        f"{s.nbytes / 1e6:.3f}",
        f"{s.intensity:.1f}",
        f"{s.rate:.1f}",
        s.bound,
        s.source,
    ]


def _roof_facts(roofs: Roofs) -> dict[str, object]:
    """Returns the roofs as JSON knows them: a capacity without an end is none."""
    held = [int(x.capacity) if isfinite(x.capacity) else None for x in roofs.levels]
    levels = [{"name": x.name, "bytes": h, "gb_per_s": x.bandwidth} for x, h in zip(roofs.levels, held, strict=True)]
    narrow = {str(t): rate for t, rate in roofs.narrow.items()}
    return {"gflops": roofs.peak, "narrow_gflops": narrow, "levels": levels}


def _facts(s: Standing) -> dict[str, object]:
    derived = {"rate": s.rate, "intensity": s.intensity, "limit": s.limit, "share": s.share, "bound": s.bound}
    return {**asdict(s), **derived}
