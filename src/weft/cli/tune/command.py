"""`weft tune`: searches faster schedules for a model's kernels, and keeps them in a database of records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.bench.measure import machine
from weft.cli.console import (
    Json,
    Quiet,
    Shape,
    Target,
    human_bytes,
    human_time,
    parse_shapes,
    print_json,
    print_table,
    print_text,
)
from weft.cli.output_files import check_result
from weft.cli.tune.graph_words import graph_facts, graph_sentence
from weft.cli.tune.limit_words import limit_sentence, part_of_limit
from weft.cli.tune.live_table import live_table
from weft.cli.tune.tuning_page import tuning_page
from weft.runtime.artifact import is_artifact
from weft.support.errors import InputError
from weft.support.files import write_output
from weft.tune.tune_model import tune as tune_model
from weft.tune.tuning_session import TuneReport


def tune(
    model: Annotated[Path, typer.Argument(help="An ONNX file.", show_default=False)],
    minutes: Annotated[float, typer.Option("--minutes", min=0.01, help="How long to search.")] = 5.0,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="The largest number of candidates to try.", show_default=False)
    ] = None,
    records: Annotated[Path, typer.Option("--records", metavar="DB", help="The database to store results in.")] = Path(
        "tune.db"
    ),
    tuner: Annotated[
        str, typer.Option("--tuner", help="sa-xgb, sa-treernn, sa-xgb-regression, sa-analytical, ga, random, grid.")
    ] = "sa-xgb",
    target: Target = "cpu",
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of a call.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="The random seed.")] = 0,
    shape: Shape = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="tcp://HOST:PORT", help="Measure on a Dask cluster.", show_default=False),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="PAGE", help="Write an HTML report of the search.", show_default=False),
    ] = None,
    graph: Annotated[
        bool, typer.Option("--graph/--no-graph", help="Also tune layouts and algorithms, before the kernels.")
    ] = True,
    roofline: Annotated[
        bool, typer.Option("--roofline/--no-roofline", help="Measure the machine's peak rates, and stop near them.")
    ] = True,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for faster layouts, algorithms and schedules for MODEL.

    Each candidate is timed in turns with the compiler's default. Those that are faster beyond noise are stored in DB, for
    `weft compile MODEL --records DB` and all other commands that take --records. Ctrl-C ends the search and keeps its results.

    Examples:

        weft tune resnet18.onnx --minutes 5 --records tune.db

        weft tune resnet18.onnx --trials 200 --tuner random

        weft tune resnet18.onnx --report tuning.html
    """
    if is_artifact(model):
        raise InputError(f"{model} is compiled already", hint="give the ONNX model that it was made from")
    if report is not None:
        _check_page(report, model, records)
    with live_table(quiet or as_json) as watch:
        shapes = parse_shapes(shape) or None
        found = tune_model(
            model, minutes, records, trials, tuner, target, threads, seed, shapes, watch, cluster, graph, roofline
        )
    if as_json:
        print_json({**facts_of(found), **({} if report is None else {"page": str(report)})})
    else:
        _show(found, records)
    if report is not None:
        _write_page(report, model, found, quiet=quiet or as_json)


def _check_page(page: Path, model: Path, records: Path) -> None:
    """Raises an error unless *page* can be written, and is no file of the session."""
    check_result(page, model)
    if page.resolve() == records.resolve():
        raise InputError(f"{page} is the database of records", hint="give the page another name")


def _write_page(path: Path, model: Path, found: TuneReport, *, quiet: bool) -> None:
    page = tuning_page(model.stem, found, machine()).encode()
    write_output(path, lambda file: file.write(page))
    if not quiet:
        print_text(f"wrote {path}: {human_bytes(len(page))}; open it in a browser")


def facts_of(report: TuneReport) -> dict[str, object]:
    """Returns the results of a session, for JSON; times in seconds."""
    ratio = report.ratio
    return {
        "seconds": report.seconds,
        "candidates": report.measured,
        "ratio": None if ratio is None else ratio.middle,
        "ratio_low": None if ratio is None else ratio.low,
        "ratio_high": None if ratio is None else ratio.high,
        "stopped": report.reason,
        "graph": None if report.graph is None else graph_facts(report.graph),
        "kernels": [
            {
                "name": task.name,
                "seconds": task.seconds,
                "calls": task.calls,
                "candidates": len(report.trials_of(task)),
                "part_of_limit": task.part_of_limit,
                "ratio": None if (w := report.winner_of(task)) is None else w.ratio.middle,
            }
            for task in report.tasks
        ],
    }


COLUMNS = ("kernel", "time", "of its limit", "tried", "time now")


def _show(report: TuneReport, records: Path) -> None:
    """Prints a row a kernel, and the result for the whole model."""
    rows = []
    for task in report.tasks:
        winner = report.winner_of(task)
        now = "" if winner is None else f"{winner.ratio.middle:.0%} ({winner.ratio.low:.0%} - {winner.ratio.high:.0%})"
        limit = "" if (part := task.part_of_limit) is None else f"{part:.0%}"
        rows.append([task.name, human_time(task.seconds), limit, str(len(report.trials_of(task))), now])
    print_table(COLUMNS, rows, elastic="kernel")
    if (parts := part_of_limit(report)) is not None:
        print_text(f"\n{limit_sentence(*parts)}")
    if report.graph is not None:
        print_text(f"\n{graph_sentence(report.graph)}")
    rate = report.measured / max(report.seconds, 1e-9)
    print_text(f"\n{report.measured} candidates in {human_time(report.seconds)}, {rate:.1f} a second; {report.reason}")
    if report.ratio is None:
        print_text("Nothing is faster beyond noise than what the compiler does by itself: no record was made.")
        return
    print_text(
        f"The model takes {report.ratio.middle:.1%} of its time before ({report.ratio.low:.1%} - {report.ratio.high:.1%}); "
        f"use it: weft compile MODEL --records {records}"
    )
