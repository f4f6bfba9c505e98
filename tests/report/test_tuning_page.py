"""The page about a tuning session says what was found, runs nothing, and fits small windows and large ones."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.browser import Browser
from tests.report.tuning_reports import FAILURES, tuning_report

from weft.cli.tune.candidate_fates import FATES
from weft.cli.tune.tuning_page import tuning_page
from weft.tune.importance import FEWEST
from weft.tune.tuning_session import TuneReport

MACHINE = {"cpu": "a processor", "machine": "x86_64", "system": "Linux", "python": "3.11"}
VOID = {"meta"}


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, and its text; each is closed in its turn."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.open and self.open[-1] != "style" else ""

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [a for _, a in self.found if name in str(a.get("class", "")).split()]


def elements(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def report() -> TuneReport:
    return tuning_report()


@pytest.fixture(scope="module")
def page(report: TuneReport) -> Elements:
    return elements(tuning_page("net", report, MACHINE))


def test_the_summary(page: Elements) -> None:
    tiles = ("80.0%", "of its time before (78.0% to 82.0%)", "1 of 2", "80", "1 min 15 s")
    for said in ("net", "a processor", *tiles, "The search ended because it was interrupted."):
        assert said in page.text, said


def test_what_became_of_the_candidates(page: Elements, report: TuneReport) -> None:
    assert all(FATES[f.kind] in page.text for f in FAILURES)
    counts = re.findall(r"\d+", page.text.partition("measured again, longer.")[2].partition("Kernels")[0])
    assert sum(map(int, counts)) == report.measured


def test_the_kernels(page: Elements, report: TuneReport) -> None:
    assert all(task.name in page.text for task in report.tasks)
    assert len(page.of_class("kernel")) == 2
    assert "80% (78% to 82%)" in page.text
    assert "50.0% of a run in one call; 40 candidates; 5.00 us a call before, 4.00 us now" in page.text
    assert "the best was not kept" in page.text


def test_the_course_of_each_search(page: Elements) -> None:
    charts = page.of_class("search")
    assert [c["role"] for c in charts] == ["img", "img"]
    assert str(charts[0]["aria-label"]).startswith(
        "Best speedup against candidates: 40 candidates tried, 7 of them failed"
    )
    assert (len(page.of_class("tried")), len(page.of_class("failed"))) == (73, 7)
    assert len(page.of_class("incumbent")) == 2
    assert page.text.count("candidates tried") >= 2


def test_plans_and_knobs(page: Elements, report: TuneReport) -> None:
    assert " instead of " in page.text
    assert str(report.tasks[0].plan) in page.text
    assert report.winners[0].record.plan in page.text
    first = report.knobs_of(report.tasks[0])[0]
    assert first.domain[0].question in page.text.partition("Which choices mattered")[2]


def test_where_the_time_went(page: Elements) -> None:
    text = page.text.partition("Where the tuner's time went")[2]
    assert "LLVM: making machine code" in text
    assert "LLVM 3" in text


def test_nothing_is_faster() -> None:
    page = elements(tuning_page("net", tuning_report(is_faster=False), MACHINE))
    assert "nothing was faster beyond noise" in page.text
    assert page.of_class("faster") == []
    assert "it was not kept" in page.text


@pytest.mark.parametrize("count", [0, 1, 3])
def test_sessions_that_ended_soon(count: int) -> None:
    page = elements(tuning_page("net", tuning_report(count=count, is_faster=False) if count else _empty(), MACHINE))
    assert len(page.of_class("search")) == (2 if count else 0)
    assert page.text.count(f"It takes {FEWEST} candidates") == (2 if count else 0)


def _empty() -> TuneReport:
    return TuneReport([], {}, [], 0.1, "there is nothing to tune")


def test_nothing_is_fetched_and_nothing_runs(report: TuneReport) -> None:
    text = tuning_page("net", report, MACHINE)
    assert "<!--" not in text
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    for tag, attributes in elements(text).found:
        assert tag not in ("script", "link", "img", "iframe", "object", "base"), tag
        assert not {a for a in attributes if a.startswith("on") or a == "src"}, tag
        assert tag != "a" or str(attributes["href"]).startswith("#")
    assert not re.search(r"https?:|@import|url\(", text)


def test_all_links_lead_somewhere(page: Elements) -> None:
    places = {str(a["id"]) for _, a in page.found if "id" in a}
    assert {str(a["href"])[1:] for tag, a in page.found if tag == "a"} <= places


def test_no_name_breaks_out_of_the_page(report: TuneReport) -> None:
    name = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;<!--content-->\x1b\udc80"
    tasks = [replace(t, name=name, workload=replace(t.workload, label=name)) for t in report.tasks]
    trials, knobs = (
        {t.workload.digest: x[t.workload.digest] for t in tasks[:2]} for x in (report.trials, report.knobs)
    )
    hostile = TuneReport(tasks, trials, [], 1.0, name, None, knobs, 1e-5)  # type: ignore[arg-type]
    page = tuning_page(name, hostile, {"cpu": name})
    found = elements(page)
    page.encode()
    assert {tag for tag, _ in found.found} & {"script", "img"} == set()
    assert found.text.count("<img src=x") >= 6
    assert "&amp;<!--content-->" in found.text


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_it_fits_the_window(chromium: Browser, report: TuneReport, tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "tuning.html"
    path.write_text(tuning_page("a_network_of_a_rather_long_name_" * 3, report, MACHINE), encoding="utf-8")
    chromium.open(path, width, touch=width == 390, dark=dark)
    assert chromium.problems == []
    assert chromium.requests == [path.resolve().as_uri()]
    assert chromium.run("document.documentElement.scrollWidth") <= width
    outside = chromium.run(
        "[...document.querySelectorAll('main section > *, .card, .tile, h1, h2, td, svg, svg text, svg circle')]"
        f".filter(e => {{ const r = e.getBoundingClientRect(); return r.width && (r.right > {width} || r.left < 0); }})"
        ".map(e => e.textContent)"
    )
    assert outside == []
