"""What an engine is to the benchmark."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from inputs import Entry

HERE = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("BENCH_CACHE", HERE / "cache"))


def interpreter(environment: str) -> str:
    """Return the Python of one of the environments that ``setup.sh`` makes."""
    return str(HERE / f"venv-{environment}" / "bin" / "python")


class Engine:
    """One way to run a model, in a process and a Python environment of its own.

    A new engine is a subclass with a name, an interpreter, ``load`` and ``run``. Its packages are imported by
    ``imports`` alone: the benchmark itself reads this class without having them.
    """

    name = ""
    python = sys.executable
    packages: tuple[str, ...] = ()
    pins_before_loading = False

    def __init__(self) -> None:
        self.library: Any = None

    @classmethod
    def env(cls, threads: int) -> dict[str, str]:
        """Return what the process's environment needs besides the usual."""
        return {}

    def imports(self) -> None:
        """Import the packages (timed as import_s); ``library`` is the first of them."""
        self.library, *_ = [importlib.import_module(package) for package in self.packages]

    def version(self) -> str:
        return str(self.library.__version__)

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        """Read and compile the model at `path` and place its inputs (timed as compile_s)."""
        raise NotImplementedError

    def run(self) -> Any:
        """Run once and return when the outputs are there (this is what is timed)."""
        raise NotImplementedError

    def outputs(self, result: Any) -> list[np.ndarray]:
        """Turn what ``run`` returned into arrays, in the order of the entry's outputs."""
        return [np.asarray(x) for x in (result if isinstance(result, (tuple, list)) else [result])]
