"""Weft's kernels on a GPU with CUDA, checked and timed beside PyTorch, torch.compile and ONNX Runtime.

    .venv/bin/python benchmarks/gpu/gpu.py --json gpu.json            all cases, for at most 8 minutes
    .venv/bin/python benchmarks/gpu/gpu.py --only gemm,softmax        those whose names contain one of these
    .venv/bin/python benchmarks/gpu/gpu.py --engines weft,torch       without the compiler of PyTorch, which takes its time
    .venv/bin/python benchmarks/gpu/gpu.py --dry --arch sm_90         compiles all kernels, without a GPU: what they take

Times are those of the device: of all kernels of a call, by events around a CUDA graph of them, with the data on the device; ONNX
Runtime's are those of its calls. `call_ms` is the wall time of such a call, beside that of a replay of PyTorch's graph and the
wait for it. A rate is of operations that the case takes at least, or of bytes; `copy_ms` is the time of a copy inside of the
device's memory that moves as many. Results are compared first: a case that differs is
marked, and is a failure of the run.

Networks (names such as `resnet18_b32_bf16`) are compiled for the precision, and are modules of bfloat16 in PyTorch; they are
compared with PyTorch's in float32. All cases that PyTorch compiles do so at once, in a process each, before anything is timed;
`--limit` is the seconds that they have, and `--compiled` names those that are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from cases import Arrays, Case, all_cases, case_of
from compiled_by_torch import Compilations
from device_time import kernel_seconds
from rivals import (
    arrays,
    by_torch,
    copy_seconds,
    onnxruntime_session,
    resident_seconds,
    session_seconds,
    torch_on_gpu,
    torch_times,
)

import weft
from weft.codegen.cuda import backend
from weft.codegen.cuda.nvrtc import Cubin, compile_cubin
from weft.codegen.cuda.resources import Resources
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.support.errors import WeftError

ENGINES = ("weft", "torch", "torch_compile", "onnxruntime")
Row = dict[str, Any]


@dataclass
class Compiled:
    """What NVRTC told of the kernels that were compiled."""

    resources: list[Resources] = field(default_factory=list)

    def record(self) -> None:
        """Has all kernels that are compiled from now on recorded."""

        def compiled(text: str, arch: str) -> Cubin:
            made = compile_cubin(text, arch)
            self.resources += made.resources.values()
            return made

        backend.compile_cubin = compiled

    def take(self) -> Row:
        """Returns the most that a kernel takes, of those since the last time."""
        found, self.resources = self.resources, []
        most = {name: max([getattr(r, name) for r in found], default=0) for name in ("registers", "shared", "spills")}
        return {"kernels": len(found), **most}


def dry(cases: Sequence[Case], arch: str, stop: float) -> Iterator[Row]:
    """Compiles each case for *arch*."""
    told = Compiled()
    told.record()
    for case in cases:
        if monotonic() > stop:
            yield {"case": case.name, "error": "no time was left"}
            continue
        try:
            build(case.model(), f"cuda -arch={arch}", CompileOptions(precision=case.compiled_for), cache=None)
            yield {"case": case.name, "arch": arch, **told.take()}
        except WeftError as error:
            told.take()
            yield {"case": case.name, "arch": arch, "error": str(error).splitlines()[0]}


@dataclass(frozen=True)
class Timing:
    """The engines that are timed, the seconds for each, when the benchmark is to end, and what PyTorch has compiled."""

    engines: Sequence[str]
    seconds: float
    stop: float
    compiled: Compilations


def measured(cases: Sequence[Case], how: Timing) -> Iterator[Row]:
    """Checks and times each case on this machine's GPU."""
    torch = torch_on_gpu()
    for case in cases:
        if monotonic() > how.stop:
            yield {"case": case.name, "error": "no time was left"}
            continue
        try:
            yield _measured(case, torch, how)
        except Exception as error:  # the others are measured all the same
            yield {"case": case.name, "error": f"{type(error).__name__}: {error}".splitlines()[0]}


def prepare(cases: Sequence[Case], jobs: int) -> None:
    """Compiles the cases in processes, into the cache."""
    if not jobs or not cases:
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        list(pool.map(_prepare, [c.name for c in cases]))


def _prepare(name: str) -> None:
    case = case_of(name)
    with suppress(Exception):  # what fails here fails again where it is told
        weft.compile(case.model(), target="cuda", precision=case.compiled_for)


def _measured(case: Case, torch: Any, how: Timing) -> Row:
    model, inputs = case.model(), case.inputs()
    begin = monotonic()
    ours = weft.compile(model, target="cuda", precision=case.compiled_for)
    row: Row = {"case": case.name, "compile_s": monotonic() - begin}
    given = list(inputs.values())
    made = [np.asarray(x, np.float32) for x in ours.run(given)]
    row["weft_ms"], row["launches"] = _scaled(kernel_seconds(ours, given, how.seconds))
    row["call_ms"] = resident_seconds(ours, given, how.seconds) * 1000
    _beside_torch(row, case, inputs, made, torch, how)
    if "onnxruntime" in how.engines and case.precision in ("fp32", "fp16"):
        _beside_onnxruntime(row, case, model.SerializeToString(), inputs, made, how.seconds)
    row.update(_rates(case, row["weft_ms"] / 1000))
    return row


def _scaled(told: tuple[float, int]) -> tuple[float, int]:
    return told[0] * 1000, told[1]


def _beside_torch(row: Row, case: Case, inputs: Arrays, made: list[Any], torch: Any, how: Timing) -> None:
    if torch is not None and "torch" in how.engines and monotonic() < how.stop:
        expected = by_torch(torch, case, inputs, as_model=case.rounds)
        row["max_error"] = max(map(_difference, arrays(expected()), made))
        row["agrees"] = row["max_error"] <= case.tolerance
        told = torch_times(torch, by_torch(torch, case, inputs), how.seconds)
        row["torch_ms"], row["torch_call_ms"] = told.device * 1000, told.wall * 1000
        if case.nbytes and not case.flops:
            row["copy_ms"] = copy_seconds(torch, case.nbytes, how.seconds) * 1000
    if torch is not None and "torch_compile" in how.engines:
        told = how.compiled.times(case.name, how.seconds)
        row["torch_compile_ms"] = told if isinstance(told, str) else told.device * 1000


def _beside_onnxruntime(row: Row, case: Case, model: bytes, inputs: Arrays, made: list[Any], seconds: float) -> None:
    session = onnxruntime_session(model)
    if session is None:
        return
    expected = session.run(None, inputs)
    error = max(_difference(np.asarray(x, np.float32), y) for x, y in zip(expected, made, strict=True))
    row.setdefault("max_error", error)
    row.setdefault("agrees", error <= case.tolerance)
    row["onnxruntime_ms"] = session_seconds(session, inputs, seconds) * 1000


def _difference(expected: np.ndarray[Any, Any], made: np.ndarray[Any, Any]) -> float:
    """Returns the greatest difference beside the largest value."""
    return float(np.abs(expected - made).max() / max(1e-30, float(np.abs(expected).max())))


def _rates(case: Case, seconds: float) -> Row:
    made: Row = {"tflops": case.flops / seconds / 1e12} if case.flops else {}
    return {**made, "gb_per_s": case.nbytes / seconds / 1e9} if case.nbytes else made


def table(rows: list[Row]) -> str:
    """Returns the rows as a table in Markdown, with a column for each figure that any of them has."""
    names = list(dict.fromkeys(k for r in rows for k in r))
    lines = [names, ["---"] * len(names), *[[_cell(r.get(n, "")) for n in names] for r in rows]]
    return "\n".join([f"| {' | '.join(line)} |" for line in lines])


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_named(case: Case, parts: str) -> bool:
    return any(part in case.name for part in parts.split(","))


def _with_rivals(cases: Sequence[Case], options: argparse.Namespace, stop: float) -> Iterator[Row]:
    """Compiles all cases, and PyTorch's beside them; then measures them."""
    engines = options.engines.split(",")
    has_compiler = "torch_compile" in engines and torch_on_gpu() is not None
    prepare([c for c in cases if c.rounds], options.jobs)  # whose files are there afterwards
    compiled = Compilations(
        [c.name for c in cases if has_compiler and _is_named(c, options.compiled)], options.limit, options.mode
    )
    try:
        prepare([c for c in cases if not c.rounds], options.jobs)
        compiled.wait()
        yield from measured(cases, Timing(engines, options.seconds, stop, compiled))
    finally:
        compiled.close()


def main() -> int:
    """Runs the benchmark; returns 1 where a result differs, or a kernel was not compiled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, with commas between them")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--engines", default=",".join(ENGINES), help="Weft, and those of these that are there")
    parser.add_argument("--seconds", type=float, default=0.4, help="for which each engine is timed")
    parser.add_argument("--jobs", type=int, default=0, help="processes that compile all cases before any is timed")
    parser.add_argument("--compiled", default="_b1_,_b32_", help="parts of names of the cases that PyTorch compiles")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that it has for them")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="of torch.compile, such as default")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--arch", default="sm_90")
    options = parser.parse_args()
    stop = monotonic() + 60 * options.minutes
    cases = [c for c in all_cases() if _is_named(c, options.only)]
    rows: list[Row] = []
    for row in dry(cases, options.arch, stop) if options.dry else _with_rivals(cases, options, stop):
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1), encoding="utf-8")
    return int(any("error" in r or r.get("agrees") is False for r in rows))


if __name__ == "__main__":
    sys.exit(main())
