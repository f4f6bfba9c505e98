"""Kernels on a device that is this machine's processor (OpenCL by PoCL) beside Weft's own for the processor, in turns.

python benchmarks/gpu/beside_processor.py --only GEMM,C2 --seconds 3
python benchmarks/gpu/beside_processor.py --records device.db --tune 3      tuned for 3 minutes each, or as recorded
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from cases import Case, convolution, one_operator

import weft
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.runtime import Model

SIZE = 512
CASES: dict[str, Callable[[], Case]] = {
    "GEMM": lambda: one_operator("MatMul", "gemm512", "fp32", {"x": (SIZE, SIZE), "w": (SIZE, SIZE)}),
    **{name: lambda name=name: convolution(name, "fp32", 1) for name in ("C2", "C6", "C9")},
}


def compare(case: Case, target: str, seconds: float, records: Path | None) -> tuple[float, float, float, int]:
    """Returns the median seconds on the processor and on the device, the greatest difference, and the number of launches.

    The device follows *records*, if there are any; the kernels for the processor are those of the rules.
    """
    inputs, source = case.inputs(), case.model()
    options = CompileOptions(records=records)
    here, there = Model(build(source, "cpu").package), Model(build(source, target, options).package)
    device = there.device
    assert device is not None
    with device.noting() as launches:
        made = there(**inputs)
    wanted = here(**inputs)
    difference = float(np.abs(np.asarray(made) - np.asarray(wanted)).max() / np.abs(np.asarray(wanted)).max())
    times: list[tuple[float, float]] = []
    begin = perf_counter()
    while len(times) < 3 or perf_counter() < begin + seconds:
        start = perf_counter()
        here(**inputs)
        times.append((perf_counter() - start, device.repeat(launches)))
    return median([a for a, _ in times]), median([b for _, b in times]), difference, len(launches)


def main() -> None:
    """Prints a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--target", default="opencl")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--records", type=Path, help="the database that the device's plans are from")
    parser.add_argument("--tune", type=float, default=0.0, metavar="MINUTES", help="to search for each of them first")
    args = parser.parse_args()
    for name in args.only.split(","):
        begin = perf_counter()
        if args.tune and args.records:
            weft.tune(CASES[name]().model(), args.tune, args.records, target=args.target)
        here, there, difference, launches = compare(CASES[name](), args.target, args.seconds, args.records)
        print(
            f"{name:5} processor {here * 1e3:8.3f} ms  {args.target} {there * 1e3:8.3f} ms  ratio {there / here:6.2f}"
            f"  launches {launches}  difference {difference:.1e}  in all {perf_counter() - begin:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
