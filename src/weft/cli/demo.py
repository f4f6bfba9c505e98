"""`weft demo`: a trained network and ResNet-18, compiled, checked and timed in front of you."""

from __future__ import annotations

import importlib.resources
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
import typer

from weft.cli.bench_engines import Engine, engine
from weft.cli.bench_measure import TOLERANCE, Timed, difference, measure, ratio
from weft.cli.console import Quiet, out, progress_bars
from weft.cli.demo_models import resnet18
from weft.driver.compile import compile
from weft.support.errors import RuntimeFailure

PEER = "onnxruntime"


def demo(
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of both engines.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="How long each engine is timed.")] = 3.0,
    quiet: Quiet = False,
) -> None:
    """Compile a digit recogniser and ResNet-18, check both against ONNX Runtime, and time them."""
    with tempfile.TemporaryDirectory() as folder:
        _digits(Path(folder))
        _resnet(Path(folder) / "resnet18.onnx", threads, seconds, quiet)


def _digits(folder: Path) -> None:
    """Recognises digits that the network has never seen, with both engines."""
    data = importlib.resources.files("weft.cli") / "digits"
    with (
        importlib.resources.as_file(data / "digits.onnx") as path,
        importlib.resources.as_file(data / "heldout.npz") as file,
    ):
        held = np.load(file)
        images, labels = held["images"], held["labels"]
        model = compile(str(path))
        given = {model.inputs[0].name: images}
        ours = np.asarray(model(**given))
        peer = engine(PEER)
        peer.load(path, given, 1)
        theirs = peer.outputs()[0]
    _check("digits", difference([theirs], [ours])[1])
    out.print(f"[bold]digits[/]: {len(labels)} handwritten digits that the network was not trained on")
    for name, made in (("weft", ours), (PEER, theirs)):
        out.print(f"  {name:<12} {np.mean(made.argmax(1) == labels):.1%} right")


def _resnet(path: Path, threads: int, seconds: float, quiet: bool) -> None:
    """Times ResNet-18 in both engines."""
    with progress_bars(quiet) as progress:
        onnx.save(resnet18(), path)
        progress("model", 1, 1)
    engines: list[Engine] = [engine("weft"), engine(PEER)]
    inputs = {"x": np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)}
    ours, theirs = measure(path, engines, inputs, threads, seconds)
    _check("resnet18", theirs.rel_err)
    out.print(f"[bold]resnet18[/]: 1x3x224x224, float32, threads: {threads}; largest difference {theirs.rel_err:.1e}")
    for t in (ours, theirs):
        out.print(f"  {t.engine.name:<12} {_ms(t):8.2f} ms   ready in {t.compile_s:.2f} s")
    out.print(f"  ONNX Runtime takes {ratio(theirs, ours):.2f} times as long as Weft")


def _ms(t: Timed) -> float:
    return float(np.median(t.runs)) * 1e3


def _check(name: str, found: float) -> None:
    if not found <= TOLERANCE:
        raise RuntimeFailure(f"{name}: Weft and ONNX Runtime differ by {found:.1e}, more than {TOLERANCE}")
