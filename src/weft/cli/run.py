"""`weft run`: a model on given or random inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import IO, Annotated

import numpy as np
import typer

from weft.cli.compile_options import CommandOptions, Model, compiling
from weft.cli.console import Threads, human_seconds, out, print_json
from weft.cli.models import Opened, check_sizes, open_model, read_inputs
from weft.cli.output_files import check_result
from weft.driver.measure.random_inputs import random_inputs
from weft.runtime.artifact import is_artifact
from weft.support.errors import InputError
from weft.support.files import check_folder, write_output
from weft.support.lazy_import import resolve
from weft.support.text import printable_line

PROFILED = "weft.cli.profile:profiled"
"""Times kernels; resolved on demand, since it needs the compiler and running a saved model does not."""


@partial(compiling, reads=("shape", "verify"))
def run(
    model: Model,
    asked: CommandOptions,
    given: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=FILE.npy", help="An input; repeatable.")
    ] = None,
    random: Annotated[bool, typer.Option("--random", help="Use random values for inputs that are not given.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of --random.")] = 0,
    save: Annotated[Path | None, typer.Option("--save", help="A folder for the outputs, as NAME.npy.")] = None,
    threads: Threads = None,
    profile: Annotated[bool, typer.Option("--profile", help="Print the time of each kernel.")] = False,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Write a timeline, for ui.perfetto.dev or chrome://tracing."),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, help="How long --profile measures.")] = 2.0,
) -> None:
    """Run MODEL once and show its outputs.

    Examples:

        weft run resnet18.onnx --random

        weft run digits.onnx --input image=digit.npy --save outputs

        weft run model.weft --random --shape batch=8 --json

        weft run model.weft --random --verify     # reads the whole file and checks its checksum

        weft run resnet18.onnx --random --profile --threads 1

        weft run resnet18.onnx --random --trace trace.json --no-cache
    """
    if trace is not None:
        check_result(trace, model)
    if save is not None:
        check_folder(save)
    arrays = read_inputs(given or [])
    if profile or trace is not None:
        opened: Opened = resolve(PROFILED)(model, asked, threads, arrays, profile, trace, seconds)
    else:
        with asked.progress() as progress:
            opened = open_model(model, asked, threads, progress)
    if asked.shape and is_artifact(model):
        check_sizes(model, opened.model.inputs, asked.sizes, random=random)
    if random:
        arrays = {**random_inputs(opened.model.inputs, seed, asked.sizes), **arrays}
    outputs, taken = _outputs(opened, asked, arrays)
    if save is not None:
        _save(save, outputs)
    found = opened.look(arrays)
    if asked.as_json:
        facts = {n: _facts(a) for n, a in outputs.items()}
        print_json({"model": str(model), "seconds": taken, "load_seconds": opened.seconds, "outputs": facts, **found})
        return
    if not asked.quiet:
        out.print(f"ready in {human_seconds(opened.seconds)}, ran in {human_seconds(taken)}")
    for name, array in outputs.items():
        _show(name, array)
    opened.show()


def _outputs(
    opened: Opened, asked: CommandOptions, arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], float]:
    """Runs the model; returns its outputs by name, and the seconds that it took."""
    missing = [s for s in opened.model.inputs if s.name not in arrays]
    if missing:
        raise InputError(
            f"no value for {'; '.join(map(str, missing))}", hint="give --input NAME=FILE.npy for each, or --random"
        )
    with asked.progress() as progress:
        progress("run", 0, 1)
        start = perf_counter()
        result = opened.model(**arrays)
        seconds = perf_counter() - start
    made = result if isinstance(result, tuple) else (result,)
    return dict(zip([s.name for s in opened.model.outputs], made, strict=True)), seconds


def _save(folder: Path, outputs: dict[str, np.ndarray]) -> None:
    for name, array in outputs.items():
        plain = re.sub(r"[/\\]", "_", printable_line(name))
        path = folder / f"{plain}.npy"
        write_output(path, partial(_write_array, array))


def _write_array(array: np.ndarray, file: IO[bytes]) -> None:
    np.save(file, array, allow_pickle=False)


def _show(name: str, array: np.ndarray) -> None:
    out.print(printable_line(f"{name}: {array.dtype}{list(array.shape)}"), style="bold", markup=False)
    out.print(np.array2string(array, threshold=12, edgeitems=3 if array.ndim < 3 else 1, precision=5), markup=False)


def _facts(array: np.ndarray) -> dict[str, object]:
    facts: dict[str, object] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size:
        wide = array.astype(np.float64)
        facts |= {"min": _number(wide.min()), "max": _number(wide.max()), "mean": _number(wide.mean())}
    return facts


def _number(x: float) -> float | str:
    """Returns a number as JSON can hold it: NaN and infinities as text."""
    return float(x) if np.isfinite(x) else str(x)
