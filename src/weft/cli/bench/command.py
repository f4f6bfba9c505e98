"""`weft bench`: times Weft and other engines on the same models, and measures the machine's peak rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.bench.ablate import bench_ablate
from weft.cli.bench.engines import Compiling, check_engine, engine
from weft.cli.bench.measure import DIFFERS, TOLERANCE, machine, measure, memory_text, row
from weft.cli.bench.peak import bench_peak
from weft.cli.bench.roofline import bench_roofline
from weft.cli.console import Quiet, Records, Shape, Target, parse_numbers, print_table, progress_bar
from weft.cli.output_files import check_result, write_json
from weft.runtime.artifact import is_artifact
from weft.support.errors import InputError, RuntimeFailure

COLUMNS = ("model", "engine", "ms", "p10 - p90", "x Weft", "differs", "ready s", "memory")
"""The columns of a row: "differs" is relative to the largest output; "ready" and "memory", its peak, are of a fresh process."""


def bench(
    models: Annotated[
        list[Path] | None, typer.Argument(help="ONNX files, or compiled models.", show_default=False)
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            "--against", metavar="ENGINE,...", help="Engines to compare with, on the CPU: onnxruntime, openvino."
        ),
    ] = "",
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of every engine.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="How long each engine is timed.")] = 2.0,
    shape: Shape = None,
    target: Target = "cpu",
    records: Records = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures to this file.")
    ] = None,
    peak: Annotated[bool, typer.Option("--peak", help="Measure the machine's peak rates instead.")] = False,
    ablate: Annotated[
        Path | None,
        typer.Option("--ablate", metavar="MODEL", help="Time a model without each optimization, pass and decision."),
    ] = None,
    roofline: Annotated[
        Path | None,
        typer.Option(
            "--roofline", metavar="MODEL", help="Report the roofline bound of each kernel of a model instead."
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw the roofline: .svg, .png or .pdf.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Compare the outputs of MODELS in Weft and other engines, then time them.

    The engines take turns in several rounds; times are medians over all runs, ratios medians over the rounds.

    Examples:

        weft bench resnet18.onnx --against onnxruntime

        weft bench *.onnx --against onnxruntime,openvino --threads 2 --seconds 10 --json figures.json

        weft bench resnet18.weft

        weft bench resnet18.onnx --target cuda

        weft bench --ablate resnet18.onnx

        weft bench --roofline resnet18.onnx --picture resnet18.svg

        weft bench --peak
    """
    if json_file is not None:
        check_result(json_file, *(models or ()), *filter(None, (ablate, roofline)))
    for option, asked in (("--peak", peak), ("--ablate", ablate), ("--roofline", roofline)):
        if asked and target != "cpu":
            raise typer.BadParameter(
                f"{option} measures this processor, and takes no other target", param_hint="--target"
            )
    if peak:
        bench_peak(json_file, quiet)
        return
    if ablate is not None:
        check_model(ablate, "--ablate")
        bench_ablate(ablate, threads, seconds, parse_numbers(shape), json_file, quiet, records)
        return
    if roofline is not None:
        check_model(roofline, "--roofline")
        bench_roofline(roofline, seconds, parse_numbers(shape), json_file, picture, quiet, records)
        return
    if picture is not None:
        raise typer.BadParameter("only --roofline has a picture", param_hint="--picture")
    if not models:
        raise typer.BadParameter("there is nothing to time", param_hint="MODELS")
    names = list(dict.fromkeys(a for a in against.split(",") if a and a != "weft"))
    for name in names:
        check_engine(name)
        engine(name)  # that one is not installed is better known before the work than in its midst
    for path in models:
        check_saved(path, names)
        check_not_compiled(path, target, records)
    _compare(models, names, threads, seconds, parse_numbers(shape), json_file, quiet, Compiling(target, records))


def _compare(
    models: Sequence[Path],
    names: Sequence[str],
    threads: int,
    seconds: float,
    sizes: Mapping[str, int],
    json_file: Path | None,
    quiet: bool,
    how: Compiling,
) -> None:
    """Times *models* in Weft and the engines called *names*; raises `RuntimeFailure` where their outputs differ."""
    rows: list[dict[str, object]] = []
    for path in models:
        with progress_bar(quiet) as progress:
            timed = measure(path, names, threads, seconds, sizes, progress, how)
        rows += [row(path.stem, t, timed[0], threads) for t in timed]
    print_table(COLUMNS, [_cells(r) for r in rows], elastic="model")
    if json_file is not None:
        write_json(json_file, {"machine": machine(), "rows": rows})
    wrong = [f"{r['engine']} on {r['model']}" for r in rows if not float(str(r["rel_err"])) <= TOLERANCE]
    if wrong:
        raise RuntimeFailure(
            f"the outputs differ by more than {TOLERANCE} of their magnitude: {', '.join(wrong)}", hint=DIFFERS
        )


def check_saved(path: Path, peers: Sequence[str]) -> None:
    """Raises `InputError` if a saved model is to be compared with engines that can't read it."""
    if peers and is_artifact(path):
        raise InputError(
            f"{path} is compiled already: only Weft runs it, not {', '.join(peers)}",
            hint="leave --against out, or give the ONNX model that it was made from",
        )


def check_not_compiled(path: Path, target: str, records: Path | None) -> None:
    """Raises `InputError` if a target or tuning records are given for a saved model, which is compiled without them."""
    for option, asked in (("--target", target != "cpu"), ("--records", records is not None)):
        if asked and is_artifact(path):
            raise InputError(
                f"{path} is compiled already: {option} has no effect on it",
                hint="give it to `weft compile`, with the model that it was made from",
            )


def check_model(path: Path, option: str) -> None:
    """Raises `InputError` if *option*, which compiles a model anew, is given a saved model, or another option in its place."""
    if str(path).startswith("--"):
        raise InputError(
            f"{option} is given {path} as its model", hint=f"write the model right after it: weft bench {option} MODEL"
        )
    if is_artifact(path):
        raise InputError(
            f"{path} is compiled already, and {option} compiles a model anew",
            hint="give the ONNX model that it was made from",
        )


def _cells(r: dict[str, object]) -> list[str]:
    return [
        str(r["model"]),
        str(r["engine"]),
        f"{r['median_ms']:.3f}",
        f"{r['p10_ms']:.3f} - {r['p90_ms']:.3f}",
        f"{r['ratio_to_weft']:.2f}",
        f"{r['rel_err']:.0e}",
        f"{r['compile_s']:.2f}",
        memory_text(r["peak_rss_mb"]),
    ]
