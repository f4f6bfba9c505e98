"""The roofline as a picture: needs matplotlib, the extra `plot`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import atan2, cos, degrees, log10, pi, sqrt
from pathlib import Path
from typing import Any, Final, TypeAlias

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from weft.cli.bench.label_layout import Box, Disc, Points, place_labels
from weft.driver.measure.roofline import Level, Roofs, Standing
from weft.support.errors import InputError
from weft.support.files import write_output

NAMED: Final = 8
"""How many kernels, of those that take the most time, are named in the picture."""

LEAST: Final = 1e-3
"""The part of the time below which a kernel is left out."""

LARGEST_DOT: Final = 900.0
"""The area of a kernel that takes all of the time, in square points."""

SMALLEST_DOT: Final = 12.0

FORMATS: Final = ("svg", "png", "pdf")

SIZE, DPI = (8.0, 5.0), 150
"""The figure's inches, and the dots in one: 1200 by 750."""

# Blue and vermilion of Okabe and Ito's palette, which colour-blind readers tell apart, and greys.
ARITHMETIC, MEMORY = "#0072B2", "#D55E00"
INK, ROOF, SOFT, GRID = "#222222", "#444444", "#6E6E6E", "#E6E6E6"

LABEL, TITLE = 7.5, 11.0
"""Sizes of type, in points."""

LONGEST: Final = 34
"""The most letters of a name."""

ABOVE, INWARD, BESIDE = 4.0, 28.0, 8.0
"""The dots between a line and the text above it, between its begin and that, and those from a mark to its name that need
no line between them."""

MANY: Final = 1000
"""The range of an axis from which on powers of ten alone are written at it."""

FASTER: Final = 1.1
"""How much above the peak a rate is that is no matter of measuring."""

_Slope: TypeAlias = tuple[Level, float, float]
"""A level of memory, and the intensities where its roof begins and ends."""


def draw(path: Path, title: str, kernels: Sequence[Standing], roofs: Roofs) -> None:
    """Draws *kernels* under *roofs* to a file whose name ends in .svg, .png or .pdf; a dot's area is its part of the time."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(f"{path} is no name of a picture", hint=f"let it end in .{', .'.join(FORMATS)}")
    figure = roofline_figure(title, kernels, roofs)
    with matplotlib.rc_context({"svg.hashsalt": title, "pdf.fonttype": 42}):  # the same picture for the same figures
        write_output(path, lambda file: figure.savefig(file, format=kind, metadata=_no_date(kind)))


def _no_date(kind: str) -> dict[str, None]:
    return {} if kind == "png" else {"Date" if kind == "svg" else "CreationDate": None}


def roofline_figure(title: str, kernels: Sequence[Standing], roofs: Roofs) -> Figure:
    """Returns the picture.

    Kernels that only move data have no operations, and so no place in it; nor have those that take next to no time.
    """
    total = sum(s.calls * s.seconds for s in kernels)
    marks = [Mark(s, s.calls * s.seconds / total) for s in kernels if s.operations > 0 and s.seconds > 0]
    shown = sorted((m for m in marks if m.part >= LEAST), key=lambda m: -m.part)
    figure = Figure(figsize=SIZE, dpi=DPI)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.075, 0.105, 0.9, 0.745))
    _set_axes(axes, shown, roofs)
    canvas.draw()  # type: ignore[no-untyped-call] # from here on data has its place
    plot = _Plot(axes, canvas, [m.disc(axes) for m in shown])
    _draw_marks(axes, shown)
    _draw_roofs(plot, roofs)
    _draw_names(plot, shown[:NAMED])
    _draw_head(figure, title, _notes(shown, len(kernels), total, roofs.peak))
    return figure


@dataclass(frozen=True)
class Mark:
    """A kernel in the picture, and its part of all time."""

    kernel: Standing
    part: float

    @property
    def is_arithmetic(self) -> bool:
        """Whether it could not be faster for its arithmetic, rather than for memory."""
        return self.kernel.cause == next(iter(self.kernel.limits))

    @property
    def area(self) -> float:
        """The square points it covers."""
        return SMALLEST_DOT + LARGEST_DOT * self.part

    @property
    def name(self) -> str:
        """The text at the mark."""
        s = self.kernel
        name = s.name if len(s.name) <= LONGEST else f"{s.name[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
        calls = f" \N{MULTIPLICATION SIGN}{s.calls}" if s.calls > 1 else ""
        return f"{name}{calls}, {self.part:.{0 if self.part >= 0.01 else 1}%}"

    def disc(self, axes: Axes) -> Disc:
        """Returns where it is, in dots."""
        x, y = axes.transData.transform((self.kernel.intensity, self.kernel.rate))
        return Disc(float(x), float(y), sqrt(self.area / pi) * DPI / 72)


@dataclass
class _Plot:
    """The axes, the dots that marks cover, and the lines, in dots, that no label is to cover."""

    axes: Axes
    canvas: FigureCanvasAgg
    discs: list[Disc]
    lines: list[Points] = field(default_factory=list)

    def size(self, text: str) -> tuple[float, float]:
        """Returns the width and height of a label."""
        found = self.axes.text(0, 0, text, fontsize=LABEL, transform=None)
        box = found.get_window_extent(self.canvas.get_renderer())  # type: ignore[no-untyped-call]
        found.remove()
        return box.width, box.height

    def to_data(self, x: float, y: float) -> tuple[float, float]:
        """Returns the data coordinates of a dot."""
        found = self.axes.transData.inverted().transform((x, y))
        return float(found[0]), float(found[1])

    def line(self, points: Sequence[tuple[float, float]], **style: Any) -> None:
        """Draws a line through points of data."""
        xs, ys = zip(*points, strict=True)
        self.axes.plot(xs, ys, solid_capstyle="round", **style)
        self.lines.append(np.asarray(self.axes.transData.transform(points), np.float64))


def _set_axes(axes: Axes, shown: Sequence[Mark], roofs: Roofs) -> None:
    """Shows the decades that are in use, and enough of the lowest roof to see where it ends."""
    knee = roofs.peak / min(x.bandwidth for x in roofs.levels)
    intensities, rates = [m.kernel.intensity for m in shown], [m.kernel.rate for m in shown]
    nearest = roofs.peak / max(x.bandwidth for x in roofs.levels)
    left, right = min([nearest / 2, *intensities]) / 1.8, max([knee * 4, *intensities]) * 1.8
    bottom, top = min([roofs.peak / 12, *rates]) / 1.8, max([roofs.peak, *rates]) * 1.9
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    for axis, low, high in ((axes.xaxis, left, right), (axes.yaxis, bottom, top)):
        axis.set_major_locator(LogLocator(subs=(1.0,) if high / low > MANY else (1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(LogLocator(subs=range(2, 10)))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("Arithmetic intensity (FLOP per byte moved)", fontsize=8.5, color=INK)
    axes.set_ylabel("Performance (GFLOP/s)", fontsize=8.5, color=INK)
    axes.tick_params(which="both", labelsize=8, color=SOFT, labelcolor=INK)
    axes.tick_params(which="minor", length=1.5)
    axes.grid(which="major", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)


def _draw_marks(axes: Axes, shown: Sequence[Mark]) -> None:
    for m in shown:  # the largest first: others lie upon it
        marker, color, square = ("o", ARITHMETIC, 4 / pi) if m.is_arithmetic else ("s", MEMORY, 1.0)
        axes.scatter(
            [m.kernel.intensity],
            [m.kernel.rate],
            [m.area * square],
            marker=marker,
            color=color,
            alpha=0.85,
            edgecolors="white",
            linewidths=0.7,
            zorder=3,
        )


def _draw_roofs(plot: _Plot, roofs: Roofs) -> None:
    """Draws a line for each level of memory up to the arithmetic's, and writes its name on each."""
    left, right = plot.axes.get_xlim()
    bottom, _ = plot.axes.get_ylim()
    slopes = [(x, max(left, bottom / x.bandwidth), roofs.peak / x.bandwidth) for x in roofs.levels]
    slopes = [(x, begin, knee) for x, begin, knee in slopes if begin < knee]
    flat = (max(left, min((knee for _, _, knee in slopes), default=left)), roofs.peak)
    plot.line([flat, (right, roofs.peak)], color=INK, linewidth=1.4, zorder=2)
    for x, begin, knee in slopes:
        plot.line([(begin, begin * x.bandwidth), (knee, roofs.peak)], color=ROOF, linewidth=0.9, zorder=2)
    _write_along(plot, flat, (right, roofs.peak), f"peak {_short(roofs.peak)} GFLOP/s", from_end=True)
    for group in _near_lines(plot, slopes):
        x, begin, knee = group[0]
        text = ", ".join(f"{level.name} {_short(level.bandwidth)}" for level, _, _ in group) + " GB/s"
        _write_along(plot, (begin, begin * x.bandwidth), (knee, roofs.peak), text, from_end=False)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _near_lines(plot: _Plot, slopes: Sequence[_Slope]) -> list[list[_Slope]]:
    """Returns the lines, the fastest first, those together between which there is no room for a label."""
    (x, y), (across, up) = plot.axes.transData.transform([(1.0, 1.0), (10.0, 10.0)])
    decade = float(up - y) * cos(atan2(up - y, across - x))  # between a line and one of a tenth of its bandwidth
    room = 1.5 * plot.size("L1")[1]
    groups: list[list[_Slope]] = []
    for slope in sorted(slopes, key=lambda s: -s[0].bandwidth):
        if groups and log10(groups[-1][-1][0].bandwidth / slope[0].bandwidth) * decade < room:
            groups[-1].append(slope)
        else:
            groups.append([slope])
    return groups


def _write_along(
    plot: _Plot, begin: tuple[float, float], end: tuple[float, float], text: str, *, from_end: bool
) -> None:
    """Writes upon a line where no mark is in the way: near to its begin, or to its end."""
    width, height = plot.size(text)
    first, last = np.asarray(plot.axes.transData.transform([begin, end]), np.float64)
    length = max(1.0, float(np.hypot(*(last - first))))
    along = (last - first) / length
    upward = np.array([-along[1], along[0]])
    middle = upward * (ABOVE + height / 2)
    starts = np.linspace(INWARD, max(INWARD, length - width - ABOVE), 40)[:: -1 if from_end else 1]
    lines = [np.stack([first + along * s + middle, first + along * (s + width) + middle]) for s in starts]
    chosen = next((n for n, line in enumerate(lines) if all(_is_clear(line, height, d) for d in plot.discs)), 0)
    begin_of, end_of = lines[chosen]
    half = upward * height / 2
    plot.lines.append(np.stack([begin_of - half, end_of - half, end_of + half, begin_of + half, begin_of - half]))
    x, y = plot.to_data(*(first + along * starts[chosen] + upward * ABOVE))
    plot.axes.text(
        x,
        y,
        text,
        fontsize=LABEL,
        fontstyle="italic",
        color=ROOF,
        ha="left",
        va="bottom",
        zorder=4,
        rotation=degrees(atan2(along[1], along[0])),
        rotation_mode="anchor",
    )


def _is_clear(line: Points, height: float, disc: Disc) -> bool:
    points = line[0] + np.linspace(0, 1, 20)[:, None] * (line[1] - line[0])
    return bool((np.hypot(*(points - disc.center).T) > disc.radius + height / 2).all())


def _draw_names(plot: _Plot, named: Sequence[Mark]) -> None:
    """Writes the names of marks near to them, each with a line to its mark where it is not beside it."""
    frame = plot.axes.get_window_extent()
    area = Box(frame.x0 + ABOVE, frame.y0 + ABOVE, frame.width - 2 * ABOVE, frame.height - 2 * ABOVE)
    anchors = plot.discs[: len(named)]
    boxes = place_labels(anchors, [plot.size(m.name) for m in named], area, plot.discs, plot.lines)
    for m, disc, box in zip(named, anchors, boxes, strict=True):
        end = np.array(box.nearest(disc.x, disc.y))
        away = float(np.hypot(*(end - disc.center)))
        if away > disc.radius + BESIDE:
            ends = [disc.center + (end - disc.center) * (disc.radius / away), end]
            xs, ys = zip(*(plot.to_data(*e) for e in ends), strict=True)
            plot.axes.plot(xs, ys, color=SOFT, linewidth=0.6, zorder=2.5)
        x, y = plot.to_data(box.left, box.bottom)
        plot.axes.text(x, y, m.name, fontsize=LABEL, color=INK, ha="left", va="bottom", zorder=4)


def _notes(shown: Sequence[Mark], count: int, total: float, peak: float) -> list[str]:
    """Returns the notes of the picture."""
    rest = max(0.0, 1 - sum(m.part for m in shown))
    time = f"{total * 1e3:.3g} ms" if total >= 1e-3 else f"{total * 1e6:.3g} \N{MICRO SIGN}s"
    notes = [f"One core; the area of a mark is its share of {time}."]
    if count > len(shown):
        less = f"{rest:.1%}" if rest >= LEAST else f"less than {LEAST:.1%}"
        notes[0] += f" Left out, {less} in all: kernels without arithmetic, and those below {LEAST:.1%}."
    if any(m.kernel.rate > FASTER * peak for m in shown):
        notes.append("Above the roof: operations are counted as defined, and algorithms such as Winograd's do fewer.")
    return notes


def _draw_head(figure: Figure, title: str, notes: Sequence[str]) -> None:
    figure.text(0.012, 0.978, title, fontsize=TITLE, fontweight="bold", color=INK, va="top")
    figure.text(0.012, 0.928, "\n".join(notes), fontsize=LABEL, color=SOFT, va="top", linespacing=1.35)
    keys = [
        Line2D([], [], linestyle="", marker=marker, color=color, markersize=6, label=label)
        for marker, color, label in (("o", ARITHMETIC, "bound by arithmetic"), ("s", MEMORY, "bound by memory"))
    ]
    figure.legend(
        handles=keys,
        loc="upper right",
        bbox_to_anchor=(0.985, 0.995),
        ncols=2,
        frameon=False,
        fontsize=8,
        handletextpad=0.1,
        columnspacing=1.2,
        labelcolor=INK,
    )
