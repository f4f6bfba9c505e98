"""OpenVINO as an engine of `weft bench`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import openvino


class Peer:
    """OpenVINO on the CPU for latency, held to float32: by default it may choose bfloat16."""

    name = "openvino"

    def load(self, path: Path, threads: int) -> None:
        """Compiles the model."""
        hints = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": False,
        }
        self.model = openvino.Core().compile_model(str(path), "CPU", hints)

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Shares the inputs with the model."""
        self.request = self.model.create_infer_request()
        self.kept = {n: openvino.Tensor(a, shared_memory=True) for n, a in inputs.items()}
        for n, tensor in self.kept.items():
            self.request.set_tensor(n, tensor)

    def run(self) -> object:
        """Runs the model once."""
        return self.request.infer()

    def outputs(self) -> list[np.ndarray]:
        """Returns the outputs of a run."""
        self.run()
        return [self.request.get_output_tensor(n).data.copy() for n in range(len(self.model.outputs))]
