"""The page as a reader has it: drawn, clicked, dragged and resized in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.models import conv_bn_relu
from tests.report.browser import Browser
from tests.report.pages import facts_of

from weft.cli.report.page import make_page
from weft.cli.report.page_data import Timing
from weft.driver.build import Compilation, build

WIDE, NARROW = 1280, 390


@pytest.fixture
def view(chromium: Browser, page: Path) -> Browser:
    """The page in a wide window, its scripts done."""
    chromium.open(page, WIDE)
    assert chromium.run("document.documentElement.dataset.ready") == "yes"
    assert chromium.problems == []
    return chromium


def count(view: Browser, selector: str) -> int:
    return int(view.run(f"document.querySelectorAll({selector!r}).length"))


def text(view: Browser, selector: str) -> str:
    return str(view.run(f"document.querySelector({selector!r}).textContent"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [WIDE, 1000, NARROW])
def test_it_fits_the_window(chromium: Browser, page: Path, width: int) -> None:
    chromium.open(page, width, touch=width == NARROW)
    assert chromium.problems == []
    assert chromium.requests == [page.resolve().as_uri()]
    assert chromium.run("document.documentElement.scrollWidth") <= width
    outside = chromium.run(
        "[...document.querySelectorAll('main section > *, .card, .tile, h1, h2')].filter(e => e.offsetWidth &&"
        f" (e.getBoundingClientRect().right > {width} || e.getBoundingClientRect().left < 0)).map(e => e.className || e.tagName)"
    )
    assert outside == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_texts_stay_in_their_boxes(chromium: Browser, page: Path, width: int) -> None:
    chromium.open(page, width)
    wider = chromium.run(
        "[...document.querySelectorAll('.box')].filter(g => { const r = g.querySelector('.body').getBoundingClientRect();"
        " return r.width && [...g.querySelectorAll('text')].some(t => t.getBoundingClientRect().right > r.right + 1); })"
        ".map(g => g.textContent)"
    )
    assert wider == []


def test_all_is_drawn(view: Browser, made: Compilation, timing: Timing) -> None:
    facts = facts_of(made, timing)
    boxes = {key: len(g["boxes"]) for key, g in facts["graphs"].items()}
    assert count(view, "#before .box") == boxes["model"]
    assert count(view, "#after .box") == boxes["calls"]
    assert count(view, "#after .edge") == len(facts["graphs"]["calls"]["arrows"])
    assert count(view, "#kernel-table tbody tr") == min(14, len(facts["kernels"]))
    assert count(view, ".dot") == len(facts["kernels"])
    assert count(view, ".buffer") == len(facts["memory"]["buffers"])
    assert count(view, ".column") == len(facts["calls"])
    view.click("#before [data-key=optimized]")
    assert count(view, "#before .box") == boxes["optimized"]


def test_a_call_leads_to_its_kernel(view: Browser, made: Compilation, timing: Timing) -> None:
    facts = facts_of(made, timing)
    number, box = next((n, b) for n, b in enumerate(facts["graphs"]["calls"]["boxes"]) if b["calls"] == [2])
    kernel = facts["calls"][2]["kernel"]
    view.click(f"#after [data-box='{number}']")
    assert text(view, "#details h3") == box["title"]
    assert facts["calls"][2]["source"] in text(view, "#details dl")
    assert view.run("document.querySelector('#kernel-table tr.chosen').dataset.kernel") == str(kernel)
    assert view.run("document.querySelector('#kernel-choice').value") == str(kernel)
    assert view.run("document.querySelector('.dot.chosen').dataset.kernel") == str(kernel)
    assert view.run("[...document.querySelectorAll('.column.chosen')].map(c => c.dataset.call)") == ["2"]
    same = [n for n, b in enumerate(facts["graphs"]["model"]["boxes"]) if 2 in b["calls"]]
    assert view.run("[...document.querySelectorAll('#before .chosen')].map(g => Number(g.dataset.box))") == same
    view.click("#details .kernel-link")
    view.until(
        "document.querySelector('#code .outline').getBoundingClientRect().top < innerHeight - 50"
    )  # it scrolls there


def test_what_has_no_kernel_leads_to_where_it_goes(view: Browser, made: Compilation, timing: Timing) -> None:
    """The flattened tensor is another name of its input, which the last product reads."""
    facts = facts_of(made, timing)
    boxes = facts["graphs"]["model"]["boxes"]
    number = next(n for n, b in enumerate(boxes) if not b["calls"] and b["kind"] == "movement")
    view.click("#before .zoom button:nth-child(3)")
    view.click(f"#before [data-box='{number}']")
    assert "no kernel of its own" in text(view, "#details .aside")
    assert text(view, "#details h4") == "Goes into the kernel"
    assert (
        view.run("[...document.querySelectorAll('.column.chosen')].map(c => Number(c.dataset.call))")
        == boxes[number]["into"]
    )


def test_a_row_chooses_all_calls_of_its_kernel(view: Browser, made: Compilation, timing: Timing) -> None:
    facts = facts_of(made, timing)
    kernel = next(n for n, k in enumerate(facts["kernels"]) if k["calls"] > 1)
    view.click(f"#kernel-table tr[data-kernel='{kernel}']")
    wanted = [str(n) for n, c in enumerate(facts["calls"]) if c["kernel"] == kernel]
    assert view.run("[...document.querySelectorAll('.column.chosen')].map(c => c.dataset.call)") == wanted
    assert facts["kernels"][kernel]["name"] in text(view, "#limits")


def test_the_forms_of_a_kernel(view: Browser, made: Compilation, timing: Timing) -> None:
    kernel = facts_of(made, timing)["kernels"][0]
    assert count(view, "#code .outline .loop") > 0
    view.click("#code-tabs [data-key=trace]")
    assert text(view, "#code").strip() == kernel["trace"].strip()
    view.click("#code-tabs [data-key=flat]")
    assert text(view, "#code").strip() == kernel["flat"].strip()
    view.click("#code-tabs [data-key=scheduled]")
    assert "reads(" not in text(view, "#code")
    view.click("#accesses")
    assert text(view, "#code").strip() == kernel["scheduled"].strip()
    assert count(view, "#code .t-loop") == sum(
        kernel["scheduled"].count(f" in {k}(") for k in ("range", "parallel", "vectorized", "unrolled")
    )


def zoom(view: Browser) -> list[float]:
    """Returns where the second graph is moved to, and how much it is enlarged."""
    found = view.run(
        "document.querySelector('#after .surface > g').getAttribute('transform').match(/[-\\d.]+/g).map(Number)"
    )
    return [float(x) for x in found]


def test_dragging_moves_a_graph_and_chooses_nothing(view: Browser) -> None:
    chosen = text(view, "#details h3")
    x, y = view.middle("#after .surface")
    before = zoom(view)
    view.mouse("mousePressed", x, y, button="left", clickCount=1)
    for step in (10, 25, 40):
        view.mouse("mouseMoved", x + step, y - step, button="left", buttons=1)
    view.mouse("mouseReleased", x + 40, y - 40, button="left", clickCount=1)
    after = zoom(view)
    assert after[0] - before[0] == pytest.approx(40, abs=0.2)
    assert after[1] - before[1] == pytest.approx(-40, abs=0.2)
    assert after[2] == before[2]
    assert text(view, "#details h3") == chosen


def test_the_wheel_zooms_about_the_pointer_once_the_graph_is_touched(view: Browser) -> None:
    x, y = view.middle("#after .surface")
    before = zoom(view)
    view.mouse("mouseWheel", x, y, deltaX=0, deltaY=100)
    view.frame()
    assert zoom(view) == before  # the page scrolled instead
    x, y = view.middle("#after .surface")
    view.mouse("mouseMoved", x, y)
    view.mouse("mousePressed", x, y, button="left", clickCount=1)
    view.mouse("mouseReleased", x, y, button="left", clickCount=1)
    before = zoom(view)
    view.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    view.frame()
    after = zoom(view)
    assert after[2] > before[2]
    left, top = view.run(
        "(() => { const r = document.querySelector('#after .surface').getBoundingClientRect(); return [r.x, r.y]; })()"
    )
    for at, was, now in ((x - left, before[0], after[0]), (y - top, before[1], after[1])):
        assert (at - was) / before[2] == pytest.approx((at - now) / after[2], abs=0.5)


def test_the_whole_graph_at_once(view: Browser) -> None:
    view.click("#after .zoom button:nth-child(3)")
    inside = view.run(
        "(() => { const s = document.querySelector('#after .stage').getBoundingClientRect();"
        " return [...document.querySelectorAll('#after .box')].every(g => { const r = g.getBoundingClientRect();"
        " return r.left >= s.left && r.right <= s.right && r.top >= s.top && r.bottom <= s.bottom; }); })()"
    )
    assert inside is True


def test_finding_a_box(view: Browser) -> None:
    view.click("#before input[type=search]")
    view.call("Input.insertText", text="GlobalAveragePool")
    assert text(view, "#details h3") == "reduce_mean"
    view.call("Input.insertText", text="nothing of that kind")
    assert view.run("document.querySelector('#before input').classList.contains('nothing')") is True


def test_keys_go_from_box_to_box(view: Browser, made: Compilation, timing: Timing) -> None:
    titles = [b["title"] for b in facts_of(made, timing)["graphs"]["calls"]["boxes"]]
    view.run("document.querySelector('#after .surface').focus()")
    seen = []
    for _ in range(3):
        view.key("ArrowDown")
        seen.append(text(view, "#details h3"))
    assert seen == titles[:3]


def test_a_narrow_window_shows_all_graphs_in_one_pane(chromium: Browser, page: Path, made: Compilation) -> None:
    chromium.open(page, NARROW, 844, touch=True)
    assert chromium.run("getComputedStyle(document.querySelector('#after')).display") == "none"
    chromium.click("#before [data-key=calls]")
    assert count(chromium, "#before .box") == len(facts_of(made)["graphs"]["calls"]["boxes"])
    chromium.resize(WIDE, 900)
    chromium.frame()
    assert chromium.run("document.querySelector('#before [aria-selected=true]').dataset.key") == "model"


SEEN = (
    "(() => { const s = document.querySelector('#PANE .stage').getBoundingClientRect();"
    " return [...document.querySelectorAll('#PANE .box .body')].map(b => b.getBoundingClientRect())"
    ".filter(r => r.bottom > s.top && r.top < s.bottom)"
    ".map(r => [r.left >= s.left, r.right <= s.right, r.width]); })()"
)


@pytest.mark.parametrize(
    ("width", "pane", "keys"),
    [
        (WIDE, "before", ["model", "optimized"]),
        (WIDE, "after", ["calls"]),
        (NARROW, "before", ["model", "optimized", "calls"]),
    ],
    ids=["wide-before", "wide-after", "narrow"],
)
def test_no_box_is_cut_off_at_the_sides(chromium: Browser, page: Path, width: int, pane: str, keys: list[str]) -> None:
    chromium.open(page, width, touch=width == NARROW)
    for key in keys:
        chromium.click(f"#{pane} [data-key={key}]")
        boxes = chromium.run(SEEN.replace("PANE", pane))
        assert boxes
        assert all(left and right for left, right, _ in boxes), key
        assert min(w for _, _, w in boxes) > 30  # not shrunk until nobody can read it
    over = chromium.run(
        f"(() => {{ const z = document.querySelector('#{pane} .zoom').getBoundingClientRect();"
        f" const s = document.querySelector('#{pane} .stage').getBoundingClientRect();"
        " return z.bottom > s.top && z.top < s.bottom; })()"
    )
    assert over is False


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_slowest_kernel_is_in_sight_at_first(chromium: Browser, page: Path, width: int) -> None:
    chromium.open(page, width, touch=width == NARROW)
    for pane in ("before", "after")[: 1 if width == NARROW else 2]:
        inside = chromium.run(
            f"(() => {{ const s = document.querySelector('#{pane} .stage').getBoundingClientRect();"
            f" return [...document.querySelectorAll('#{pane} .box.chosen')].some(g => {{"
            " const r = g.getBoundingClientRect(); return r.top >= s.top && r.bottom <= s.bottom; }); })()"
        )
        assert inside is True, pane


def open_page(chromium: Browser, facts: dict[str, Any], folder: Path, width: int) -> None:
    """Shows the page of *facts* in a window of *width*; narrow ones are touched."""
    path = folder / "page.html"
    path.write_text(make_page(facts), encoding="utf-8")
    chromium.open(path, width, touch=width == NARROW)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_names_of_kernels_break_after_underscores_only(
    chromium: Browser, made: Compilation, timing: Timing, tmp_path: Path, width: int
) -> None:
    facts = facts_of(made, timing)
    for kernel in facts["kernels"]:
        kernel["name"] = f"conv2d_winograd_transposed_{kernel['name']}"
    open_page(chromium, facts, tmp_path, width)
    broken = chromium.run(
        "[...document.querySelectorAll('.kernels .name b, .kernel-name, .kernel-link b')].flatMap(b => [...b.childNodes])"
        ".filter(n => n.nodeType === Node.TEXT_NODE).filter(n => { const r = document.createRange();"
        " r.selectNodeContents(n); return r.getClientRects().length > 1; }).map(n => n.data)"
    )
    assert broken == []
    assert chromium.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_numbers_in_the_roofline_lie_apart(
    chromium: Browser, made: Compilation, timing: Timing, tmp_path: Path, width: int
) -> None:
    """Nine kernels of nearly the same rate and intensity: their discs lie on one another, their numbers do not."""
    facts = facts_of(made, timing)
    for n, kernel in enumerate(facts["kernels"]):
        kernel["timing"] |= {"operations": 1e8 + n * 1e6, "bytes": 3e6, "seconds": 1.5e-3}
    open_page(chromium, facts, tmp_path, width)
    boxes = chromium.run(
        "[...document.querySelectorAll('.label text')].map(t => { const r = t.getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + r.height / 2]; })"
    )
    assert len(boxes) == min(9, len(facts["kernels"]))
    near = [(a, b) for n, a in enumerate(boxes) for b in boxes[:n] if (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 < 14**2]
    assert near == []
    assert count(chromium, ".label line") > 0
    plot = chromium.run("(r => [r.left, r.right])(document.querySelector('#roofline svg').getBoundingClientRect())")
    assert all(plot[0] < x < plot[1] for x, _ in boxes)


def test_times_of_a_warm_cache_are_told_as_such(chromium: Browser, made: Compilation, tmp_path: Path) -> None:
    facts: dict[str, Any] = facts_of(made)
    for cached, told in ((0, False), (3, True)):
        facts["cached"] = cached
        path = tmp_path / f"{cached}.html"
        path.write_text(make_page(facts), encoding="utf-8")
        chromium.open(path, WIDE)
        assert (f"3 of {len(facts['kernels'])} kernels came from the cache" in text(chromium, "#summary")) is told


def ink(view: Browser) -> int:
    """Returns how light the page is, of 255."""
    return int(view.run("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"))


def test_dark_and_light(chromium: Browser, page: Path) -> None:
    chromium.open(page, WIDE, dark=True)
    assert ink(chromium) < 60
    chromium.click("#theme")
    assert (text(chromium, "#theme"), ink(chromium) < 60) == ("Dark", True)
    chromium.click("#theme")
    assert (text(chromium, "#theme"), ink(chromium) > 200) == ("Light", True)
    chromium.run("try { localStorage.clear() } catch {}")
    chromium.open(page, WIDE)
    assert ink(chromium) > 200


def test_without_times(chromium: Browser, made: Compilation, tmp_path: Path) -> None:
    path = tmp_path / "untimed.html"
    path.write_text(make_page(facts_of(made)), encoding="utf-8")
    chromium.open(path, WIDE)
    assert chromium.problems == []
    assert chromium.run("document.querySelector('#timing').hidden") is True
    assert count(chromium, "#kernel-table tbody tr") > 0
    assert "Not timed" in text(chromium, "#kernels-note")


def test_a_model_that_computes_nothing(chromium: Browser, tmp_path: Path, made: Compilation) -> None:
    facts: dict[str, Any] = facts_of(made)
    empty = {"width": 0, "height": 0, "boxes": [], "arrows": []}
    facts.update(kernels=[], calls=[], graphs=dict.fromkeys(facts["graphs"], empty))
    facts["memory"] = {"size": 0, "bound": 0, "buffers": []}
    path = tmp_path / "empty.html"
    path.write_text(make_page(facts), encoding="utf-8")
    chromium.open(path, WIDE)
    assert (chromium.problems, chromium.run("document.documentElement.dataset.ready")) == ([], "yes")


def test_many_inputs_are_shown_when_asked_for(chromium: Browser, tmp_path: Path, made: Compilation) -> None:
    facts: dict[str, Any] = facts_of(made)
    facts["inputs"] = [f"cache{n}: f32[1]" for n in range(20)]
    path = tmp_path / "many.html"
    path.write_text(make_page(facts), encoding="utf-8")
    chromium.open(path, WIDE)
    assert (count(chromium, ".signature span"), text(chromium, ".signature button")) == (7, "and 14 more")
    chromium.click(".signature button")
    assert count(chromium, ".signature span") == 21


def test_names_are_texts(chromium: Browser, tmp_path: Path) -> None:
    """A node's name is shown as it is, whatever it would mean in a page."""
    name = "</script><img src=x onerror=\"document.title='broken'\">"
    model = conv_bn_relu()
    model.graph.node[0].name = name
    path = tmp_path / "hostile.html"
    path.write_text(make_page(facts_of(build(model.SerializeToString()), title=name)), encoding="utf-8")
    chromium.open(path, WIDE)
    assert chromium.problems == []
    assert text(chromium, "h1") == name
    assert count(chromium, "img") == 0
    chromium.click("#before [data-box='1']")
    assert name in text(chromium, "#details")
