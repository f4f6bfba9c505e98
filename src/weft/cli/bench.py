"""`weft bench`: Weft and its peers on the same models, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from weft.cli.bench_engines import engine
from weft.cli.bench_measure import TOLERANCE, machine, measure, row
from weft.cli.console import Quiet, err, out
from weft.cli.models import random_inputs
from weft.driver.compile import signature
from weft.support.errors import ArtifactError, RuntimeFailure


def bench(
    models: Annotated[list[Path], typer.Argument(help="ONNX files.", show_default=False)],
    against: Annotated[str, typer.Option("--against", help="Peers, separated by commas: onnxruntime, openvino.")] = "",
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of every engine.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="How long each engine is timed.")] = 2.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
    quiet: Quiet = False,
) -> None:
    """Time MODELS, in rounds in which the engines take turns, after their outputs were compared.

    Example: weft bench resnet18.onnx --against onnxruntime --threads 1
    """
    rows: list[dict[str, object]] = []
    for path in models:
        engines = [engine(n) for n in ["weft", *[a for a in against.split(",") if a]]]
        if not quiet:
            err.print(f"{path.name}: {', '.join(e.name for e in engines)}")
        timed = measure(path, engines, random_inputs(signature(str(path))), threads, seconds)
        rows += [row(path.stem, t, timed[0], threads) for t in timed]
    out.print(_table(rows))
    if json_file is not None:
        _write(json_file, {"machine": machine(), "rows": rows})
    wrong = [f"{r['engine']} on {r['model']}" for r in rows if float(str(r["rel_err"])) > TOLERANCE]
    if wrong:
        raise RuntimeFailure(f"the outputs differ by more than {TOLERANCE} of their magnitude: {', '.join(wrong)}")


def _table(rows: list[dict[str, object]]) -> Table:
    table = Table(
        "model", "engine", "median ms", "p10..p90", "time / Weft's", "CPU / Weft's", "difference", "ready in s"
    )
    for r in rows:
        table.add_row(
            str(r["model"]), str(r["engine"]), f"{r['median_ms']:.3f}", f"{r['p10_ms']:.3f}..{r['p90_ms']:.3f}",
            f"{r['ratio_to_weft']:.2f}", f"{r['cpu_ratio_to_weft']:.2f}", f"{r['rel_err']:.1e}", f"{r['compile_s']:.2f}",
        )  # fmt: skip
    return table


def _write(path: Path, figures: dict[str, object]) -> None:
    try:
        path.write_text(json.dumps(figures, indent=1))
    except OSError as e:
        raise ArtifactError(f"{path} can't be written: {e.strerror or e}", hint="choose another file") from None
