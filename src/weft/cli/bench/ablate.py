"""`weft bench --ablate`: the speedup of a model by each optimization, measured without it (Chen et al., OSDI 2018, figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

from weft.cli.bench.engines import Arrays, Compiling, Weft
from weft.cli.bench.measure import DIFFERS, TOLERANCE, Timed, difference, machine, ratio, take_turns
from weft.cli.console import human_seconds, print_table, progress_bar
from weft.cli.output_files import write_json
from weft.driver.measure.random_inputs import random_inputs
from weft.driver.progress import Progress
from weft.native import _rt
from weft.support.errors import RuntimeFailure
from weft.support.knobs import KNOBS

COLUMNS = ("without", "threads", "ms", "ms with all", "x", "compiled in", "what it is")
"""The columns of a row: "x" is how many times as long a run takes."""

Row = dict[str, object]


class Ablation:
    """A model with every optimization, and the models that are timed against it."""

    def __init__(
        self, path: Path, seconds: float, sizes: Mapping[str, int], progress: Progress, records: Path | None = None
    ) -> None:
        self.path, self.seconds, self.progress, self.records = path, seconds, progress, records
        first = Weft(progress, how=Compiling(records=records))
        first.load(path, 1)
        self.inputs: Arrays = random_inputs(first.model.inputs, sizes=sizes)
        self.whole: dict[int, Timed] = {}

    def timed(self, threads: int, without: tuple[str, ...] = ()) -> Timed:
        """Compiles the model *without* some optimizations."""
        made = Weft(self.progress, without, Compiling(records=self.records))
        start = perf_counter()
        made.load(self.path, threads)
        seconds = perf_counter() - start
        made.bind(self.inputs)
        return Timed(made, seconds, 0.0)

    def row(self, knob: str, threads: int) -> Row:
        """Times the model without one optimization, in turns with the model that has them all."""
        if threads not in self.whole:
            self.whole[threads] = self.timed(threads)
        whole, part = self.whole[threads], self.timed(threads, (knob,))
        _, differs = difference(whole.engine.outputs(), part.engine.outputs())
        if not differs <= TOLERANCE:
            raise RuntimeFailure(f"without {knob} the outputs differ by {differs:.0e} of their magnitude", hint=DIFFERS)
        whole.runs, whole.wall, whole.cpu = [], [], []
        take_turns([whole, part], self.seconds, self.progress)
        return {
            "model": self.path.stem,
            "without": knob,
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
    """Times *path* without each optimization and prints the times; the speedup by threads is measured on all processors."""
    with progress_bar(quiet) as progress:
        ablation = Ablation(path, seconds, sizes, progress, records)
        rows = [ablation.row(k, max(threads, _rt.cpus()) if k == "parallel" else threads) for k in KNOBS]
    print_table(COLUMNS, [_cells(r) for r in rows], elastic="what it is")
    if json_file is not None:
        write_json(json_file, {"machine": machine(), "rows": rows})


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
        KNOBS[str(r["without"])].meaning,
    ]
