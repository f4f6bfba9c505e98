"""Other engines on the same GPU: PyTorch (cuBLAS, cuDNN), `torch.compile`, and ONNX Runtime, each where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from cases import Arrays, Case

import weft

ROUNDS = 5


def torch_on_gpu() -> Any | None:
    """Returns PyTorch where it is installed and has a GPU."""
    if find_spec("torch") is None:
        return None
    import torch

    return torch if torch.cuda.is_available() else None


def tensor(torch: Any, x: np.ndarray[Any, Any]) -> Any:
    """Returns an array on the GPU."""
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16).cuda()
    return torch.from_numpy(x).cuda()


def arrays(made: Any) -> list[np.ndarray[Any, Any]]:
    """Returns a tensor, or several, in the host's memory, in float32."""
    return [x.detach().float().cpu().numpy() for x in (made if isinstance(made, tuple | list) else [made])]


def by_torch(
    torch: Any, case: Case, inputs: Arrays, *, mode: str | None = None, as_model: bool = False
) -> Callable[[], Any]:
    """Returns a call of *case* in PyTorch, compiled in a *mode* of `torch.compile` if one is given.

    It is of what the model is of, where the compiler takes the precision, or *as_model*.
    """
    allowed = case.precision == "tf32" and not as_model
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    given = [tensor(torch, x) for x in (*inputs.values(), *case.weights.values())]
    function = case.in_torch(torch)
    if case.rounds and case.precision == "bf16" and not as_model:
        function = function.to(torch.bfloat16) if isinstance(function, torch.nn.Module) else function
        given = [x.to(torch.bfloat16) if x.is_floating_point() else x for x in given]
    if mode is not None:
        function = torch.compile(function, mode=mode)
    return lambda: function(*given)


@dataclass(frozen=True)
class Timed:
    """Seconds of a call: those of the device, by events around graphs, and those of the host, until the device is done."""

    device: float
    wall: float


def torch_times(torch: Any, run: Callable[[], Any], seconds: float) -> Timed:
    """Returns the times of *run* as a CUDA graph."""
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        once = _events(torch, graph.replay, 3)
        times = max(1, int(seconds / ROUNDS / max(once, 1e-6)))
        device = median([_events(torch, graph.replay, times) for _ in range(ROUNDS)])

        def call() -> None:
            graph.replay()
            torch.cuda.synchronize()

        return Timed(device, wall_seconds(call, seconds))


def copy_seconds(torch: Any, nbytes: float, seconds: float) -> float:
    """Returns the seconds of a copy inside of the device's memory that reads and writes so many bytes, both together."""
    source = torch.empty(int(nbytes) // 8, dtype=torch.float32, device="cuda").normal_()
    to = torch.empty_like(source)
    return torch_times(torch, lambda: to.copy_(source), seconds).device


def wall_seconds(call: Callable[[], object], seconds: float) -> float:
    """Returns the median seconds of calls one after another."""
    times: list[float] = []
    for _ in range(3):
        call()
    stop = perf_counter() + seconds
    while perf_counter() < stop or len(times) < ROUNDS:
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return median(times)


def resident_seconds(model: weft.Model, inputs: Sequence[np.ndarray[Any, Any]], seconds: float) -> float:
    """Returns the median seconds of a call of Weft's whose inputs and outputs are in the device's memory."""
    there = [model.to_device(x) for x in inputs]
    out = model.run(there, on_device=True)
    return wall_seconds(lambda: model.run(there, out=out), seconds)


def _events(torch: Any, run: Callable[[], Any], times: int) -> float:
    begin, end = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    begin.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1000 / times


def onnxruntime_session(model: bytes) -> Any | None:
    """Returns a session of ONNX Runtime on the GPU; None where it is not installed for CUDA, or does not take the model."""
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return None
    try:
        return onnxruntime.InferenceSession(model, providers=["CUDAExecutionProvider"])
    except Exception as error:
        print(f"  ONNX Runtime: {error}")
        return None


def session_seconds(session: Any, inputs: Arrays, seconds: float) -> float:
    """Returns the seconds of a call whose inputs and outputs stay on the GPU."""
    from onnxruntime import OrtValue

    binding = session.io_binding()
    for name, x in inputs.items():
        binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(x, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    return wall_seconds(lambda: session.run_with_iobinding(binding), seconds)
