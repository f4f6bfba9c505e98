"""Other compilers of ONNX models: Apache TVM, IREE, tinygrad, JAX/XLA. ``setup.sh`` makes their environments on request."""

import glob
import importlib
import importlib.metadata
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from inputs import Entry

from engines.base import CACHE, Engine, interpreter


class Tvm(Engine):
    """Apache TVM's default pipeline: it has no schedules for CPUs, so plain loops vectorised by LLVM."""

    name = "tvm"
    python = interpreter("tvm")
    packages = ("tvm", "tvm.relax", "tvm.relax.frontend.onnx", "onnx")

    @classmethod
    def env(cls, threads: int) -> dict[str, str]:
        return {"TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        tvm, relax = self.library, self.library.relax
        cpu = tvm.target.codegen.llvm_get_system_cpu()
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
        proto = importlib.import_module("onnx").load(path)
        module = relax.frontend.onnx.from_onnx(proto, keep_params_in_input=False)
        passes = relax.transform
        simplify = [passes.DecomposeOpsForInference(), passes.CanonicalizeBindings(), passes.FoldConstant()]
        module = tvm.transform.Sequential(simplify)(module)
        machine = relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())
        self.inputs = [tvm.runtime.tensor(inputs[spec["name"]]) for spec in entry["inputs"]]
        self.function = machine["main"]

    def run(self) -> Any:
        return self.function(*self.inputs)

    def outputs(self, result: Any) -> list[np.ndarray]:
        return [x.numpy() for x in ([result] if hasattr(result, "numpy") else result)]


class Iree(Engine):
    """IREE for the host's CPU."""

    name = "iree"
    python = interpreter("iree")
    packages = ("iree.runtime",)
    flags: tuple[str, ...] = ("--iree-opt-level=O3",)

    def version(self) -> str:
        return importlib.metadata.version("iree-base-compiler")

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        rt = self.library
        rt.flags.parse_flags(f"--task_topology_group_count={threads}")
        config = self.config = rt.Config("local-sync" if threads == 1 else "local-task")
        context = self.context = rt.SystemContext(config=config)
        with tempfile.TemporaryDirectory(prefix="iree", dir=CACHE) as directory:
            self.compile(path, Path(directory))
            context.add_vm_module(rt.VmModule.mmap(config.vm_instance, f"{directory}/model.vmfb"))
        module = context.modules.module
        names = [n for n in module.vm_module.function_names if not n.startswith("_") and "$" not in n]
        self.function = module[names[0]]
        self.inputs = [rt.asdevicearray(config.device, inputs[spec["name"]]) for spec in entry["inputs"]]

    def compile(self, path: str, directory: Path) -> None:
        """Write model.vmfb into `directory`."""
        tools = Path(self.python).parent
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        source, target = str(directory / "model.mlir"), str(directory / "model.vmfb")
        machine = (
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=host",
        )
        for command in (
            [tools / "iree-import-onnx", path, "-o", source],
            [tools / "iree-compile", source, "-o", target, *machine, *self.flags],
        ):
            subprocess.run(command, check=True, stdout=2, env=environment)

    def run(self) -> Any:
        return self.function(*self.inputs)

    def outputs(self, result: Any) -> list[np.ndarray]:
        return [x.to_host() for x in (result if isinstance(result, (tuple, list)) else [result])]


class IreeChannelsLast(Iree):
    """The same, convolutions moved to channels last first: far better than its default on models stored otherwise."""

    name = "iree-nhwc"
    flags = (
        *Iree.flags,
        "--iree-preprocessing-pass-pipeline="
        "builtin.module(util.func(iree-preprocessing-convert-conv-to-channels-last))",
    )


class Tinygrad(Engine):
    """tinygrad through LLVM where a new enough one is installed, else through Clang."""

    name = "tinygrad"
    python = interpreter("tiny")
    packages = ("tinygrad", "tinygrad.nn.onnx")
    extra: tuple[tuple[str, str], ...] = ()

    @classmethod
    def env(cls, threads: int) -> dict[str, str]:
        found = glob.glob("/usr/lib/llvm-1[6-9]/lib/libLLVM*.so*") + glob.glob("/usr/lib/llvm-2*/lib/libLLVM*.so*")
        device = {"DEV": "CPU:LLVM", "LLVM_PATH": found[0]} if found else {"DEV": "CPU:CLANG"}
        cache = tempfile.mkdtemp(prefix="tinygrad") + "/cache.db"
        return {**device, "NUM_CPU_THREADS": str(threads), "CACHEDB": cache, **dict(cls.extra)}

    def version(self) -> str:
        return importlib.metadata.version("tinygrad")

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        tinygrad = self.library
        runner = importlib.import_module("tinygrad.nn.onnx").OnnxRunner(path)
        self.inputs = {name: tinygrad.Tensor(array).realize() for name, array in inputs.items()}

        def infer(**tensors: Any) -> list[Any]:
            results = runner(tensors)
            return [results[name].contiguous().realize() for name in entry["outputs"]]

        self.function = tinygrad.TinyJit(infer)
        self.device = tinygrad.Device[tinygrad.Device.DEFAULT]
        for _ in range(3):  # trace, capture, replay
            self.run()

    def run(self) -> Any:
        result = self.function(**self.inputs)
        self.device.synchronize()
        return result

    def outputs(self, result: Any) -> list[np.ndarray]:
        return [x.numpy() for x in result]


class TinygradBeam(Tinygrad):
    """The same with a beam search of width 2."""

    name = "tinygrad-beam2"
    extra = (("BEAM", "2"),)


class Jax(Engine):
    """XLA for CPUs through a small ONNX interpreter that jax.jit traces."""

    name = "jax"
    python = interpreter("jax")
    packages = ("jax",)
    pins_before_loading = True  # XLA sizes its pool by the affinity mask

    @classmethod
    def env(cls, threads: int) -> dict[str, str]:
        flags = "--xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
        return {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}

    def load(self, path: str, entry: Entry, inputs: dict[str, np.ndarray], threads: int) -> None:
        function, parameters = importlib.import_module("onnx_jax").load(path)
        self.inputs = [parameters, *(self.library.device_put(inputs[spec["name"]]) for spec in entry["inputs"])]
        self.function = self.library.jit(function).lower(*self.inputs).compile()

    def run(self) -> Any:
        return self.library.block_until_ready(self.function(*self.inputs))
