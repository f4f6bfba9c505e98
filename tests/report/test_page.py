"""One file that fetches nothing, and that nothing in a model can break out of."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.pages import embedded, facts_of

from weft.cli.demo_models import resnet18
from weft.cli.report.page import SCRIPTS, make_page
from weft.driver.build import Compilation, build

PAGE = Path("src/weft/cli/report/page")
LARGEST = 1_000_000
"""Bytes that the page of ResNet-18 may have."""


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, and the text in those of type JSON."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.json = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][1].get("id") == "facts":
            self.json += data


def elements(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    return parser


def test_nothing_is_fetched(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for tag, attributes in elements(text).found:
        assert "src" not in attributes, tag
        assert tag not in ("link", "img", "iframe", "object", "base"), tag
        assert tag != "a" or str(attributes["href"]).startswith("#")
    assert "default-src 'none'" in text
    outside = [
        u for u in re.findall(r"(?:https?:)?//[\w.-]+\.\w{2,}[^\s\"'`)]*", text) if "www.w3.org/2000/svg" not in u
    ]
    assert outside == []
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", text)


def test_all_places_are_filled(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!--" not in text
    assert all((PAGE / name).read_text(encoding="utf-8") in text for name in SCRIPTS)
    assert sorted(p.name for p in PAGE.glob("*.js")) == sorted(SCRIPTS)


def test_no_name_breaks_out_of_the_page(made: Compilation) -> None:
    name = "</script><!--script--><img src=x onerror=alert(1)>\u2028&amp;"
    facts = facts_of(made, title=name)
    found = elements(make_page(facts))
    assert [t for t, _ in found.found if t == "img"] == []
    assert len([t for t, _ in found.found if t == "script"]) == 2
    assert embedded(found.json) == json.loads(json.dumps(facts))


@pytest.mark.slow
def test_the_page_of_a_real_network_is_small() -> None:
    made = build(resnet18().SerializeToString())
    assert len(make_page(facts_of(made)).encode()) < LARGEST
