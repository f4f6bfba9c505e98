"""`weft bench --ablate`: the speedup of a model by each optimization, measured without it (Chen et al., OSDI 2018, figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import weft
from weft.cli.bench.engines import Arrays, Weft
from weft.cli.bench.measure import DIFFERS, TOLERANCE, Timed, difference, machine, ratio, take_turns
from weft.cli.bench.optimizations import Optimization, knobs, optimizations_of
from weft.cli.console import human_seconds, print_table, print_text, progress_bar
from weft.cli.output_files import write_json
from weft.driver.build import Compilation
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.options import check_options
from weft.driver.progress import Progress
from weft.native import _rt
from weft.runtime.model import Model
from weft.support.errors import RuntimeFailure

COLUMNS = ("without", "threads", "ms", "ms with all", "x", "compiled in", "what it is")
"""The columns of a row: "x" is how many times as long a run takes."""

Row = dict[str, object]

RULES: Final = Optimization("decision", "", "")
"""The decision of no name: without it, rules decide all that they do, and no tuning record anything."""


class Ablated(Weft):
    """Weft without one optimization, or with all."""

    made: Compilation

    def __init__(self, progress: Progress, off: Optimization | None, records: Path | None) -> None:
        super().__init__(progress)
        self.off, self.records = off, records

    def load(self, path: Path, threads: int) -> None:
        """Compiles the model and all of its kernels; decisions are left to rules where one of them is off."""
        off = self.off
        if off is None:
            self.made = weft.build(str(path), "cpu", check_options(records=self.records), progress=self.progress)
        elif off.kind == "decision":
            self.made = weft.build(str(path), "cpu", progress=self.progress, choose=off.choose)
        else:
            options = check_options(records=self.records, without=off.without, passes=off.passes)
            self.made = weft.build(str(path), "cpu", options, progress=self.progress)
        self.model = Model(self.made.package, threads=threads)

    @property
    def code(self) -> bytes:
        """The linked image that runs: the kernels, and the host program with the offsets of its buffers."""
        return bytes(self.made.package.image)


class Ablation:
    """A model with every optimization, and the models that are timed against it."""

    def __init__(
        self, path: Path, seconds: float, sizes: Mapping[str, int], progress: Progress, records: Path | None = None
    ) -> None:
        self.path, self.seconds, self.progress, self.records = path, seconds, progress, records
        self.sizes = sizes
        self.inputs: Arrays = {}
        self.whole: dict[tuple[int, bool], Ablated] = {}

    def optimizations(self, threads: int) -> list[Optimization]:
        """Returns all that the model's code has."""
        return [*knobs(), *optimizations_of(self._whole(threads, by_rules=True).made)]

    def _whole(self, threads: int, *, by_rules: bool) -> Ablated:
        """Returns the model with every optimization, of one kind or the other: *by_rules* alone, or by records too."""
        if (threads, by_rules) not in self.whole:
            self.whole[threads, by_rules] = self._compiled(threads, RULES if by_rules else None)
        return self.whole[threads, by_rules]

    def _compiled(self, threads: int, off: Optimization | None) -> Ablated:
        made = Ablated(self.progress, off, self.records)
        made.load(self.path, threads)
        self.inputs = self.inputs or random_inputs(made.model.inputs, sizes=self.sizes)
        made.bind(self.inputs)
        return made

    def row(self, off: Optimization, threads: int) -> Row | None:
        """Times the model without one optimization, in turns with the model that has them all; None if the code is the same."""
        complete = self._whole(threads, by_rules=off.kind == "decision")
        start = perf_counter()
        made = self._compiled(threads, off)
        part = Timed(made, perf_counter() - start, 0.0)
        if made.code == complete.code:
            return None
        whole = Timed(complete, 0.0, 0.0)
        _, differs = difference(whole.engine.outputs(), part.engine.outputs())
        if not differs <= TOLERANCE:
            raise RuntimeFailure(
                f"without {off.name} the outputs differ by {differs:.0e} of their magnitude", hint=DIFFERS
            )
        take_turns([whole, part], self.seconds, self.progress)
        return {
            "model": self.path.stem,
            "kind": off.kind,
            "without": off.name,
            "meaning": off.meaning,
            "threads": threads,
            "ms": _milliseconds(part, threads),
            "ms_with_all": _milliseconds(whole, threads),
            "ratio": ratio(part, whole, cpu=threads == 1),
            "rel_err": differs,
            "compile_s": part.compile_s,
        }


def bench_ablate(
    path: Path,
    threads: int,
    seconds: float,
    sizes: Mapping[str, int],
    json_file: Path | None,
    quiet: bool,
    records: Path | None = None,
) -> None:
    """Times *path* without each optimization and prints the times; the speedup by threads is measured on all processors.

    Knobs come first, in their order, then the passes and decisions, the most effective first.
    """
    rows: list[Row] = []
    same: list[str] = []
    with progress_bar(quiet) as progress:
        ablation = Ablation(path, seconds, sizes, progress, records)
        for off in ablation.optimizations(threads):
            row = ablation.row(off, max(threads, _rt.cpus()) if off.name == "parallel" else threads)
            if row is None:
                same.append(off.name)
            else:
                rows.append(row)
    first = [r for r in rows if r["kind"] == "knob"]
    others = [r for r in rows if r["kind"] != "knob"]
    rows = first + sorted(others, key=lambda r: -float(str(r["ratio"])))
    print_table(COLUMNS, [_cells(r) for r in rows], elastic="what it is")
    if same:
        print_text(f"the same code without: {', '.join(same)}")
    if json_file is not None:
        write_json(json_file, {"machine": machine(), "rows": rows, "same_code": same})


def _milliseconds(t: Timed, threads: int) -> float:
    """Returns the time of a run: of the processor for one thread, which others disturb less; else by the clock."""
    return median(t.cpu if threads == 1 else t.wall) * 1e3


def _cells(r: Row) -> list[str]:
    return [
        str(r["without"]),
        str(r["threads"]),
        f"{r['ms']:.3f}",
        f"{r['ms_with_all']:.3f}",
        f"{r['ratio']:.2f}",
        human_seconds(float(str(r["compile_s"]))),
        str(r["meaning"]),
    ]
