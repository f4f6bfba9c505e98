"""The time that a device takes for the kernels of a model, without copies and without Python.

The launches of one call are recorded, captured in a CUDA graph (NVIDIA, "CUDA Driver API", section "Graph Management"), and run
again between two events.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_float, c_int, c_uint, c_uint64, c_void_p
from statistics import median
from typing import Any

import numpy as np

import weft
from weft.runtime.devices.cuda import CudaDevice
from weft.runtime.devices.cuda_library import call, handle_from

ROUNDS = 5
THREAD_LOCAL = 1


def kernel_seconds(model: weft.Model, inputs: Sequence[np.ndarray[Any, Any]], seconds: float) -> tuple[float, int]:
    """Returns the seconds of all kernels of a call, the median of several rounds, and how many launches there are."""
    table = model.device
    assert table is not None
    device = table.device
    assert isinstance(device, CudaDevice)
    with table.noting() as launches:
        model.run(inputs)
    stream = c_void_p(device._stream)
    call("cuCtxSetCurrent", c_void_p(device._context))
    call("cuStreamBeginCapture_v2", stream, c_int(THREAD_LOCAL))
    for launch in launches:
        device.launch(*launch)
    graph = c_void_p()
    call("cuStreamEndCapture", stream, byref(graph))
    made = handle_from("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    once = _timed(made, stream, 3)
    times = max(1, int(seconds / ROUNDS / max(once, 1e-6)))
    found = median([_timed(made, stream, times) for _ in range(ROUNDS)])
    call("cuGraphExecDestroy", c_void_p(made))
    call("cuGraphDestroy", graph)
    return found, len(launches)


def _timed(graph: int, stream: c_void_p, times: int) -> float:
    """Returns the seconds of one run of a graph, of *times* one after another."""
    begin, end = [handle_from("cuEventCreate", c_uint(0)) for _ in range(2)]
    call("cuEventRecord", c_void_p(begin), stream)
    for _ in range(times):
        call("cuGraphLaunch", c_void_p(graph), stream)
    call("cuEventRecord", c_void_p(end), stream)
    call("cuEventSynchronize", c_void_p(end))
    took = c_float()
    call("cuEventElapsedTime", byref(took), c_void_p(begin), c_void_p(end))
    for event in (begin, end):
        call("cuEventDestroy_v2", c_void_p(event))
    return took.value / 1000 / times
