"""The parts that all commands share: the two streams, progress bars, JSON, and options that several of them take."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from weft.driver.options import PRECISIONS
from weft.support.dim import RANGE, Dim, parse_dim
from weft.support.errors import InputError
from weft.support.knobs import KNOBS
from weft.support.text import printable, printable_line
from weft.targets import LEVELS

WIDE = 200
"""The line width, in characters, of output to a pipe or a file."""

_NUMBER: Final = re.compile(r"[-+]?[\d.,e+-]+ ?[%\w]*|-")

GAP = "  "
"""The separator of a table's columns."""

TARGETS: Final = ("cpu", *[f"cpu -mattr={name}" for name in LEVELS])
"""The completions of `--target`."""


class PrintableConsole(Console):
    """A console that escapes unprintable characters, since names in a model may hold any; all output passes through it."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Prints as `rich` does; texts are made printable before."""
        super().print(*[printable(o) if isinstance(o, str) else o for o in objects], **options)


out = PrintableConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)
err = PrintableConsole(stderr=True, highlight=False, soft_wrap=True)


class Voice:
    """The verbosity of errors and warnings, for code that does not know the options of the command."""

    verbose = False


voice = Voice()


def _note_verbose(wanted: bool) -> bool:
    voice.verbose = voice.verbose or wanted
    return wanted


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_note_verbose, help="Report each step, and full details of errors.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads of a call; default: all CPUs.")]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", metavar="NAME=SIZE", help="Fix a symbolic dimension (batch=4) or give its range (1..64); repeatable."
    ),
]
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="INPUT=OUTPUT",
        help="Carry an output over to an input of the next call (past_*=present_*); repeatable.",
    ),
]
Capacity = Annotated[
    list[str] | None,
    typer.Option(
        "--capacity",
        metavar="INPUT=ROWS",
        help="The largest number of rows of a growing state (past_*=1024); repeatable.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Target = Annotated[
    str,
    typer.Option("--target", help="Target; see `weft targets`.", autocompletion=lambda: list(TARGETS)),
]
OptLevel = Annotated[
    int, typer.Option("--opt-level", "-O", min=0, max=3, help="0: node by node; 1: fused; 2: packed; 3: everything.")
]
Precision = Annotated[
    str,
    typer.Option(
        "--precision",
        help="model; strict: no rewrite that rounds differently; bf16, tf32: factors of products rounded to it where faster.",
        metavar="model|strict|bf16|tf32",
        autocompletion=lambda: list(PRECISIONS),
    ),
]
Denormals = Annotated[
    str,
    typer.Option(
        "--denormals",
        help="keep, or flush: treat denormal numbers as zero.",
        metavar="keep|flush",
        autocompletion=lambda: ["keep", "flush"],
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="NAME",
        help=f"Disable an optimization: {', '.join(KNOBS)}; repeatable.",
        autocompletion=lambda: list(KNOBS),
    ),
]
Passes = Annotated[
    list[str] | None,
    typer.Option(
        "--pass",
        metavar="PASS=off|PASS.OPTION=VALUE",
        help="Skip a pass, or set one of its options; repeatable. An unknown name lists the known ones.",
    ),
]
Records = Annotated[
    Path | None,
    typer.Option("--records", metavar="DB", help="Follow the tuning records in this file.", show_default=False),
]
Verify = Annotated[
    bool,
    typer.Option("--verify", help="Verify every graph and program; for a saved model, the checksum of its weights."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache of compiled code.")]


class Bar:
    """Shows the progress of a compilation in one line; the driver calls it. With *verbose*, also prints each stage's time."""

    def __init__(self, bars: Progress, verbose: bool = False) -> None:
        self.bars = bars
        self.verbose = verbose
        self.task = bars.add_task("", total=1, count="")
        self.stage = ""
        self.stages: dict[str, float] = {}
        """The seconds of each stage up to now."""
        self._start = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tells that *done* of *total* steps of *stage* are finished."""
        if stage != self.stage:
            self.finish()
            self.stage, self._start = stage, perf_counter()
            self.bars.reset(self.task, description=stage, total=total if total > 1 else None, count="")
        count = f"{done}/{total}" if total > 1 else ""
        self.bars.update(self.task, completed=done, count=count, refresh=done == 0)

    def finish(self) -> None:
        """Ends the stage."""
        if self.stage:
            seconds = perf_counter() - self._start
            self.stages[self.stage] = self.stages.get(self.stage, 0.0) + seconds
            if self.verbose:
                err.print(f"{self.stage:<9} {human_seconds(seconds):>9}", markup=False)
            self.stage = ""


@contextmanager
def progress_bar(quiet: bool, verbose: bool = False) -> Iterator[Bar]:
    """Yields a progress bar on the error stream, if that is a terminal and *quiet* is off; it is erased at the end.

    It shows the time that the stage has taken, and where its steps are known, the time that is left.
    """
    columns = [
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.fields[count]:>7}"),
        TimeElapsedColumn(),
        _TimeLeft(),
    ]
    hidden = quiet or not sys.stderr.isatty()
    with Progress(*columns, console=err, transient=True, disable=hidden) as bars:
        bar = Bar(bars, verbose)
        try:
            yield bar
        finally:
            bar.finish()
        if verbose and not bar.stages:
            err.print("nothing had to be compiled")


class _TimeLeft(ProgressColumn):
    """The estimated remaining time of a stage; empty until it can be estimated."""

    def render(self, task: Task) -> Text:
        """Returns the text of the column."""
        left = task.time_remaining
        return Text("" if left is None or task.finished else f"{_minutes(left)} left")


def _minutes(seconds: float) -> str:
    whole = math.ceil(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


NARROW: Final = 9
"""Characters of a column of texts that are shown at least."""


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], elastic: str) -> None:
    """Prints a table, numbers to the right. On a narrow terminal the column *elastic* is cut off, then other texts."""
    rows = [[printable_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    right = [all(map(_NUMBER.fullmatch, cells)) for cells in zip(*rows, strict=True)] or [False] * len(headings)
    flexible = list(headings).index(elastic)
    excess = sum(widths) + len(GAP) * len(widths) - out.width
    texts = sorted([n for n, r in enumerate(right) if not r and n != flexible], key=lambda n: -widths[n])
    for n in (flexible, *texts):
        cut = min(max(0, excess), max(0, widths[n] - max(len(headings[n]), NARROW)))
        widths[n], excess = widths[n] - cut, excess - cut
    out.print(_line(headings, widths, right), style="bold", markup=False)
    out.print("─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
    for row in rows:
        out.print(_line(row, widths, right), markup=False)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cut = [c if len(c) <= w else c[: w - 1] + "…" for c, w in zip(cells, widths, strict=True)]
    placed = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cut, widths, right, strict=True)]
    return GAP.join(placed).rstrip()


def print_json(value: object) -> None:
    """Prints *value* as JSON on the standard output."""
    sys.stdout.write(json.dumps(value, indent=1).replace("\x7f", "\\u007f") + "\n")


def print_text(text: str) -> None:
    """Prints *text* on the standard output as it is, but for unprintable characters."""
    sys.stdout.write(printable(text if text.endswith("\n") else text + "\n"))


MOST_DIGITS = 99
"""The largest number of digits of a size: Python refuses to parse numbers of thousands of digits."""

SHOWN = 40
"""Characters of an option that a message repeats."""


def parse_shapes(given: list[str] | None) -> dict[str, int | Dim]:
    """Reads `name=size` options, where a size may be a range (`parse_dim`); raises a usage error for any other form."""
    pairs = _parse_pairs(given, "--shape", "NAME=SIZE")
    return {n: _parse_range(size) if RANGE in size else _parse_size(n, size, "--shape") for n, size in pairs.items()}


def parse_states(given: list[str] | None) -> dict[str, str]:
    """Reads `input=output` options; raises a usage error for any other form."""
    return _parse_pairs(given, "--state", "INPUT=OUTPUT")


def parse_capacity(given: list[str] | None) -> dict[str, int]:
    """Reads `input=rows` options; raises a usage error for any other form."""
    pairs = _parse_pairs(given, "--capacity", "INPUT=ROWS")
    return {name: _parse_size(name, rows, "--capacity") for name, rows in pairs.items()}


def parse_numbers(given: list[str] | None) -> dict[str, int]:
    """Reads `name=size` options where a size must be a number, not a range, as a measurement is of one size."""
    sizes = parse_shapes(given)
    for name, size in sizes.items():
        if isinstance(size, Dim):
            raise typer.BadParameter(f"{name} has a range, and a measurement is of one size", param_hint="--shape")
    return {name: size for name, size in sizes.items() if isinstance(size, int)}


def _parse_pairs(given: list[str] | None, option: str, form: str) -> dict[str, str]:
    """Reads texts of a *form* such as NAME=SIZE; raises a usage error for one that has not both sides."""
    pairs: dict[str, str] = {}
    for text in given or []:
        name, _, value = text.partition("=")
        if not name or not value:
            raise typer.BadParameter(f"{text[:SHOWN]!r} is not of the form {form}", param_hint=option)
        pairs[name] = value
    return pairs


def _parse_size(name: str, text: str, option: str) -> int:
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        shown = f"{name}={text}"[:SHOWN]
        raise typer.BadParameter(f"the size in {shown!r} is not a number, 0 or more", param_hint=option)
    return int(text)


def _parse_range(text: str) -> Dim:
    try:
        return parse_dim(text)
    except InputError as error:
        raise typer.BadParameter(f"{error.message}: {error.hint}", param_hint="--shape") from None


def human_bytes(count: int) -> str:
    """Formats a number of bytes in units of 1024: B, KiB, MiB or GiB."""
    if count < 1024:
        return f"{count} B"
    size = count / 1024
    for unit in ("KiB", "MiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def human_seconds(seconds: float) -> str:
    """Formats a time."""
    if seconds >= 0.9995:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2f} ms"


def human_time(seconds: float) -> str:
    """Formats the time of a kernel, in microseconds if it is short."""
    return human_seconds(seconds) if seconds >= 0.9995e-3 else f"{seconds * 1e6:.{1 if seconds >= 1e-5 else 2}f} us"


def human_count(count: int, noun: str) -> str:
    """Formats a count with its noun: `1 kernel`, `2 kernels`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def human_age(seconds: float) -> str:
    """Formats the age of an event."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        count = int(seconds // size)
        if count >= 1:
            return f"{human_count(count, unit)} ago"
    return "just now"
