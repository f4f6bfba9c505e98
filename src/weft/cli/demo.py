"""`weft demo`: a trained network and ResNet-18, compiled, checked and timed in front of you."""

from __future__ import annotations

import importlib.resources
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from weft.cli.bench.engines import engine
from weft.cli.bench.measure import DIFFERS, TOLERANCE, Timed, difference, measure, memory_text, ratio
from weft.cli.console import Json, Quiet, human_bytes, human_seconds, out, print_json, progress_bar
from weft.driver.compile import compile
from weft.support.errors import RuntimeFailure
from weft.support.lazy_import import resolve

PEER = "onnxruntime"
RESNET = "weft.cli.demo_models:resnet18"
"""Makes ResNet-18; imported when it is wanted, since it needs onnx, which other commands do without."""


def demo(
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of both engines.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="How long each engine is timed.")] = 3.0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile a digit recogniser and ResNet-18, check both against ONNX Runtime, and time them.

    Nothing is downloaded: the first network comes with Weft, the second is made here, with random weights.

    Examples:

        weft demo

        weft demo --threads 2 --seconds 10
    """
    silent = quiet or as_json
    engine(PEER)
    digits = _digits()
    if not silent:
        _show_digits(digits)
    with tempfile.TemporaryDirectory() as folder:
        resnet = _resnet(Path(folder) / "resnet18.onnx", threads, seconds, silent=silent)
    if as_json:
        print_json({"digits": digits, "resnet18": resnet})
    elif not quiet:
        _show_resnet(resnet)
    wrong = [name for name, found in (("digits", digits), ("resnet18", resnet)) if not found["rel_err"] <= TOLERANCE]
    if wrong:
        raise RuntimeFailure(
            f"Weft and ONNX Runtime differ by more than {TOLERANCE} of the largest output on {', '.join(wrong)}",
            hint=DIFFERS,
        )
    if not silent:
        out.print("Now try a model of yours: [bold]weft run MODEL.onnx --random[/]")


def _digits() -> dict[str, float]:
    """Recognises digits that the network has never seen, in both engines."""
    data = importlib.resources.files("weft.cli") / "digits"
    with (
        importlib.resources.as_file(data / "digits.onnx") as path,
        importlib.resources.as_file(data / "heldout.npz") as file,
    ):
        with np.load(file) as held:
            images, labels = held["images"], held["labels"]
        start = perf_counter()
        model = compile(str(path), cache=False)
        seconds = perf_counter() - start
        given = {model.inputs[0].name: images}
        ours = np.asarray(model(**given))
        peer = engine(PEER)
        peer.load(path, 1)
        peer.bind(given)
        theirs = peer.outputs()[0]
    found = {"images": len(labels), "compile_s": seconds, "rel_err": difference([theirs], [ours])[1]}
    return found | {f"{n}_right": float(np.mean(y.argmax(1) == labels)) for n, y in (("weft", ours), (PEER, theirs))}


def _resnet(path: Path, threads: int, seconds: float, *, silent: bool) -> dict[str, float]:
    """Times ResNet-18 in both engines."""
    with progress_bar(silent) as progress:
        progress("make", 0, 1)
        path.write_bytes(resolve(RESNET)().SerializeToString())
        ours, theirs = measure(path, [PEER], threads, seconds, progress=progress)
    found = {"threads": threads, "bytes": path.stat().st_size, "rel_err": theirs.rel_err}
    found |= {"onnxruntime_to_weft": ratio(theirs, ours)}
    return found | {f"{t.engine.name}_{key}": value for t in (ours, theirs) for key, value in _times(t).items()}


def _times(t: Timed) -> dict[str, float]:
    return {"median_ms": float(np.median(t.runs)) * 1e3, "compile_s": t.compile_s, "peak_rss_mb": t.peak_rss_mb}


def _show_digits(found: dict[str, float]) -> None:
    out.print("[bold]Digits[/]: a trained network reads handwriting that it has never seen")
    out.print(f"  compiled in    {human_seconds(found['compile_s'])}")
    for name in ("weft", PEER):
        out.print(f"  {name:<12}   {found[f'{name}_right']:.1%} of {found['images']} images right")
    out.print(f"  difference     {_verdict(found['rel_err'])}\n")


def _show_resnet(found: dict[str, float]) -> None:
    out.print(
        f"[bold]ResNet-18[/]: 1 x 3 x 224 x 224, float32, {human_bytes(int(found['bytes']))}, threads: {found['threads']}"
    )
    for name in ("weft", PEER):
        ready, peak = human_seconds(found[f"{name}_compile_s"]), memory_text(found[f"{name}_peak_rss_mb"])
        out.print(f"  {name:<12}   {found[f'{name}_median_ms']:.2f} ms an image, ready in {ready}, {peak}")
    out.print(f"  ratio          ONNX Runtime takes {found['onnxruntime_to_weft']:.2f} times as long as Weft")
    out.print(f"  difference     {_verdict(found['rel_err'])}\n")


def _verdict(found: float) -> str:
    ok = "[green]the same[/]" if found <= TOLERANCE else "[red]NOT the same[/]"
    return f"{found:.0e} of the largest output: {ok}"
