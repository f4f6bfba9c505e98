"""ONNX Runtime as an engine of `weft bench`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime


class Peer:
    """ONNX Runtime's CPU provider with all graph optimisations, its threads fixed."""

    name = "onnxruntime"

    def load(self, path: Path, threads: int) -> None:
        """Makes a session."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Binds inputs and outputs once, so that a run copies nothing."""
        self.binding = self.session.io_binding()
        self.kept = {n: onnxruntime.OrtValue.ortvalue_from_numpy(a) for n, a in inputs.items()}
        for n, value in self.kept.items():
            self.binding.bind_ortvalue_input(n, value)
        for o in self.session.get_outputs():
            self.binding.bind_output(o.name, "cpu")

    def run(self) -> object:
        """Runs the model once."""
        self.session.run_with_iobinding(self.binding)
        return None

    def outputs(self) -> list[np.ndarray]:
        """Returns the outputs of a run."""
        self.run()
        return [v.numpy() for v in self.binding.get_outputs()]
