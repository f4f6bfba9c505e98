"""Looks for data races and missing barriers in the kernels of the GPU benchmark, on a machine without a GPU.

    .venv/bin/python benchmarks/gpu/check_races.py [CASE ...] [--arch sm_90]

Each kernel is lowered with the tiles that the rules choose, and its first and last block are run by the interpreter of threads.
CASE is a part of a case's name; without any, all cases are checked, in about an hour of processor time. Exits with 1 where
a kernel is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from cases import Case, all_cases

from weft.codegen.cuda import backend
from weft.codegen.cuda.nvrtc import Cubin
from weft.codegen.interp import ExecutionError
from weft.codegen.interp.threads import check_block, kernels_of
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.loop import Function, parse_program
from weft.targets import parse_target


def kernels(case: Case, target: str) -> Iterator[Function]:
    """Yields the kernels of a case, each once, lowered and not compiled."""
    made = build(case.model(), target, CompileOptions(precision=case.compiled_for), cache=None)
    for kernel in made.kernels.values():
        yield from kernels_of(parse_program(kernel.flat))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", help="a part of the names of the cases to check")
    parser.add_argument("--arch", default="sm_90")
    asked = parser.parse_args()
    target, wrong = f"cuda -arch={asked.arch}", 0
    backend.compile_cubin = lambda text, arch: Cubin(b"", {})
    for case in all_cases():
        if asked.case and not any(part in case.name for part in asked.case):
            continue
        found = list(kernels(case, target))
        for kernel in found:
            try:
                for last in (False, True):
                    check_block(kernel, parse_target(target), last=last)
            except ExecutionError as error:
                wrong += 1
                print(f"{case.name}: {kernel.name}: {error}")
        print(f"{case.name}: {len(found)} kernels", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
