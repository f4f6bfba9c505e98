"""Times tiles of any case on a GPU with CUDA, each beside its estimate: the best by the costs, or those given.

    .venv/bin/python benchmarks/gpu/tiles_of_cases.py --cases C6_b32_fp32,C12_b32_fp32 --best 6
    .venv/bin/python benchmarks/gpu/tiles_of_cases.py --cases gemm4096_fp32 --tiles "8,8,8,8,16,1,4,2,4;8,8,8,8,8,1,4,2,4"
    .venv/bin/python benchmarks/gpu/tiles_of_cases.py --cases C6_b32_fp32 --best 6 --dry        compiles them only
    .venv/bin/python benchmarks/gpu/tiles_of_cases.py --cases C9_b32_bf16 --fragments --best 8

A tile is told by the fields of `SharedTile`, or of `FragmentTile`, in order; those that the rule refuses are passed over.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, TypeAlias

import numpy as np
from cases import Case, all_cases
from device_time import kernel_seconds

import weft
from weft.cost import Candidate, FragmentTile, SharedTile, cheapest
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.runtime.artifact import artifact_parts
from weft.support.errors import WeftError

Tile: TypeAlias = SharedTile | FragmentTile


class Taking:
    """Answers the question of a tile by number *place* of the best, or by *wanted*; `taken` is the tile in the end."""

    def __init__(self, place: int, wanted: Tile | None, kind: type[Tile]) -> None:
        self.place = place
        self.kind = kind
        self.wanted = wanted
        self.taken: Candidate[Any] | None = None

    def __call__(self, candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        """Chooses."""
        if not isinstance(candidates[0].decision, self.kind):
            return cheapest(candidates)
        if self.taken is None and self.wanted is not None:
            known = next((c.cycles for c in candidates if c.decision == self.wanted), 0.0)
            self.taken = Candidate(self.wanted, known)
        elif self.taken is None:
            taken = "unroll" if self.kind is SharedTile else "warps"
            ranked = sorted([c for c in candidates if getattr(c.decision, taken)], key=lambda c: c.cycles) or [
                cheapest(candidates)
            ]
            self.taken = ranked[min(self.place, len(ranked) - 1)]
        return self.taken if self.taken in candidates or self.wanted is not None else cheapest(candidates)


def main() -> None:
    """Prints a line for each tile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--tiles", default="")
    parser.add_argument("--best", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--fragments", action="store_true")
    options = parser.parse_args()
    kind: type[Tile] = FragmentTile if options.fragments else SharedTile
    wanted = [kind(*map(int, t.split(","))) for t in options.tiles.split(";") if t]
    for case in [c for c in all_cases() if c.name in options.cases.split(",")]:
        first: list[np.ndarray[Any, Any]] = []
        for taking in [*[Taking(n, None, kind) for n in range(options.best)], *[Taking(0, t, kind) for t in wanted]]:
            try:
                line = _timed(case, taking, options, first)
            except WeftError as error:
                line = str(error).splitlines()[0]
            told = "none" if taking.taken is None else astuple(taking.taken.decision)
            print(f"{case.name} {told}: {line}", flush=True)


def _timed(case: Case, taking: Taking, options: argparse.Namespace, first: list[np.ndarray[Any, Any]]) -> str:
    """Returns a tile's time, and how its results differ from those of the first tile, which are put into *first*."""
    made = build(case.model(), "cuda -arch=sm_90", CompileOptions(precision=case.compiled_for), choose=taking)
    if options.dry:
        return "compiled"
    inputs = list(case.inputs().values())
    model = weft.load(b"".join(artifact_parts(made.package)))
    result = np.asarray(model.run(inputs)[0])
    first += [] if first else [result]
    difference = float(np.abs(result - first[0]).max() / np.abs(first[0]).max())
    took, launches = kernel_seconds(model, inputs, options.seconds)
    return f"{took * 1000:.4f} ms, {case.flops / took / 1e12:.1f} TFLOP/s, {launches} launches, differs by {difference:.1e}"


if __name__ == "__main__":
    main()
