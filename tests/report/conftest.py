"""What the tests of the report share: a small network, compiled, as a page, and a browser to read it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report.browser import Browser, browser, find_browser
from tests.report.pages import ROOFS, facts_of, network

from weft.cli.report.page import make_page
from weft.cli.report.page_data import Timing
from weft.driver.build import Compilation, build
from weft.driver.measure.roofline import Standing


@pytest.fixture(scope="session")
def made() -> Compilation:
    """A small network with residual blocks."""
    return build(network().SerializeToString())


@pytest.fixture(scope="session")
def timing(made: Compilation) -> Timing:
    """Made-up times: each kernel takes a microsecond less than the one before, of those that take the longest."""
    names = [k.name for k in made.kernels.values()]
    calls = [sum(g.key == key for g in made.fused.groups) for key in made.kernels]
    limits = {"arithmetic": 4e-6, "weights from L2": 2e-6, "activations from L1": 1e-6}
    rows = [
        Standing(n, "", c, (90 - i) * 1e-6, 1e5 + i, 1e4, limits)
        for i, (n, c) in enumerate(zip(names, calls, strict=True))
    ]
    return Timing(ROOFS, sorted(rows, key=lambda s: -s.calls * s.seconds))


@pytest.fixture(scope="session")
def page(made: Compilation, timing: Timing, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the network, as a file."""
    path = tmp_path_factory.mktemp("report") / "tiny.html"
    path.write_text(make_page(facts_of(made, timing)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser; tests that need one are skipped where there is none."""
    path = find_browser()
    if path is None:
        pytest.skip("there is no Chromium here; install it, or name one in $CHROMIUM")
    with browser(path, tmp_path_factory.mktemp("chromium")) as made:
        yield made
