"""What the commands share: the two streams, progress bars, JSON, and options that several of them take."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

WIDE = 200
"""Characters to a line of what is read by a program, or from a file."""

GAP = "  "
"""What is between the columns of a table."""

out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
Target = Annotated[str, typer.Option("--target", help="What to compile for; see `weft targets`.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads of a call; the default is all processors.")
]  # fmt: skip
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache of compiled code.")]
Shape = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="NAME=SIZE", help="Fix a symbolic dimension, such as batch=4; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
OptLevel = Annotated[
    int, typer.Option("--opt-level", "-O", min=0, max=3, help="0: node by node; 1: fused; 2: packed; 3: everything.")
]
Precision = Annotated[
    str, typer.Option("--precision", help="model, or strict: round only as the model does.", metavar="model|strict")
]
Verify = Annotated[bool, typer.Option("--verify", help="Check every graph and program on the way.")]


class Bar:
    """Shows how far a compilation is, in one line; the driver calls it."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.task = bars.add_task("", total=1, count="")

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tells that *done* of *total* steps of *stage* are finished."""
        count = f"{done}/{total}" if total > 1 else ""
        self.bars.update(self.task, description=stage, completed=done, total=total, count=count, refresh=done == 0)


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Bar]:
    """Gives a progress bar on the error stream, where that is a terminal and *quiet* is off; it is gone in the end."""
    columns = [TextColumn("{task.description:<9}"), BarColumn(), TextColumn("{task.fields[count]:>7}")]
    hidden = quiet or not sys.stderr.isatty()
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=hidden) as bars:
        yield Bar(bars)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], elastic: str) -> None:
    """Prints a table; where the terminal is too narrow for it, the column *elastic* is cut off."""
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    flexible = list(headings).index(elastic)
    room = out.width - sum(widths) + widths[flexible] - len(GAP) * len(widths)
    widths[flexible] = max(len(elastic), min(widths[flexible], room))
    out.print(_line(headings, widths), style="bold", markup=False)
    out.print("─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
    for row in rows:
        out.print(_line(row, widths), markup=False)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    cut = [c if len(c) <= w else c[: w - 1] + "…" for c, w in zip(cells, widths, strict=True)]
    return GAP.join(c.ljust(w) for c, w in zip(cut, widths, strict=True)).rstrip()


def print_json(value: object) -> None:
    """Prints *value* as JSON on the standard output."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def print_text(text: str) -> None:
    """Prints *text* on the standard output as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def parse_shapes(given: list[str] | None) -> dict[str, int]:
    """Reads `name=size` options; raises a usage error for any other form."""
    sizes: dict[str, int] = {}
    for text in given or []:
        name, _, size = text.partition("=")
        if not name or not size.isdecimal() or int(size) < 1:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=SIZE", param_hint="--shape")
        sizes[name] = int(size)
    return sizes


def human_bytes(count: int) -> str:
    """Returns a number of bytes for people."""
    if count < 1024:
        return f"{count} B"
    size = count / 1024
    for unit in ("KB", "MB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GB"


def human_seconds(seconds: float) -> str:
    """Returns a time for people."""
    if seconds >= 0.9995:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2f} ms"
