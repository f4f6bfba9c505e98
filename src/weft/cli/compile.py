"""`weft compile`: a model file to an artifact."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from weft.cli.console import (
    Json,
    NoCache,
    Quiet,
    Shape,
    Target,
    human_bytes,
    out,
    parse_shapes,
    print_json,
    progress_bars,
)  # fmt: skip
from weft.driver.cache import default_cache
from weft.driver.compile import check_options, compile_package
from weft.runtime.artifact import write_artifact
from weft.support.errors import ArtifactError
from weft.targets.cpu import parse_target


def compile_command(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The artifact to write.", show_default=False)],
    target: Target = "cpu",
    shape: Shape = None,
    no_cache: NoCache = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile MODEL to one self-contained file.

    Example: weft compile resnet18.onnx -o resnet18.weft
    """
    start = perf_counter()
    with progress_bars(quiet or as_json) as progress:
        package = compile_package(
            str(model), parse_target(target), check_options(3, "model", False, None), parse_shapes(shape),
            None if no_cache else default_cache(), progress,
        )  # fmt: skip
    try:
        write_artifact(package, output)
    except OSError as e:
        raise ArtifactError(f"{output} can't be written: {e.strerror or e}", hint="choose another place") from None
    seconds, size = perf_counter() - start, output.stat().st_size
    if as_json:
        print_json(
            {"model": str(model), "artifact": str(output), "bytes": size, "seconds": seconds, "target": package.target}
        )
    elif not quiet:
        out.print(f"wrote {output}: {human_bytes(size)} for {package.target}, in {seconds:.2f} s")
