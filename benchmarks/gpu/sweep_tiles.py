"""Tiles of products on a GPU with CUDA: candidates of the decision, each compiled and timed, beside what the costs predict.

    .venv/bin/python benchmarks/gpu/sweep_tiles.py --json sweep.json
    .venv/bin/python benchmarks/gpu/sweep_tiles.py --shapes 128x768x3072,36x196x256x256 --plans 100
    .venv/bin/python benchmarks/gpu/sweep_tiles.py --dry                    compiles the candidates, without a GPU

A shape is rows x columns x terms, after the number of products where there are several. Its candidates are the cheapest by the
costs, and others at random. They are compiled in processes, and timed as they come: all launches of a call in a CUDA graph.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
from cases import Case, one_operator
from chosen_plan import compile_with
from device_time import kernel_seconds

import weft
from weft.cost import SharedTile, shared_tile_plans
from weft.cost.rules.shared_tile import plain_product
from weft.targets import parse_target

SHAPES = (
    "128x768x768,128x3072x768,128x768x3072,64x1024x1024,196x512x512,49x1024x1024,784x256x256,3136x64x64,8x768x768,"
    "36x64x256x256,1024x1024x1024,4096x4096x4096"
)
CLOCK = 1.755e9
"""The cycles of a second by which predictions are told: an H100's under load."""

WITHIN = 6.0
"""How much slower than the best a candidate is predicted to be at most."""

TOLERANCE = 2e-5
Row = dict[str, Any]


@dataclass(frozen=True)
class Product:
    """*batch* products of *rows* by *columns* results with so many *terms*."""

    batch: int
    rows: int
    columns: int
    terms: int

    @classmethod
    def parse(cls, text: str) -> Product:
        """Reads `rows x columns x terms`, perhaps after a batch."""
        sizes = [int(n) for n in text.split("x")]
        return cls(*(sizes if len(sizes) == len(("batch", "rows", "columns", "terms")) else [1, *sizes]))

    def __str__(self) -> str:
        return "x".join([str(n) for n in (self.batch, self.rows, self.columns, self.terms)]).removeprefix("1x")

    @property
    def case(self) -> Case:
        """The product as a model."""
        b = [self.batch] if self.batch > 1 else []
        shapes = {"x": (*b, self.rows, self.terms), "w": (*b, self.terms, self.columns)}
        return one_operator("MatMul", f"product{self}", "fp32", shapes)

    @property
    def flops(self) -> float:
        """The operations that it takes."""
        return 2.0 * self.batch * self.rows * self.columns * self.terms


def sample(product: Product, plans: int, target: str) -> list[tuple[SharedTile, float]]:
    """Returns tiles with their predicted seconds: half the cheapest, half at random, the best first."""
    machine = parse_target(target)
    assert machine.grid is not None
    made = plain_product(product.rows, product.columns, product.batch, product.terms)
    ranked = sorted(shared_tile_plans(made, machine), key=lambda c: c.cycles)
    first, rest = ranked[: plans // 2], ranked[plans // 2 :]
    near = [c for c in rest if c.cycles < WITHIN * ranked[0].cycles]
    drawn = random.Random(0).sample(near, min(len(near), plans - len(first)))
    a_second = CLOCK * machine.grid.lanes * machine.grid.multiprocessors
    return [(c.decision, c.cycles / a_second) for c in (*first, *drawn)]


def compiled(text: str, tile: SharedTile, target: str, path: str) -> str:
    """Writes the model of a product in a tile to a file; returns why not, or nothing."""
    return compile_with(Product.parse(text).case.model(), tile, target, path)


def swept(products: Sequence[Product], options: argparse.Namespace, folder: str) -> Iterator[Row]:
    """Compiles and times the candidates of all products."""
    stop = monotonic() + options.seconds
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        pending: dict[Future[str], tuple[Product, SharedTile, float, str]] = {}
        for p in products:
            for tile, predicted in sample(p, options.plans, options.target):
                path = f"{folder}/{len(pending)}.weft"
                job = pool.submit(compiled, str(p), tile, options.target, path)
                pending[job] = (p, tile, predicted, path)
        timing = Timing()
        for job in as_completed(pending):
            p, tile, predicted, path = pending[job]
            row: Row = {"shape": str(p), "plan": str(tile), "predicted_ms": predicted * 1000}
            error = job.exception()
            why = job.result() if error is None else str(error)
            if why:
                row["error"] = why
            elif not options.dry:
                row |= timing.of(p, path)
            Path(path).unlink(missing_ok=True)
            yield row
            if monotonic() > stop:
                pool.shutdown(wait=False, cancel_futures=True)
                return


class Timing:
    """Times saved models, whose results it compares with those of the first model of each product."""

    def __init__(self) -> None:
        self.inputs: dict[Product, list[np.ndarray[Any, Any]]] = {}
        self.expected: dict[Product, np.ndarray[Any, Any]] = {}
        self.first: weft.Model | None = None  # as long as one lives, the driver's context does

    def of(self, p: Product, path: str) -> Row:
        """Returns the time of the model of *p* in a file, and how its results differ."""
        if p not in self.inputs:
            self.inputs[p] = list(p.case.inputs().values())
            self.expected[p] = np.matmul(*self.inputs[p])
        try:
            model = weft.load(path)
            self.first = self.first or model
            made = np.asarray(model.run(self.inputs[p])[0])
            difference = float(np.abs(made - self.expected[p]).max() / np.abs(self.expected[p]).max())
            seconds, launches = kernel_seconds(model, self.inputs[p], 0.015)
        except Exception as error:  # the others are timed all the same
            return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        row = {"ms": seconds * 1000, "tflops": p.flops / seconds / 1e12, "launches": launches, "difference": difference}
        return row if difference <= TOLERANCE else {**row, "error": "the results differ"}


def told(rows: Sequence[Row], products: Sequence[Product]) -> Iterator[str]:
    """Yields lines that compare, for each product, the best tile with the one that the costs choose."""
    for p in products:
        timed = [r for r in rows if r["shape"] == str(p) and "ms" in r and "error" not in r]
        if not timed:
            yield f"{p}: none was timed"
            continue
        best = min(timed, key=lambda r: r["ms"])
        chosen = min(timed, key=lambda r: r["predicted_ms"])
        yield f"{p}: {len(timed)} tiles, the best takes {best['ms'] / chosen['ms']:.2f} of the time of the chosen one"
        for name, r in (("best", best), ("chosen", chosen)):
            yield f"  {name:6} {r['ms']:9.4f} ms (predicted {r['predicted_ms']:9.4f}) {r['tflops']:6.1f} TFLOP/s  {r['plan']}"


def main() -> int:
    """Runs the sweep; returns 1 where results differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--plans", type=int, default=40, help="candidates of each shape")
    parser.add_argument("--seconds", type=float, default=80.0, help="after which no other is timed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    products = [Product.parse(text) for text in options.shapes.split(",")]
    with TemporaryDirectory() as folder:
        rows = list(swept(products, options, folder))
    print("\n".join(told(rows, products)))
    failed = [r for r in rows if r.get("error", "not legal") != "not legal"]
    for r in failed:
        print(f"{r['shape']}: {r['plan']}: {r['error']}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1), encoding="utf-8")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
