"""Opens the model at a path given on the command line, and reads its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from zipfile import BadZipFile

import numpy as np

from weft.cli.compile_options import CommandOptions
from weft.driver.compile import compile
from weft.driver.progress import Progress
from weft.runtime.artifact import is_artifact
from weft.runtime.model import Model, load
from weft.runtime.package import TensorSpec
from weft.support.dim import Dim
from weft.support.errors import InputError


@dataclass
class Opened:
    """A model ready to run, and how long that took."""

    model: Model
    seconds: float

    def look(self, arrays: Mapping[str, np.ndarray]) -> dict[str, object]:
        """Returns the measurements of runs on *arrays*, for JSON; none for a plain model."""
        return {}

    def show(self) -> None:
        """Prints the measurements of `look`."""


def open_model(path: Path, asked: CommandOptions, threads: int | None, progress: Progress | None = None) -> Opened:
    """Loads a compiled model, or compiles a model file."""
    start = perf_counter()
    if is_artifact(path):
        model = load(path, threads=threads, verify=asked.verify or None)
    else:
        options = asked.options
        model = compile(
            str(path),
            asked.target,
            threads,
            options.records,
            opt_level=options.opt_level,
            precision=options.precision,
            verify=options.verify,
            cache=not asked.no_cache,
            shapes=asked.sizes,
            progress=progress,
            without=options.without,
            passes=options.passes,
        )
    return Opened(model, perf_counter() - start)


def check_sizes(path: Path, specs: Sequence[TensorSpec], sizes: Mapping[str, int | Dim], *, random: bool) -> None:
    """Raises `InputError` for *sizes* given for a saved model without *random* inputs, on which they have no effect."""
    if not random:
        raise InputError(
            f"{path} is compiled already: --shape has no effect on it but for the inputs that --random makes up",
            hint="give --random too, or give --shape to `weft compile`",
        )
    dynamic = list(dict.fromkeys(d for s in specs for d in s.shape if isinstance(d, str)))
    for name in sizes:
        if name not in dynamic:
            raise InputError(
                f"--shape has {name!r}, which is no symbolic dimension of {path}",
                hint=f"its symbolic dimensions: {', '.join(dynamic) or 'none'}",
            )


def read_inputs(given: Sequence[str]) -> dict[str, np.ndarray]:
    """Reads `name=file.npy` options; raises `InputError` for a file that is none."""
    arrays: dict[str, np.ndarray] = {}
    for text in given:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InputError(f"--input {text!r} is not of the form NAME=FILE.npy", hint="such as --input x=image.npy")
        arrays[name] = _read_array(name, file)
    return arrays


def _read_array(name: str, file: str) -> np.ndarray:
    try:
        with open(file, "rb") as opened:
            if not opened.read(8).startswith((b"\x93NUMPY", b"PK")):
                raise ValueError("it does not begin as a .npy file does")
        found = np.load(file, allow_pickle=False)
    except OSError as e:
        raise InputError(f"--input {name}: {file} can't be read: {e.strerror or e}", hint="check the path") from None
    except (ValueError, EOFError, BadZipFile) as e:
        raise InputError(f"--input {name}: {file} is no array: {e}", hint="save it with numpy.save") from None
    if not isinstance(found, np.ndarray):
        raise InputError(f"--input {name}: {file} holds several arrays", hint="save one with numpy.save")
    return found
