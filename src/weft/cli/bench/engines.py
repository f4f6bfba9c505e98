"""The engines that `weft bench` times: each compiles a model file once and then runs it on fixed inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from weft.driver.compile import compile
from weft.driver.progress import Progress
from weft.runtime.artifact import is_artifact
from weft.runtime.model import Model, load
from weft.support.errors import InputError, ToolchainError
from weft.support.lazy_import import resolve

Arrays = Mapping[str, np.ndarray]


class Engine(Protocol):
    """One way to run a model file, held to a number of threads and to the model's dtypes."""

    name: str

    def load(self, path: Path, threads: int) -> None:
        """Reads and compiles the model."""

    def bind(self, inputs: Arrays) -> None:
        """Keeps the inputs of all runs to come."""

    def run(self) -> object:
        """Runs the model once; returns when the outputs are ready."""

    def outputs(self) -> list[np.ndarray]:
        """Returns the outputs of a run, in the model's order."""


@dataclass(frozen=True)
class Compiling:
    """How Weft compiles the models that it is timed with: for which target, and by which tuning records."""

    target: str = "cpu"
    records: Path | None = None


PLAIN: Final = Compiling()


class Weft:
    """Weft, called as a user calls it, compiled as told."""

    name = "weft"
    model: Model
    inputs: Arrays

    def __init__(self, progress: Progress | None = None, how: Compiling = PLAIN) -> None:
        self.progress = progress
        self.how = how

    def load(self, path: Path, threads: int) -> None:
        """Compiles the model without the cache, so that the time told is a compilation's; a saved model is loaded."""
        if is_artifact(path):
            self.model = load(path, threads=threads)
            return
        self.model = compile(
            str(path),
            target=self.how.target,
            threads=threads,
            records=self.how.records,
            cache=False,
            progress=self.progress,
        )

    def bind(self, inputs: Arrays) -> None:
        """Keeps the inputs."""
        self.inputs = inputs

    def run(self) -> object:
        """Runs the model once."""
        return self.model(**self.inputs)

    def outputs(self) -> list[np.ndarray]:
        """Returns the outputs of a run."""
        made = self.model(**self.inputs)
        return list(made) if isinstance(made, tuple) else [made]


_PEERS: Final = {
    "onnxruntime": "weft.cli.bench.engine_onnxruntime:Peer",
    "openvino": "weft.cli.bench.engine_openvino:Peer",
}
"""Where each peer's adapter is; it is imported only when asked for, since the peer itself is optional."""


def check_engine(name: str) -> None:
    """Raises `InputError` for a name that no engine has."""
    if name != "weft" and name not in _PEERS:
        raise InputError(f"there is no engine {name!r} to compare with", hint=f"use {', '.join(_PEERS)}")


def engine(name: str, how: Compiling = PLAIN) -> Engine:
    """Returns the engine called *name*, Weft compiled as told.

    Raises `InputError` for an unknown one, `ToolchainError` for one not installed.
    """
    check_engine(name)
    if name == "weft":
        return Weft(how=how)
    try:
        peer = resolve(_PEERS[name])
    except ModuleNotFoundError as e:
        raise ToolchainError(f"{name} is not installed", hint=f"pip install {name}") from e
    made: Engine = peer()
    return made
