"""What the commands share: progress bars, JSON output, options."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
Target = Annotated[str, typer.Option("--target", help="What to compile for; see `weft targets`.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads of a call [default: all processors].")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache.")]
Shape = Annotated[
    list[str] | None, typer.Option("--shape", help="A size for a symbolic dimension, such as batch=4; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


class Stages:
    """Shows how far a compilation is; the driver calls it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Moves the bar of *stage*."""
        if stage not in self.tasks:
            self.tasks[stage] = self.progress.add_task(stage, total=total)
        self.progress.update(self.tasks[stage], completed=done, total=total)


@contextmanager
def progress_bars(quiet: bool) -> Iterator[Stages]:
    """Gives a progress bar for each stage on the error stream, where it is a terminal and *quiet* is off."""
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    with bars:
        yield Stages(bars)


def print_json(value: object) -> None:
    """Prints *value* as JSON on the standard output."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def parse_shapes(given: list[str] | None) -> dict[str, int]:
    """Reads `name=size` options; raises a usage error for any other form."""
    sizes: dict[str, int] = {}
    for text in given or []:
        name, _, size = text.partition("=")
        if not name or not size.isdigit() or int(size) < 1:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=SIZE", param_hint="--shape")
        sizes[name] = int(size)
    return sizes


def is_artifact(path: Path) -> bool:
    """Tells whether *path* is a compiled model, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"WEFT"
    except OSError:
        return False


def human_bytes(count: int) -> str:
    """Returns a number of bytes for people."""
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GB"
