"""`weft compile`: a model file to an artifact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from weft.cli.console import (
    Json,
    NoCache,
    OptLevel,
    Precision,
    Quiet,
    Shape,
    Target,
    Verify,
    human_bytes,
    human_seconds,
    out,
    parse_shapes,
    print_json,
    progress_bar,
)
from weft.cli.files import check_output
from weft.driver.cache import default_cache
from weft.driver.compile import compile_package
from weft.driver.options import check_options
from weft.runtime.artifact import write_artifact
from weft.support.errors import ArtifactError
from weft.targets.cpu import parse_target


def compile_command(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.", show_default=False)],
    target: Target = "cpu",
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Processors to divide the work for; default: all.")
    ] = None,
    shape: Shape = None,
    opt_level: OptLevel = 3,
    precision: Precision = "model",
    verify: Verify = False,
    no_cache: NoCache = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile MODEL to one self-contained file, which runs without the compiler.

    Examples:

        weft compile resnet18.onnx -o resnet18.weft

        weft compile bert.onnx -o bert.weft --shape batch=1 --shape sequence=128

        weft compile mlp.onnx -o mlp.weft --target "cpu -mattr=avx2"

    The file is run by `weft run`, or in Python by `weft.load("resnet18.weft")`.
    """
    start = perf_counter()
    check_output(output)
    options, sizes = check_options(opt_level, precision, verify), parse_shapes(shape)
    cache = None if no_cache else default_cache()
    machine = parse_target(target) if threads is None else replace(parse_target(target), cores=threads)
    with progress_bar(quiet or as_json) as progress:
        package = compile_package(str(model), machine, options, sizes, cache, progress)
    try:
        write_artifact(package, output)
    except OSError as e:
        raise ArtifactError(f"{output} can't be written: {e.strerror or e}", hint="choose another place") from None
    seconds, size = perf_counter() - start, output.stat().st_size
    figures = {
        "model": str(model),
        "artifact": str(output),
        "target": package.target,
        "bytes": size,
        "seconds": seconds,
    }
    if as_json:
        print_json(figures)
    elif not quiet:
        out.print(
            f"wrote {output}: {human_bytes(size)} for {package.target}, in {human_seconds(seconds)}", markup=False
        )
