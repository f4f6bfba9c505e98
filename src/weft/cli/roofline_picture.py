"""The roofline as a picture: needs matplotlib, the extra `plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weft.driver.roofline import Roofs, Standing
from weft.support.errors import InputError
from weft.support.files import write_output

NAMED = 8
"""How many kernels, of those that take the most time, are named in the picture."""

LARGEST_DOT = 900.0
"""The area of a kernel that takes all of the time, in square points."""

FORMATS = ("svg", "png", "pdf")


def draw(path: Path, title: str, kernels: Sequence[Standing], roofs: Roofs) -> None:
    """Draws *kernels* under *roofs* to a file whose name ends in .svg, .png or .pdf; a dot's area is its part of the time.

    Kernels that only move data have no operations, and so no place in the picture.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(f"{path} is no name of a picture", hint=f"let it end in .{', .'.join(FORMATS)}")
    shown = [s for s in kernels if s.operations > 0 and s.seconds > 0]
    figure = Figure(figsize=(11, 7), layout="constrained")
    axes = figure.add_subplot()
    left = min([0.1, *[s.intensity / 2 for s in shown]])
    right = max([100.0, *[s.intensity * 2 for s in shown]])
    _draw_roofs(axes, roofs, left, right)
    _draw_kernels(axes, shown, sum(s.calls * s.seconds for s in kernels))
    axes.set(xscale="log", yscale="log", xlim=(left, right), title=f"{title} on one core")
    axes.set(xlabel="operations per byte moved", ylabel="GFLOP/s")
    axes.grid(alpha=0.3)
    with matplotlib.rc_context({"svg.hashsalt": title}):  # the same picture for the same figures
        write_output(path, lambda file: figure.savefig(file, format=kind, metadata=_no_date(kind)))


def _no_date(kind: str) -> dict[str, None]:
    return {} if kind == "png" else {"Date" if kind == "svg" else "CreationDate": None}


def _draw_roofs(axes: Axes, roofs: Roofs, left: float, right: float) -> None:
    for x in roofs.levels:
        knee = roofs.peak / x.bandwidth
        axes.plot([left, knee, right], [left * x.bandwidth, roofs.peak, roofs.peak], color="0.4", linewidth=1)
        axes.annotate(f"{x.name} {x.bandwidth:.0f} GB/s", (left, left * x.bandwidth), xytext=(4, 4),
                      textcoords="offset points", fontsize=8, color="0.3")  # fmt: skip
    axes.annotate(f"{roofs.peak:.0f} GFLOP/s", (right, roofs.peak), xytext=(-4, 4), textcoords="offset points",
                  ha="right", fontsize=8, color="0.3")  # fmt: skip


def _draw_kernels(axes: Axes, kernels: Sequence[Standing], total: float) -> None:
    parts = [s.calls * s.seconds / total for s in kernels]
    sizes = [12 + LARGEST_DOT * p for p in parts]
    axes.scatter([s.intensity for s in kernels], [s.rate for s in kernels], sizes, alpha=0.5)
    named = list(zip(kernels, parts, strict=True))[:NAMED]
    for n, (s, _) in enumerate(named, 1):
        axes.annotate(str(n), (s.intensity, s.rate), ha="center", va="center", fontsize=7)
    lines = [f"{n} {part:5.1%} {s.name}" for n, (s, part) in enumerate(named, 1)]
    axes.text(0.98, 0.03, "\n".join(lines), transform=axes.transAxes, ha="right", va="bottom", fontsize=7,
              family="monospace")  # fmt: skip
