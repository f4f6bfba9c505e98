"""The parts that a page about tuning is put together from: sections, cards, tiles and bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.cli.tune.markup import Markup, element


@dataclass(frozen=True)
class Meter:
    """A bar: its name, the *part* of its full length, and that as a *text*; *note* stands behind the name."""

    name: str
    part: float
    text: str
    note: str = ""


def meters(rows: Sequence[Meter]) -> Markup:
    """Returns bars below one another."""
    return element("div", *[part for row in rows for part in _meter(row)], class_="meters")


def _meter(row: Meter) -> Iterator[Markup]:
    note = [" ", element("small", row.note)] if row.note else []
    yield element("span", row.name, *note)
    yield element("span", row.text, class_="number")
    yield element("div", class_="meter", style=f"--part:{row.part:.4f}")


def card(*content: str) -> Markup:
    """Returns a framed part of a page."""
    return element("div", *content, class_="card figure")


def tile(name: str, value: str, note: str) -> Markup:
    """Returns a figure with its name and a note."""
    return element("div", element("span", name), element("strong", value), element("small", note), class_="card tile")


def section(key: str, heading: str, note: str, *content: str) -> Markup:
    """Returns a section that links lead to by its *key*."""
    head = element("div", element("h2", heading), element("p", note), class_="head")
    return element("section", head, *content, id=key)
