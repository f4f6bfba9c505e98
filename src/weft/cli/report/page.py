"""The page: its frame, its styles, its scripts and its facts in one file, which fetches nothing."""

from __future__ import annotations

import html
import importlib.resources
import json
import re
from collections.abc import Mapping
from typing import Any, Final

SCRIPTS: Final = ("elements.js", "text.js", "graph.js", "kernels.js", "memory.js", "loops.js", "main.js")
"""In the order in which they build on one another; together they are one script."""

_ASSETS: Final = importlib.resources.files("weft.cli.report") / "page"


def make_page(facts: Mapping[str, Any]) -> str:
    """Returns the page that shows *facts*, as `report_facts` makes them."""
    parts = {
        "title": html.escape(str(facts["title"])),
        "style": frame_style() + _asset("page.css"),
        "facts": _embedded(facts),
        "script": "\n".join(_asset(name) for name in SCRIPTS),
    }
    return re.sub(r"<!--(\w+)-->", lambda place: parts[place[1]], _asset("page.html"))


def frame_style() -> str:
    """Returns the styles that pages share: their colours, light and dark, their head and their tiles."""
    return _asset("frame.css")


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _embedded(facts: Mapping[str, Any]) -> str:
    """Returns *facts* as JSON that may stand in a page: no text in it can end the element that it is in.

    Programs are deeply indented: a tab, which JSON itself never has, stands for four spaces.
    """
    return json.dumps(facts, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace("    ", "\t")
