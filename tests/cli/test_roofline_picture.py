"""The picture of a roofline can be read: plain numbers at logarithmic axes, roofs and kernels named where they are."""

from __future__ import annotations

import struct
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from weft.cli.bench import roofline_picture
from weft.driver.measure.roofline import Level, Roofs, Standing

ROOFS = Roofs(
    118.0,
    [
        Level("L1", 2**15, 217.0),
        Level("L2", 2**20, 106.0),
        Level("L3", 2**25, 100.0),
        Level("DRAM", float("inf"), 32.0),
    ],
)


def standing(name: str, intensity: float, rate: float, seconds: float, calls: int = 1) -> Standing:
    operations = rate * 1e9 * seconds
    limits = {
        "arithmetic": operations / ROOFS.peak / 1e9,
        "weights from DRAM": operations / intensity / 32e9,
        "activations from L2": 0.0,
    }
    return Standing(name, "", calls, seconds, operations, operations / intensity, limits)


CROWDED = [
    standing("conv2d_winograd_add_relu_4", 3.70, 94.0, 1e-3, calls=2),
    *[standing(f"conv2d_winograd_add_relu_{n}", 20 + 3 * n, 110 + 12 * n, 6e-4, calls=2) for n in range(6)],
    standing("a_name_that_is_far_too_long_for_a_label_in_a_picture", 3.71, 93.7, 8e-4),
    standing("max_pool2d", 0.45, 14.0, 1e-4),
    Standing("copy", "", 1, 5e-5, 0.0, 1e6, {"arithmetic": 0.0, "weights from DRAM": 0.0, "activations from L2": 1e-5}),
]


@pytest.fixture(scope="module")
def crowded() -> Figure:
    return drawn(CROWDED)


def drawn(kernels: list[Standing]) -> Figure:
    figure = roofline_picture.roofline_figure("resnet18", kernels, ROOFS)
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    return figure


def texts(figure: Figure) -> list[Text]:
    return [t for t in figure.axes[0].texts if t.get_text()]


def test_axes_have_plain_numbers(crowded: Figure) -> None:
    (axes,) = crowded.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        written = [t.get_text() for t in axis.get_ticklabels() if low <= _number(t) <= high]
        assert len(written) >= 3
        assert all(float(w) == pytest.approx(float(f"{float(w):g}")) for w in written)


def _number(tick: Text) -> float:
    return float(tick.get_text() or "nan")


def test_roofs_are_named_on_their_lines(crowded: Figure) -> None:
    found = {t.get_text(): t for t in texts(crowded)}
    assert found["peak 118 GFLOP/s"].get_rotation() == pytest.approx(0.0)
    slanted = [found[f"{x} GB/s"].get_rotation() for x in ("L1 217", "L2 106, L3 100", "DRAM 32")]
    assert slanted == pytest.approx([slanted[0]] * 3)
    assert 10 < slanted[0] < 80


def test_kernels_are_named_and_nothing_overlaps(crowded: Figure) -> None:
    named = [t for t in texts(crowded) if "%" in t.get_text()]
    assert len(named) == roofline_picture.NAMED
    assert "conv2d_winograd_add_relu_4 \N{MULTIPLICATION SIGN}2, 20%" in [t.get_text() for t in named]
    assert any(t.get_text().startswith("a_name_that_is_far_too_long_for_a\N{HORIZONTAL ELLIPSIS}") for t in named)
    level = [t for t in texts(crowded) if t.get_rotation() == 0]
    boxes = [t.get_window_extent() for t in level]
    frame = crowded.axes[0].get_window_extent()
    for a, b in combinations(boxes, 2):
        assert not a.overlaps(b)
    for box in boxes:
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1
    heights = [box.height for box in boxes]
    assert min(heights) >= 12  # dots of 1200 in a line


def test_a_mark_s_area_is_its_part_of_the_time() -> None:
    slow, fast = standing("slow", 10.0, 50.0, 3e-3), standing("fast", 10.0, 90.0, 1e-3)
    sizes = [float(np.asarray(c.get_sizes())[0]) for c in drawn([slow, fast]).axes[0].collections]  # type: ignore[attr-defined]
    areas = [np.pi / 4 * s - roofline_picture.SMALLEST_DOT for s in sizes]
    assert areas[0] / areas[1] == pytest.approx(3.0)


def test_what_a_reader_has_to_know(crowded: Figure) -> None:
    said = "\n".join(t.get_text() for t in crowded.texts)
    assert "its share of 10.1 ms" in said
    assert "Left out, 0.5% in all: kernels without arithmetic, and those below 0.1%." in said
    assert "Above the roof" in said
    plain = "\n".join(t.get_text() for t in drawn(CROWDED[:1]).texts)
    assert "Left out" not in plain
    assert "Above the roof" not in plain


@pytest.mark.parametrize("kernels", [[], CROWDED[-1:]])
def test_nothing_to_show(kernels: list[Standing]) -> None:
    assert not drawn(kernels).axes[0].collections


def test_a_png_is_wide_enough(tmp_path: Path) -> None:
    roofline_picture.draw(tmp_path / "r.png", "model", CROWDED, ROOFS)
    width, height = struct.unpack(">II", (tmp_path / "r.png").read_bytes()[16:24])
    assert (width, height) == (1200, 750)
