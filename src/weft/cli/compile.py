"""`weft compile`: a model file to an artifact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from weft.cli.asked import Asked, compiling
from weft.cli.console import human_bytes, human_seconds, out, print_json
from weft.cli.files import check_output
from weft.driver.compile import compile_package
from weft.runtime.artifact import write_artifact
from weft.support.errors import ArtifactError


@compiling
def compile_command(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.", show_default=False)],
    asked: Asked,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Processors to divide the work for; default: all.")
    ] = None,
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
    options, sizes, machine = asked.options, asked.sizes, asked.machine()
    if threads is not None:
        machine = replace(machine, cores=threads)
    with asked.progress() as progress:
        package = compile_package(str(model), machine, options, sizes, asked.cache(), progress)
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
    if asked.as_json:
        print_json(figures)
    elif not asked.quiet:
        out.print(
            f"wrote {output}: {human_bytes(size)} for {package.target}, in {human_seconds(seconds)}", markup=False
        )
