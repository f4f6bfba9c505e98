"""The benchmark's networks at full size, with seeded weights: PyTorch writes them into a folder of this run of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest

BENCHMARKS: Final = Path(__file__).resolve().parents[2] / "benchmarks"

NAMES: Final = ("resnet18", "mobilenet_v1", "dqn", "dcgan", "mlp", "lstm_lm", "bert_base", "gpt2_decode256")


@dataclass(frozen=True)
class RealNetwork:
    """A network as a file, and its seeded inputs by name."""

    path: Path
    inputs: dict[str, np.ndarray[Any, Any]]

    @property
    def model(self) -> onnx.ModelProto:
        """The model, read anew."""
        return onnx.load(self.path)


@pytest.fixture(scope="session")
def real_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RealNetwork]]:
    """A function that returns one of `NAMES`, which is exported where it is first asked for."""
    pytest.importorskip("torch")
    folder, known = tmp_path_factory.mktemp("networks"), dict[str, RealNetwork]()
    sys.path.append(str(BENCHMARKS))  # whose modules are scripts beside each other

    def of(name: str) -> RealNetwork:
        if name not in known:
            models = import_module("models")
            model, path = models.MODELS[name], folder / f"{name}.onnx"
            entry = {"name": name, "inputs": model.inputs, "outputs": model.outputs}
            models.write(entry, model, path)
            known[name] = RealNetwork(path, import_module("inputs").make_inputs(entry))
        return known[name]

    yield of
    sys.path.remove(str(BENCHMARKS))
