"""`weft run`: a model on given or random inputs."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from weft.cli.console import Json, NoCache, Quiet, Shape, Target, Threads, out, parse_shapes, print_json, progress_bars
from weft.cli.models import open_model, random_inputs, read_inputs
from weft.support.errors import ArtifactError, InputError


def run(
    model: Annotated[Path, typer.Argument(help="An ONNX file, or an artifact.", show_default=False)],
    given: Annotated[list[str] | None, typer.Option("--input", help="An input, as NAME=FILE.npy; repeatable.")] = None,
    random: Annotated[bool, typer.Option("--random", help="Make up the inputs that are not given.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="The seed of --random.")] = 0,
    save: Annotated[Path | None, typer.Option("--save", help="A folder to save the outputs in, as NAME.npy.")] = None,
    target: Target = "cpu",
    threads: Threads = None,
    shape: Shape = None,
    no_cache: NoCache = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run MODEL once and show its outputs.

    Example: weft run resnet18.onnx --random
    """
    with progress_bars(quiet or as_json) as progress:
        opened = open_model(model, target, threads, not no_cache, parse_shapes(shape), progress)
    inputs = read_inputs(given or [])
    if random:
        inputs = {**random_inputs(opened.model.inputs, seed), **inputs}
    missing = [s for s in opened.model.inputs if s.name not in inputs]
    if missing:
        raise InputError(
            f"no value for {', '.join(map(str, missing))}", hint="give --input NAME=FILE.npy for each, or --random"
        )
    start = perf_counter()
    result = opened.model(**inputs)
    seconds = perf_counter() - start
    outputs = dict(
        zip([s.name for s in opened.model.outputs], result if isinstance(result, tuple) else (result,), strict=True)
    )
    if save is not None:
        _save(save, outputs)
    if as_json:
        print_json(
            {"seconds": seconds, "load_seconds": opened.seconds, "outputs": {n: _facts(a) for n, a in outputs.items()}}
        )
        return
    if not quiet:
        out.print(f"ready in {opened.seconds:.2f} s, ran in {seconds * 1e3:.3f} ms")
    for name, array in outputs.items():
        out.print(f"[bold]{name}[/]: {array.dtype}{list(array.shape)}")
        out.print(np.array2string(array, threshold=12, edgeitems=3, precision=5), markup=False)


def _save(folder: Path, outputs: dict[str, np.ndarray]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in outputs.items():
            np.save(folder / f"{name.replace('/', '_')}.npy", array)
    except OSError as e:
        raise ArtifactError(f"{folder} can't be written: {e.strerror or e}", hint="choose another folder") from None


def _facts(array: np.ndarray) -> dict[str, object]:
    facts: dict[str, object] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size:
        facts |= {"min": float(array.min()), "max": float(array.max()), "mean": float(array.mean())}
    return facts
