"""PyTorch, eager and compiled: the modules themselves, not the ONNX files."""

import importlib
import tempfile
from typing import Any

import numpy as np
from inputs import Entry

from engines.base import Engine, interpreter


class Torch(Engine):
    """Eager PyTorch."""

    name = "torch"
    python = interpreter("torch")
    packages = ("torch",)
    channels_last = False

    @classmethod
    def env(cls, threads: int) -> dict[str, str]:
        return {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        torch = self.library
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.model = importlib.import_module("models").build(entry["name"])
        self.inputs = [torch.from_numpy(inputs[spec["name"]]) for spec in entry["inputs"]]
        if self.channels_last and not entry["name"].startswith("gpt2"):
            order = torch.channels_last
            self.model = self.model.to(memory_format=order)
            self.inputs = [x.contiguous(memory_format=order) if x.dim() == 4 else x for x in self.inputs]
        self.compile()

    def compile(self) -> None:
        """Do nothing: eager."""

    def run(self) -> Any:
        return self.model(*self.inputs)

    def outputs(self, result: Any) -> list[np.ndarray]:
        results = result if isinstance(result, (tuple, list)) else [result]
        return [tensor.detach().contiguous().numpy() for tensor in results]


class TorchChannelsLast(Torch):
    """Eager PyTorch with images stored channels last."""

    name = "torch-cl"
    channels_last = True


class Inductor(Torch):
    """torch.compile with frozen weights and no caches."""

    name = "inductor"
    options: dict[str, bool] = {"freezing": True}  # noqa: RUF012 (never changed)

    @classmethod
    def env(cls, threads: int) -> dict[str, str]:
        cache = {
            "TORCHINDUCTOR_CACHE_DIR": tempfile.mkdtemp(prefix="inductor"),
            "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
        }
        return super().env(threads) | cache

    def compile(self) -> None:
        self.model = self.library.compile(self.model, options=self.options, fullgraph=True)
        self.run()  # compiles now


class InductorMaxAutotune(Inductor):
    """The same, choosing kernels by trying them."""

    name = "inductor-ma"
    options: dict[str, bool] = {"freezing": True, "max_autotune": True}  # noqa: RUF012
