"""Times plans of one decision on a GPU with CUDA, beside the estimates that a rule chooses by.

    .venv/bin/python benchmarks/gpu/plans.py gemm1024_bf16 --best 12
    .venv/bin/python benchmarks/gpu/plans.py gemm2048_bf16 --plans "8,1,32,4,8,4,2;4,1,16,4,8,6,4"
    .venv/bin/python benchmarks/gpu/plans.py softmax4096x4096_fp16,norm4096x4096_fp16 --hints
    .venv/bin/python benchmarks/gpu/plans.py gemm1024_bf16 --dry                    compiles them only

A plan is told by the fields of `FragmentTile` for products, of `RowThreads` for rows, in order. Plans are compiled in processes.
With `--hints` each is also timed with stores, and with loads, that do not keep what they move in the caches.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cases import case_of
from device_time import kernel_seconds

import weft
from weft.codegen.cuda import backend
from weft.codegen.cuda.nvrtc import Cubin, compile_cubin
from weft.cost import Candidate, FragmentTile, RowThreads
from weft.driver.build import build
from weft.runtime.artifact import artifact_parts
from weft.schedule.rules.grid import fragment_tiles, row_blocks
from weft.support.errors import WeftError

TARGET = "cuda -arch=sm_90"
NONE = {FragmentTile: FragmentTile(), RowThreads: RowThreads(0)}
RULES: dict[type, tuple[Any, str]] = {
    FragmentTile: (fragment_tiles, "fragment_tile_plans"),
    RowThreads: (row_blocks, "row_thread_plans"),
}
HINTS = {
    "stores": [(r"\*\((\w+4) \*\)\((.*)\) = (.*);$", r"__stcs((\1 *)(\2), \3);")],
    "loads": [(r"= \*\((const \w+4 \*)\)\((p0 .*)\);$", r"= __ldcs((\1)(\2));")],
}
"""The vectors of a kernel's text that are moved past the caches."""


@dataclass(frozen=True)
class Job:
    """A plan of a case, and the hints of its accesses."""

    case: str
    plan: Any
    cycles: float
    hints: tuple[str, ...]
    path: str


def force(kind: type, plans: Any) -> None:
    """Has the rule of a decision choose among *plans*, a function of what the rule's are."""
    module, name = RULES[kind]
    setattr(module, name, plans)


def known_plans(name: str, kind: type) -> dict[Any, float]:
    """Returns all plans that the rule knows for a case, with their cycles."""
    module, attribute = RULES[kind]
    real, found = getattr(module, attribute), {}

    def recorded(*facts: Any) -> Iterator[Candidate[Any]]:
        made = list(real(*facts))
        found.update({c.decision: c.cycles for c in made})
        return iter(made)

    force(kind, recorded)
    build(case_of(name).model(), TARGET, cache=None)
    force(kind, real)
    return {d: n for d, n in found.items() if d != NONE[kind]}


def compiled(job: Job) -> str:
    """Writes the model of a job to a file; returns why not, or what it takes."""
    taken = []

    def hinted(text: str, arch: str) -> Cubin:
        for hint in job.hints:
            for pattern, to in HINTS[hint]:
                text = re.sub(pattern, to, text, flags=re.MULTILINE)
        made = compile_cubin(text, arch)
        taken.extend(made.resources.values())
        return made

    backend.compile_cubin = hinted
    kind = type(job.plan)
    module, name = RULES[kind]
    real = getattr(module, name)
    force(kind, lambda *_: iter([Candidate(NONE[kind], 2.0), Candidate(job.plan, 1.0)]))
    try:
        made = build(case_of(job.case).model(), TARGET, cache=None)
    except WeftError as error:
        return str(error).splitlines()[0]
    finally:
        setattr(module, name, real)
    Path(job.path).write_bytes(b"".join(artifact_parts(made.package)))
    return ", ".join([f"{r.registers} registers, {r.spills} spilled" for r in taken])


def jobs_of(options: argparse.Namespace, folder: str) -> Iterator[Job]:
    """Yields the plans to time."""
    for name in options.cases.split(","):
        kind: type = FragmentTile if name.startswith("gemm") else RowThreads
        known = known_plans(name, kind)
        plans = [kind(*map(int, t.split(","))) for t in options.plans.split(";") if t]
        plans += sorted(known, key=known.__getitem__)[: options.best or (0 if plans else 12)]
        for plan in dict.fromkeys(plans):
            for hints in [(), *[(h,) for h in HINTS]] if options.hints else [()]:
                path = f"{folder}/{name}-{abs(hash((plan, hints)))}.weft"
                yield Job(name, plan, known.get(plan, 0.0), hints, path)


def main() -> None:
    """Prints a line for each plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", help="names, with commas between them")
    parser.add_argument("--plans", default="")
    parser.add_argument("--best", type=int, default=0, help="as many as are estimated to be the fastest")
    parser.add_argument("--hints", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    first = None  # as long as one model lives, the driver's context does
    with TemporaryDirectory() as folder, ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        jobs = list(jobs_of(options, folder))
        inputs: dict[str, list[Any]] = {}
        for job, told in zip(jobs, pool.map(compiled, jobs), strict=True):
            line = told
            with suppress(OSError):
                if not options.dry and Path(job.path).is_file():
                    case = case_of(job.case)
                    if job.case not in inputs:
                        inputs = {job.case: list(case.inputs().values())}
                    model = weft.load(job.path)
                    first = first or model
                    took, launches = kernel_seconds(model, inputs[job.case], options.seconds)
                    rate = (
                        f"{case.flops / took / 1e12:.0f} TFLOP/s"
                        if case.flops
                        else f"{case.nbytes / took / 1e9:.0f} GB/s"
                    )
                    line = f"{took * 1e6:.2f} us, {rate}, {launches} launches; {told}"
            print(
                f"{job.case} {astuple(job.plan)} {' '.join(job.hints)} estimated {job.cycles:.4g}: {line}", flush=True
            )


if __name__ == "__main__":
    main()
