"""`weft report`: a model's graphs, kernels, memory plan and loops, as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import weft
from weft.cli.bench.measure import machine
from weft.cli.bench.roofline import all_sizes
from weft.cli.compile_options import CommandOptions, compiling
from weft.cli.console import human_bytes, out, print_json
from weft.cli.output_files import check_result
from weft.cli.report.page import make_page
from weft.cli.report.page_data import Timing, report_facts
from weft.driver.build import Compilation
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.measure.roofline import measure_roofs, place_kernels
from weft.driver.progress import Progress
from weft.runtime.artifact import is_artifact
from weft.support.errors import InputError
from weft.support.files import write_output
from weft.targets import can_run


@compiling
def report(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.", show_default=False)],
    asked: CommandOptions,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="How long to time the kernels; 0: not at all.")
    ] = 2.0,
) -> None:
    """Write an HTML page that shows the result of compiling MODEL.

    It shows the graphs, the kernels and their times, the memory plan and every loop nest, in one self-contained file. Kernels
    are timed one by one on one core; symbolic sizes that are not given are 1. Code that can't run on this machine is shown
    without times.

    Examples:

        weft report resnet18.onnx -o resnet18.html

        weft report bert.onnx -o bert.html --shape sequence=128 --seconds 5
    """
    check_result(output, model)
    if is_artifact(model):
        raise InputError(
            f"{model} is compiled: it holds code, no graph and no loops", hint="report on the model itself"
        )
    chosen, sizes = asked.machine(), all_sizes(model, asked.sizes)
    with asked.progress() as progress:
        made = weft.build(str(model), chosen, asked.options, sizes, asked.cache(), progress)
        timing = _timing(made, seconds, progress) if seconds and can_run(chosen) else None
    page = make_page(report_facts(model.stem, made, machine(), timing)).encode()
    write_output(output, lambda file: file.write(page))
    if asked.as_json:
        took = None if timing is None else sum(s.calls * s.seconds for s in timing.kernels)
        kernels, calls = len(made.kernels), len(made.fused.calls)
        print_json({"page": str(output), "bytes": len(page), "kernels": kernels, "calls": calls, "seconds": took})
    elif not asked.quiet:
        out.print(f"wrote {output}: {human_bytes(len(page))}; open it in a browser", markup=False)


def _timing(made: Compilation, seconds: float, progress: Progress) -> Timing:
    roofs = measure_roofs(made.target, progress=progress)
    return Timing(roofs, place_kernels(made, random_inputs(made.package.inputs), roofs, seconds))
