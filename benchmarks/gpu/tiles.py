"""Times tiles of products of 16-bit floats on a GPU with CUDA, each beside the estimate that the rule chooses by.

    .venv/bin/python benchmarks/gpu/tiles.py                              the tiles of groups of warps, 4096 x 4096 of bf16
    .venv/bin/python benchmarks/gpu/tiles.py --size 2048 --precision fp16 --best 8
    .venv/bin/python benchmarks/gpu/tiles.py --tiles "8,1,32,4,8,4,2;8,1,32,4,8,3,1"
    .venv/bin/python benchmarks/gpu/tiles.py --dry                        compiles them only

A tile is told by the fields of `FragmentTile`, in order.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import astuple

from cases import Case, all_cases
from device_time import kernel_seconds

import weft
from weft.cost import Candidate, FragmentTile, fragment_tile_plans
from weft.driver.build import build
from weft.schedule.rules.grid import fragment_tiles
from weft.support.errors import WeftError
from weft.targets.cuda_machines import cuda


def force(tile: FragmentTile) -> None:
    """Has the rule take a tile wherever it is legal."""

    def only(*_: object) -> Iterator[Candidate[FragmentTile]]:
        yield Candidate(FragmentTile(), 2.0)
        yield Candidate(tile, 1.0)

    fragment_tiles.fragment_tile_plans = only  # type: ignore[assignment]


def main() -> None:
    """Prints a line for each tile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--precision", default="bf16", choices=("fp16", "bf16"))
    parser.add_argument("--tiles", default="")
    parser.add_argument("--best", type=int, default=0, help="as many as are estimated to be the fastest, of all kinds")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    n, case = options.size, next(c for c in all_cases() if c.name == f"gemm{options.size}_{options.precision}")
    known = {c.decision: c.cycles for c in fragment_tile_plans(n, n, 1, n, n, cuda("sm_90"))}
    tiles = [FragmentTile(*map(int, t.split(","))) for t in options.tiles.split(";") if t]
    if options.best:
        tiles += sorted([t for t in known if t.warps], key=known.__getitem__)[: options.best]
    for tile in tiles or [t for t in known if t.copies > 1]:
        force(tile)
        try:
            line = _timed(case, options.seconds) if not options.dry else _compiled(case)
        except WeftError as error:
            line = str(error).splitlines()[0]
        print(f"{n} {options.precision} {astuple(tile)} estimated {known.get(tile, 0) / n**3:.4f}: {line}", flush=True)


def _timed(case: Case, seconds: float) -> str:
    inputs = list(case.inputs().values())
    model = weft.compile(case.model(), target="cuda", cache=False)
    model.run(inputs)
    took, _ = kernel_seconds(model, inputs, seconds)
    return f"{took * 1000:.4f} ms, {case.flops / took / 1e12:.0f} TFLOP/s"


def _compiled(case: Case) -> str:
    build(case.model(), "cuda -arch=sm_90", cache=None)
    return "compiled"


if __name__ == "__main__":
    main()
