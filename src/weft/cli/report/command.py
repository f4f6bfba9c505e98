"""`weft report`: what became of a model, as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import weft
from weft.cli.bench_measure import machine
from weft.cli.bench_roofline import all_sizes
from weft.cli.console import (
    NoCache,
    OptLevel,
    Precision,
    Quiet,
    Shape,
    Target,
    human_bytes,
    out,
    parse_shapes,
    progress_bar,
)
from weft.cli.files import check_output, write_output
from weft.cli.models import random_inputs
from weft.cli.report.facts import Timing, report_facts
from weft.cli.report.page import make_page
from weft.driver.build import Compilation
from weft.driver.cache import default_cache
from weft.driver.options import check_options
from weft.driver.progress import Progress
from weft.driver.roofline import measure_roofs, place_kernels
from weft.runtime.artifact import is_artifact
from weft.support.errors import InputError
from weft.targets.cpu import can_run, parse_target


def report(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.", show_default=False)],
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="How long the kernels are timed; 0: not at all.")
    ] = 2.0,
    target: Target = "cpu",
    shape: Shape = None,
    opt_level: OptLevel = 3,
    precision: Precision = "model",
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Write a page that shows what MODEL becomes: its graphs, its kernels and their times, its memory, and every loop.

    The page is one file that needs nothing but a browser. Kernels are timed one by one on one core; symbolic sizes
    that are not given are 1. Code for another machine than this is shown without times.

    Examples:

        weft report resnet18.onnx -o resnet18.html

        weft report bert.onnx -o bert.html --shape sequence=128 --seconds 5
    """
    check_output(output)
    options, sizes, chosen = check_options(opt_level, precision), parse_shapes(shape), parse_target(target)
    if is_artifact(model):
        raise InputError(
            f"{model} is compiled: it holds code, no graph and no loops", hint="report on the model itself"
        )
    with progress_bar(quiet) as progress:
        cache = None if no_cache else default_cache()
        made = weft.build(str(model), chosen, options, all_sizes(model, sizes), cache, progress)
        timing = _timing(made, seconds, progress) if seconds and can_run(chosen) else None
        page = make_page(report_facts(model.stem, made, machine(), timing)).encode()
    write_output(output, lambda file: file.write(page))
    if not quiet:
        out.print(f"wrote {output}: {human_bytes(len(page))}; open it in a browser", markup=False)


def _timing(made: Compilation, seconds: float, progress: Progress) -> Timing:
    roofs = measure_roofs(made.target, progress=progress)
    return Timing(roofs, place_kernels(made, random_inputs(made.package.inputs), roofs, seconds))
