"""Weft and the two hand-written runtimes it is measured against."""

import os
from typing import Any

import numpy as np
from inputs import Entry

from engines.base import HERE, Engine, interpreter


class Weft(Engine):
    """Weft as a user calls it; WEFT_PYTHON names its interpreter."""

    name = "weft"
    python = os.environ.get("WEFT_PYTHON", str(HERE.parent / ".venv" / "bin" / "python"))
    packages = ("weft",)
    records: str | None = None

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        self.model = self.library.compile(path, threads=threads, cache=False, records=self.records)
        self.inputs = inputs

    def run(self) -> Any:
        return self.model(**self.inputs)


class WeftTuned(Weft):
    """The same with tuning records; WEFT_RECORDS names the database."""

    name = "weft-tuned"
    records = os.environ.get("WEFT_RECORDS")


class OnnxRuntime(Engine):
    """ONNX Runtime with everything on, its inputs and outputs bound once."""

    name = "onnxruntime"
    python = interpreter("ort")
    packages = ("onnxruntime",)

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        ort = self.library
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in inputs.items()}
        self.binding = self.session.io_binding()
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, value)
        for name in entry["outputs"]:
            self.binding.bind_output(name, "cpu")
        self.run()
        self.results = self.binding.get_outputs()  # from now on into these buffers
        for name, value in zip(entry["outputs"], self.results, strict=True):
            self.binding.bind_ortvalue_output(name, value)

    def run(self) -> Any:
        self.session.run_with_iobinding(self.binding)

    def outputs(self, result: Any) -> list[np.ndarray]:
        return [value.numpy() for value in self.results]


class OpenVino(Engine):
    """OpenVINO held to float32: on a CPU with bfloat16 it would choose that by itself."""

    name = "openvino"
    python = interpreter("ort")
    packages = ("openvino",)

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": False,
        }
        self.request = self.library.Core().compile_model(path, "CPU", settings).create_infer_request()
        for name, array in inputs.items():
            self.request.set_tensor(name, self.library.Tensor(array, shared_memory=True))
        self.inputs, self.names = inputs, entry["outputs"]

    def run(self) -> Any:
        self.request.infer()

    def outputs(self, result: Any) -> list[np.ndarray]:
        return [self.request.get_tensor(name).data.copy() for name in self.names]
