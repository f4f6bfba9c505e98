"""The table that `weft tune` shows while it searches: a row a kernel, and a curve of the best time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.live import Live
from rich.table import Table

from weft.cli.console import err, human_time
from weft.tune.tuning_session import Status

TICKS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 24
"""Characters of a curve."""

MOST_ROWS: Final = 12

COLUMNS: Final = ("kernel", "share", "tried", "speedup", "GFLOP/s", "best so far")


def curve(speedups: list[float], width: int = WIDTH) -> str:
    """Returns the best speedup so far, over the trials, as a line of bars: the lowest is none, the highest the last."""
    if not speedups:
        return ""
    best, so_far = 1.0, []
    for s in speedups:
        best = max(best, s)
        so_far.append(best)
    taken = [so_far[int(n * len(so_far) / width)] for n in range(min(width, len(so_far)) or 1)]
    top = max(so_far[-1], 1 + 1e-9)
    return "".join([TICKS[int((s - 1) / (top - 1) * (len(TICKS) - 1))] for s in taken])


class LiveTable:
    """Follows a session: called with each `Status`."""

    def __init__(self, live: Live | None) -> None:
        self.live = live
        self.rows: dict[str, list[float]] = {}
        self.shares: dict[str, float] = {}
        self.rates: dict[str, float] = {}

    def __call__(self, status: Status) -> None:
        """Takes in the outcome of one candidate, and draws."""
        self.rows.setdefault(status.task.name, []).append(status.speedup)
        self.shares[status.task.name] = status.share
        self.rates[status.task.name] = status.rate
        if self.live is not None:
            self.live.update(self.table(status))

    def table(self, status: Status) -> Table:
        """Returns the table as it is now."""
        left = max(0.0, status.budget - status.seconds)
        rate = status.trials / max(status.seconds, 1e-9)
        title = f"{human_time(left)} left, {status.trials} candidates, {rate:.1f} a second"
        table = Table(title=title, title_justify="left", caption=_plans(status), caption_justify="left")
        table.box, table.pad_edge = None, False
        for heading in COLUMNS:
            table.add_column(heading, justify="left" if heading in ("kernel", "best so far") else "right", no_wrap=True)
        for name, speedups in sorted(self.rows.items(), key=lambda row: -self.shares[row[0]])[:MOST_ROWS]:
            mark = "> " if name == status.task.name else "  "
            rate_text = f"{self.rates[name]:.1f}" if self.rates[name] else ""
            cells = (f"{self.shares[name]:.0%}", str(len(speedups)), f"{max(speedups):.2f}", rate_text, curve(speedups))
            table.add_row(mark + name, *cells)
        return table


def _plans(status: Status) -> str:
    """Returns which kernel the next seconds go to, and why."""
    if not status.upcoming:
        return ""
    return f"next: {status.upcoming}, which may save {status.hope:.1%} of a run"


@contextmanager
def live_table(quiet: bool) -> Iterator[LiveTable]:
    """Gives a table that is drawn on a terminal, unless *quiet*."""
    if quiet or not err.is_terminal:
        yield LiveTable(None)
        return
    with Live(console=err, refresh_per_second=4, transient=True) as live:
        yield LiveTable(live)
