"""The frame of Weft's pages: one file with its styles, a head with links to its sections, and nothing that is fetched."""

from __future__ import annotations

import html
import importlib.resources
import re
from collections.abc import Mapping
from typing import Final

_ASSETS: Final = importlib.resources.files("weft.cli.report") / "page"


def framed(
    kind: str,
    title: str,
    sections: Mapping[str, str],
    style: str,
    body: str,
    *,
    tools: str = "",
    has_scripts: bool = False,
) -> str:
    """Returns a page of a *kind*, such as "report", about *title*.

    *sections* are the texts of the links in its head by the sections' ids, *tools* are the elements beside them; *style* are the
    styles that it has beyond those of all pages. Scripts in *body* run only if it *has_scripts*.
    """
    links = "".join([f'<a href="#{key}">{html.escape(text)}</a>' for key, text in sections.items()])
    parts = {
        "policy": "; script-src 'unsafe-inline'" if has_scripts else "",
        "title": html.escape(title),
        "kind": kind,
        "style": (_ASSETS / "frame.css").read_text(encoding="utf-8") + style,
        "links": links,
        "tools": tools,
        "body": body,
    }
    return filled((_ASSETS / "frame.html").read_text(encoding="utf-8"), parts)


def filled(template: str, parts: Mapping[str, str]) -> str:
    """Returns *template* with each `<!--name-->` replaced by the part of that name; the text of parts is left alone."""
    return re.sub(r"<!--(\w+)-->", lambda place: parts[place[1]], template)
