"""A graph laid out for drawing: boxes with their texts, and edges with the types of the tensors along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.cli.report.layered_layout import lay_out

BOX_HEIGHT: Final = 44
PILL_HEIGHT: Final = 28
LEAST_WIDTH: Final = 96
LONGEST_TITLE: Final = 34
"""Characters; the whole title is among the facts of a box."""

TITLE_UNITS: Final = 8.4
"""The width of a character of a title, as wide as common fonts of its size have it."""

NOTE_UNITS: Final = 7.6
MARGIN: Final = 26


@dataclass(frozen=True)
class Box:
    """A box: its title, a note below it, its kind of work (a colour), the calls that compute it, and its facts by name.

    Inputs and outputs of the model have the kinds "input" and "output" and are drawn as pills. *spare* is the room beside
    the note, in characters.
    """

    title: str
    note: str
    kind: str
    calls: Sequence[int] = ()
    facts: Sequence[tuple[str, str]] = ()
    spare: int = 0


@dataclass(frozen=True)
class Arrow:
    """An edge between two boxes by number; *inside* tells that one kernel holds both ends: nothing goes through memory."""

    begin: int
    end: int
    note: str
    inside: bool = False


@dataclass
class Drawing:
    """Boxes in topological order, and arrows."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def add(self, box: Box) -> int:
        """Adds a box and returns its number."""
        self.boxes.append(box)
        return len(self.boxes) - 1

    def destinations(self) -> list[list[int]]:
        """Returns, for each box that no call computes, the first calls that its values go into."""
        found: list[dict[int, None]] = [{} for _ in self.boxes]
        for a in sorted(self.arrows, key=lambda a: -a.begin):
            if not self.boxes[a.begin].calls:
                found[a.begin].update(dict.fromkeys(self.boxes[a.end].calls or found[a.end]))
        return [sorted(calls) for calls in found]

    def facts(self) -> dict[str, Any]:
        """Returns the picture as JSON knows it, in whole units: boxes by their left upper corners, edges by their points."""
        sizes = [_size(b) for b in self.boxes]
        layout = lay_out(sizes, [(a.begin, a.end) for a in self.arrows])
        into = self.destinations()
        corners = [(x - w / 2, y - h / 2) for (x, y), (w, h) in zip(layout.places, sizes, strict=True)]
        return {
            "width": round(layout.width),
            "height": round(layout.height),
            "boxes": [
                {**_box_facts(b, corner, size), "into": calls}
                for b, corner, size, calls in zip(self.boxes, corners, sizes, into, strict=True)
            ],
            "arrows": [
                {
                    "ends": [a.begin, a.end],
                    "note": a.note,
                    "inside": a.inside,
                    "points": [[round(u), round(v)] for u, v in r],
                }
                for a, r in zip(self.arrows, layout.routes, strict=True)
            ],
        }


def _box_facts(b: Box, corner: tuple[float, float], size: tuple[float, float]) -> dict[str, Any]:
    return {
        "title": b.title if len(b.title) <= LONGEST_TITLE else f"{b.title[: LONGEST_TITLE - 1]}…",
        "note": b.note,
        "kind": b.kind,
        "calls": list(b.calls),
        "facts": [list(f) for f in b.facts],
        "x": round(corner[0]),
        "y": round(corner[1]),
        "w": round(size[0]),
        "h": round(size[1]),
    }


def _size(b: Box) -> tuple[float, float]:
    title = min(len(b.title), LONGEST_TITLE) * TITLE_UNITS
    if b.kind in ("input", "output"):
        return max(LEAST_WIDTH, title + len(b.note) * NOTE_UNITS + MARGIN + 8), PILL_HEIGHT
    note = (len(b.note) + b.spare) * NOTE_UNITS
    return max(LEAST_WIDTH, max(title, note) + MARGIN), BOX_HEIGHT
