"""`weft compile`: a model file to an artifact, or to what a C program links."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from weft.cli.asked import Asked, compiling
from weft.cli.console import human_bytes, human_seconds, out, print_json
from weft.cli.files import check_folder, check_output
from weft.driver.compile import compile_package
from weft.driver.export import export_folder, export_library
from weft.runtime.artifact import write_artifact
from weft.runtime.package import Package
from weft.support.errors import ArtifactError


@dataclass(frozen=True)
class Written:
    """How many bytes were written, and what there is to say of it."""

    size: int
    remark: str = ""


def write_compiled(package: Package, path: Path, *, is_folder: bool) -> Written:
    """Writes a compiled model as the path asks for; raises `ArtifactError` where that fails."""
    try:
        if is_folder:
            return Written(sum(p.stat().st_size for p in export_folder(package, path)))
        if path.suffix == ".so":
            has_runtime = export_library(package, path)
            remark = (
                "" if has_runtime else "\nthere is no C compiler: programs link the runtime's sources (native/rt) too"
            )
            return Written(path.stat().st_size, remark)
        write_artifact(package, path)
    except OSError as e:
        raise ArtifactError(f"{path} can't be written: {e.strerror or e}", hint="choose another place") from None
    return Written(path.stat().st_size)


@compiling
def compile_command(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write, or FOLDER/, or LIBRARY.so.", show_default=False)
    ],
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

        weft compile mlp.onnx -o mlp/        # model.o and model.h, to link into a C or C++ program

        weft compile mlp.onnx -o mlp.so      # a shared library

    The file is run by `weft run`, in Python by `weft.load("resnet18.weft")`, or from C: see native/rt/weft.h.
    """
    start = perf_counter()
    path = Path(output)
    if output.endswith(os.sep):
        check_folder(path)
    else:
        check_output(path)
    options, sizes, machine = asked.options, asked.sizes, asked.machine()
    if threads is not None:
        machine = replace(machine, cores=threads)
    with asked.progress() as progress:
        package = compile_package(str(model), machine, options, sizes, asked.cache(), progress)
    kind = write_compiled(package, path, is_folder=output.endswith(os.sep))
    seconds, size = perf_counter() - start, kind.size
    figures = {
        "model": str(model),
        "artifact": output,
        "target": package.target,
        "bytes": size,
        "seconds": seconds,
    }
    if asked.as_json:
        print_json(figures)
    elif not asked.quiet:
        out.print(
            f"wrote {output}: {human_bytes(size)} for {package.target}, in {human_seconds(seconds)}{kind.remark}",
            markup=False,
        )
