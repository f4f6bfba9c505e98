"""Where the time of a case goes on a GPU with CUDA, kernel by kernel.

    .venv/bin/python benchmarks/gpu/kernel_times.py gpt2_decode256_b1_fp32 bert_base_b1_bf16

The time of a kernel is that of all launches of a call, less that of the same without those of this kernel: launches find in the
second level of cache what they would find there in the call. Kernels that take less than `--least` of it are added up.
"""

from __future__ import annotations

import argparse
from collections import Counter

from cases import case_of
from device_time import ROUNDS

from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.runtime import Model
from weft.runtime.devices.device import Launch
from weft.runtime.devices.device_table import DeviceTable

SECONDS = 0.02
"""For which each list of launches is repeated, in each of several rounds."""


def kernel_rows(table: DeviceTable, launches: list[Launch]) -> tuple[float, list[tuple[float, int, Launch]]]:
    """Returns the seconds of a call, and those of each kernel with its number of launches and its first, longest first."""
    whole = _seconds(table, launches)
    counts = Counter(launch[0] for launch in launches)
    firsts = {launch[0]: launch for launch in reversed(launches)}
    rows = [
        (whole - _seconds(table, [x for x in launches if x[0] != kernel]), n, firsts[kernel])
        for kernel, n in counts.items()
    ]
    return whole, sorted(rows, key=lambda row: -row[0])


def _seconds(table: DeviceTable, launches: list[Launch]) -> float:
    if not launches:
        return 0.0
    once = table.repeat(launches)
    times = max(1, int(SECONDS / max(once, 1e-6) / max(1, len(launches) // 64)))
    return min(table.repeat(launches, times) / times for _ in range(ROUNDS))


def show(name: str, least: float) -> None:
    """Prints the kernels of a case."""
    case = case_of(name)
    made = build(case.model(), "cuda", CompileOptions(precision=case.compiled_for))
    assert made.package.replay is not None
    model, code = Model(made.package), made.package.replay.device
    table = model.device
    assert table is not None
    assert code is not None
    with table.noting() as launches:
        model.run(list(case.inputs().values()))
    whole, rows = kernel_rows(table, launches)
    print(f"## {name}: {whole * 1e6:.1f} us, {len(launches)} launches", flush=True)
    for seconds, n, (kernel, grid, _) in [r for r in rows if r[0] >= least * whole]:
        print(
            f"{seconds * 1e6:9.1f} us {n:4} launches {seconds / n * 1e6:8.2f} us each {tuple(grid)} {code.kernels[kernel]}"
        )
    rest = [r for r in rows if r[0] < least * whole]
    print(f"{sum(r[0] for r in rest) * 1e6:9.1f} us {sum(r[1] for r in rest):4} launches of {len(rest)} others")


def main() -> None:
    """Prints the kernels of each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument(
        "--least", type=float, default=0.01, help="the part of the whole that a kernel takes to be listed"
    )
    options = parser.parse_args()
    for name in options.cases:
        show(name, options.least)


if __name__ == "__main__":
    main()
