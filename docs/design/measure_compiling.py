"""Measures how compiling uses processors: decisions 0032, 0047 and 0083 of `measure.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter, process_time, thread_time
from typing import Any
from unittest.mock import patch

import weft
from weft.cli.demo_models import resnet18
from weft.driver import kernel
from weft.driver import python_settings as interpreter
from weft.driver.build import build
from weft.driver.calibrate import target_here
from weft.frontends.onnx.importer import from_onnx
from weft.loop import parse_program, print_program
from weft.native import _rt

IMPORTS = "import time, weft.driver.kernel, weft.codegen.llvm.backend; print(time.process_time())"
"""What a process has to do before it can make a kernel."""


def compiling() -> None:
    """0032: compiling ResNet-18 from nothing, by how long threads wait before they ask for the interpreter lock."""
    source = from_onnx(resnet18())
    for patience in (0.005, interpreter.PATIENCE):
        with patch.object(interpreter, "PATIENCE", patience):
            taken = []
            for _ in range(3):
                start = perf_counter()
                made = weft.build(source)
                taken.append(perf_counter() - start)
        llvm = sum(s.end - s.begin for s in made.spans if s.kind == "LLVM")
        print(
            f"asked for after {patience * 1e3:.0f} ms: {min(taken):.1f} s, kernels in LLVM's threads for {llvm:.1f} s"
        )


def second_process() -> None:
    """0047: what of compiling ResNet-18 a second process could do, and what that process would cost; processor time."""
    kernels, lower_kernel = [0.0], kernel.lower_kernel

    def timed(*given: Any, **named: Any) -> kernel.LoweredKernel:
        start = thread_time()
        made: kernel.LoweredKernel = lower_kernel(*given, **named)
        kernels[0] += thread_time() - start
        return made

    source, machine = from_onnx(resnet18()), target_here("cpu", None, None)
    with patch.object(kernel, "lower_kernel", timed), interpreter.tuned_for_compiling():
        whole, python = process_time(), thread_time()
        made = build(source, machine)
        whole, python = process_time() - whole, thread_time() - python
    texts = [print_program(r.program) for r in made.requests.values()]
    reading = _taken(lambda: [parse_program(t) for t in texts])
    imports = float(subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, check=True).stdout)
    print(f"{whole:.2f} s, {python:.2f} of them in the one thread of Python, {kernels[0]:.2f} for kernels")
    print(f"the second process: {imports:.2f} s of imports, {reading:.2f} to read the programs of all kernels")
    without, shared = max(python, whole / 2), max(python - kernels[0] / 2, (whole + imports + reading / 2) / 2)
    print(
        f"on two cores at least {without:.2f} s in one process, {shared:.2f} in two; on many {python:.2f} and ", end=""
    )
    print(f"{python - kernels[0] / 2:.2f}")


def processes() -> None:
    """0083: compiling ResNet-18, and a chain of products, from nothing, in one process and in as many as there are processors."""
    for name, model in (("ResNet-18", "resnet18()"), ("60 products of different widths", "chain()")):
        taken = {count: [float(_compiled(model, count)) for _ in range(3)] for count in (1, _rt.cpus())}
        found = ", ".join([f"{count} {min(times):.1f} s" for count, times in taken.items()])
        print(f"{name}, processes and the least of three times: {found}")


CHAIN = """
import time, weft
from weft.cli.demo_models import resnet18
from weft.cli.onnx_builder import GraphBuilder

def chain():
    g = GraphBuilder("chain")
    made = g.input("x", [16, 64])
    for n in range(64, 64 + 60 * 4, 4):
        made = g.op("Relu", g.op("MatMul", made, g.normal((n, n + 4), 0.1)))
    g.output(made, "y")
    return g.model()

model = MODEL
start = time.perf_counter()
weft.compile(model, cache=False)
print(time.perf_counter() - start)
"""


def _compiled(model: str, count: int) -> str:
    """Returns the seconds that a process of its own takes to compile *model* in so many processes."""
    code = CHAIN.replace("MODEL", model)
    environment = {**os.environ, "WEFT_COMPILE_PROCESSES": str(count)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    ).stdout


def _taken(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start
