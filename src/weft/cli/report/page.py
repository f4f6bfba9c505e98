"""The page of a report: its styles, its scripts and its facts in one file, which fetches nothing."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from typing import Any, Final

from weft.cli.report.page_frame import filled, framed

SCRIPTS: Final = ("elements.js", "text.js", "graph.js", "kernels.js", "memory.js", "loops.js", "main.js")
"""The scripts of the page in the order in which they build on one another; together they are one script."""

_ASSETS: Final = importlib.resources.files("weft.cli.report") / "page"


SECTIONS: Final = {"graphs": "Graph", "kernels": "Kernels", "memory": "Memory", "loops": "Loops"}

THEME: Final = (
    '<button id="theme" class="button" type="button" '
    'title="Colours: as the system has them, dark, or light">Auto</button>'
)


def make_page(facts: Mapping[str, Any]) -> str:
    """Returns the page that shows *facts*, as `report_facts` makes them."""
    parts = {"facts": _embedded(facts), "script": "\n".join(_asset(name) for name in SCRIPTS)}
    body = filled(_asset("page.html"), parts)
    return framed("report", str(facts["title"]), SECTIONS, _asset("page.css"), body, tools=THEME, has_scripts=True)


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _embedded(facts: Mapping[str, Any]) -> str:
    """Returns *facts* as JSON that may stand in a page: no text in it can end the element that it is in.

    Programs are deeply indented: a tab, which JSON itself never has, stands for four spaces.
    """
    return json.dumps(facts, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace("    ", "\t")
