"""Saved models and C compilers, for the tests of what runs without Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from tests.models import BUILDERS, random_inputs

import weft
from weft.native import source_files

Array = np.ndarray[Any, Any]

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "c" / "run.c"
RT = Path(str(files("weft.native") / "rt"))
NATIVE = RT.parent
OPEN = 3
"""The size of open dimensions in these tests."""

STRICT = ["-O2", "-g", "-Wall", "-Wextra", "-Werror"]
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
compilers = pytest.mark.parametrize(
    "cc",
    [
        pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"there is no {name}"))
        for name in ("gcc", "clang")
    ],
)


def silently(*command: str | Path) -> None:
    """Runs a compiler or another tool; what it says is an error."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def build(cc: str, program: Path, *parts: str | Path) -> Path:
    """Builds a program with the runtime."""
    silently(cc, *parts, "-pthread", "-o", program)
    return program


Library = Callable[..., Path]


@pytest.fixture(scope="session")
def library(run_folder: Path) -> Library:
    """Gives a function that builds the runtime as a static library: `library(cc, *flags)`, strictly, and each only once."""

    def make(cc: str, *flags: str) -> Path:
        folder = run_folder / "-".join(["runtime", cc, *[f.strip("-").replace("=", "-") for f in flags]])
        made = folder / "libweft.a"
        if not made.exists():
            folder.mkdir(exist_ok=True)
            with TemporaryDirectory(dir=folder) as here:  # of this process: another may be building the same
                objects = [Path(here, f"{source.stem}.o") for source in source_files()]
                for source, out in zip(source_files(), objects, strict=True):
                    silently(cc, *STRICT, "-Wpedantic", *flags, f"-I{RT}", "-c", source, "-o", out)
                silently("ar", "rcs", f"{here}/libweft.a", *objects)
                os.replace(f"{here}/libweft.a", made)
        return made

    return make


@dataclass(frozen=True)
class Saved:
    """A model, saved; inputs for it, and the outputs that the compiling process computes of them."""

    path: Path
    model: weft.Model
    inputs: Mapping[str, Array]
    outputs: Sequence[Array]

    @property
    def input_bytes(self) -> bytes:
        return b"".join(self.inputs[s.name].tobytes() for s in self.model.inputs)

    @property
    def output_bytes(self) -> bytes:
        return b"".join(y.tobytes() for y in self.outputs)


Saver = Callable[[str], Saved]


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saver:
    """Gives a function that compiles and saves one of the small models."""
    folder = tmp_path_factory.mktemp("models")
    made: dict[str, Saved] = {}

    def save(name: str) -> Saved:
        if name not in made:
            proto = BUILDERS[name]()
            model = weft.compile(proto)
            model.save(folder / f"{name}.weft")
            sizes = {d: OPEN for s in model.inputs for d in s.shape if isinstance(d, str)}
            inputs = random_inputs(proto, sizes)
            made[name] = Saved(
                folder / f"{name}.weft", model, inputs, model.run([inputs[s.name] for s in model.inputs])
            )
        return made[name]

    return save
