"""`weft.backend` whose models are saved, and run in a process without the compiler: for suites that take a backend of ONNX.

python onnx_suite.py tests.export.saved_backend
"""

from __future__ import annotations

import atexit
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, cast

from onnx import ModelProto
from tests.export.without_compiler import REFUSING

from weft.backend import Backend as WeftBackend
from weft.graph import Graph
from weft.integrations.onnx_backend import WeftRep
from weft.runtime.model import Model

WORKER = (
    REFUSING
    + """
import pickle
import weft

while True:
    try:
        path, inputs = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    try:
        answer = list(weft.load(path).run(inputs))
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""
)


class Elsewhere:
    """A process that loads and runs models, and a folder for these; both are gone when this process ends."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="weft-"))
        self.saved = count()
        self.process = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self.end)

    def end(self) -> None:
        """Ends the process, and removes the folder."""
        self.process.communicate()
        shutil.rmtree(self.folder)

    def run(self, path: Path, values: Sequence[Any]) -> list[Any]:
        """Returns the outputs of a saved model; raises `RuntimeError` with what the process says otherwise."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump((str(path), list(values)), self.process.stdin)
        self.process.stdin.flush()
        answer = pickle.load(self.process.stdout)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return cast("list[Any]", answer)


elsewhere = cache(Elsewhere)


class SavedModel:
    """A saved model, called as a `Model` is."""

    def __init__(self, model: Model) -> None:
        self.path = elsewhere().folder / f"{next(elsewhere().saved)}.weft"
        model.save(self.path)
        self.inputs, self.outputs = model.inputs, model.outputs

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Returns the outputs."""
        return elsewhere().run(self.path, values)


class SavedRep(WeftRep):
    """A model that is run where there is no compiler."""

    def _compiled(self, graph: Graph) -> Model:
        return cast(Model, SavedModel(super()._compiled(graph)))


class Backend(WeftBackend):
    """Saves, loads and runs ONNX models."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> WeftRep:
        """Compiles and saves the model."""
        return SavedRep(model, None, kwargs)
