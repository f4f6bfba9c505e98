"""`weft compile`: a model file to an artifact, or to the files that a C program links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.markup import escape

from weft.cli.compile_options import CommandOptions, compiling
from weft.cli.console import err, human_bytes, human_seconds, out, print_json
from weft.cli.output_files import check_result
from weft.driver.check_target import check_runs_here
from weft.driver.checking.check_model import check_model
from weft.driver.compile import compile_package
from weft.driver.export.c_source import export_c
from weft.driver.export.linkable import export_folder, export_library, find_compiler
from weft.driver.measure.accuracy import Accuracy, compare_models
from weft.driver.options import CompileOptions
from weft.driver.runnable import runnable
from weft.runtime.artifact import write_artifact
from weft.runtime.file_names import ENDING, check_saved_name
from weft.runtime.model import Model
from weft.runtime.package import Package
from weft.support.errors import InputError
from weft.support.files import check_folder
from weft.targets import Target

LIBRARY = ".so"
"""The suffixes of shared libraries."""
C_SOURCE = ".c"
"""The suffixes of C sources."""


def write_compiled(package: Package, path: Path, target: Target, *, is_folder: bool) -> int:
    """Writes a compiled model in the form that *path* implies and returns its bytes; raises `ArtifactError` on failure."""
    if path.suffix == C_SOURCE:
        return sum(p.stat().st_size for p in export_c(package, path))
    package = runnable(package, target)
    if is_folder:
        return sum(p.stat().st_size for p in export_folder(package, path))
    if path.suffix == LIBRARY:
        export_library(package, path)
    else:
        write_artifact(package, path)
    return path.stat().st_size


def check_written(path: Path, model: Path, *, is_folder: bool) -> None:
    """Raises, before any work, the error that `write_compiled` would raise for *path*: not writable, or an unsuitable name."""
    if is_folder:
        check_folder(path)
        return
    check_result(path, model)
    if path.suffix == LIBRARY:
        find_compiler(path)
    elif path.suffix != C_SOURCE:
        check_saved_name(path)


def tell_kind(path: Path, *, quiet: bool) -> None:
    """Warns, unless *quiet*, that the output is a saved model if the suffix of its name does not say so."""
    if not quiet and path.suffix not in (ENDING, LIBRARY, C_SOURCE):
        told = f"{path} is a saved model, as {path}{ENDING} would be; a folder to link with C is {path}{os.sep}"
        err.print(f"[yellow]warning:[/] {escape(told)}")


@compiling
def compile_command(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="The file to write, or FOLDER/, LIBRARY.so, SOURCE.c.", show_default=False),
    ],
    asked: CommandOptions,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="CPU cores to partition the work for; default: all.")
    ] = None,
    accuracy: Annotated[
        bool,
        typer.Option("--accuracy", help="Report the error on random inputs, relative to --precision model."),
    ] = False,
) -> None:
    """Compile MODEL to one self-contained file that runs without the compiler.

    Examples:

        weft compile resnet18.onnx -o resnet18.weft

        weft compile bert.onnx -o bert.weft --shape batch=1 --shape sequence=128

        weft compile mlp.onnx -o mlp.weft --target "cpu -mattr=avx2"

        weft compile mlp.onnx -o mlp.weft --precision bf16 --accuracy

        weft compile mlp.onnx -o mlp/        # model.o and model.h, to link into a C or C++ program

        weft compile mlp.onnx -o mlp.so      # a shared library

        weft compile mlp.onnx -o mlp.c --target c   # C99 source and its header

        weft compile mlp.onnx -o mlp.weft --verify  # compared with the reference interpreter, on seeded inputs

    The file is run by `weft run`, in Python by `weft.load("resnet18.weft")`, or from C: see native/rt/weft.h.
    """
    start = perf_counter()
    path = Path(output)
    check_written(path, model, is_folder=output.endswith(os.sep))
    options, sizes, machine = asked.options, asked.sizes, asked.machine()
    if accuracy:
        _check_comparable(asked, machine)
    if threads is not None:
        machine = replace(machine, cores=threads)
    with asked.progress() as progress:
        is_saved = not output.endswith(os.sep) and path.suffix not in (LIBRARY, C_SOURCE)
        to_file = is_saved and not accuracy and not options.verify  # which run the model here
        package = compile_package(str(model), machine, options, sizes, asked.cache(), progress, to_file=to_file)
    verified = options.verify and check_model(package, str(model), machine, options, sizes)
    size = write_compiled(package, path, machine, is_folder=output.endswith(os.sep))
    found = _accuracies(package, model, asked) if accuracy else []
    tell_kind(path, quiet=asked.quiet or output.endswith(os.sep))
    seconds = perf_counter() - start
    figures: dict[str, object] = {
        "model": str(model),
        "artifact": output,
        "target": package.target,
        "bytes": size,
        "seconds": seconds,
    }
    if options.verify:
        figures["verified"] = verified
    if accuracy:
        figures["accuracy"] = [asdict(x) for x in found]
    if asked.as_json:
        print_json(figures)
    elif not asked.quiet:
        written = f"wrote {output}: {human_bytes(size)} for {package.target}, in {human_seconds(seconds)}"
        out.print("\n".join(_told(options, written, verified, found)), markup=False)


def _told(options: CompileOptions, written: str, verified: bool, found: list[Accuracy]) -> Iterator[str]:
    """Yields lines about the compilation: the file *written*, and the error of its results."""
    if options.rounds:
        yield "factors of products are rounded to bf16 where that is faster; sums are float32"
    yield written
    if options.verify:
        unknown = "can't be run here: only its programs were checked"
        yield f"the model {'agrees with the reference interpreter' if verified else unknown}"
    for x in found:
        yield f"{x.output} is at most {x.largest:.1e} of its spread from the model's own precision, {x.mean:.1e} on average"


def _accuracies(package: Package, model: Path, asked: CommandOptions) -> list[Accuracy]:
    """Returns the error of the outputs of *package*, relative to *model* compiled in its own precision."""
    machine = asked.machine()
    with asked.progress() as progress:
        options = replace(asked.options, precision="model")
        exact = compile_package(str(model), machine, options, asked.sizes, asked.cache(), progress)
    made, wanted = (Model(runnable(p, machine)) for p in (package, exact))
    return compare_models(made, wanted, asked.sizes)


def _check_comparable(asked: CommandOptions, machine: Target) -> None:
    """Raises `InputError` if the model can't be called on this machine."""
    check_runs_here(machine, asked.target, "leave --accuracy out")
    if asked.state:
        raise InputError(
            "--accuracy compares single calls, and --state makes values that live across them",
            hint="compare without --state, which does not change results",
        )
