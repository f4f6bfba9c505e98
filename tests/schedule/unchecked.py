"""Steps made without asking whether they are legal, to see which of those that are refused would have been right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from weft.loop import Block, Function
from weft.schedule.cursors.loop_nest import own_nest
from weft.schedule.cursors.primitive import PRIMITIVES
from weft.schedule.cursors.tree import Path

CHECKS = {
    "compute_at": ("_check", "check_reaching_writes", "check_output_dependences", "check_whole"),
    "compute_root": ("_check", "check_reaching_writes", "check_output_dependences", "check_whole"),
    "reverse_compute_at": (
        "_check",
        "check_reaching_writes",
        "check_output_dependences",
        "check_whole",
        "_check_moved",
    ),
    "reorder": ("_check_blocks", "_check_flow"),
    "decompose_reduction": ("_check", "_check_places"),
}
"""The functions of each primitive that only check."""


def _nothing(*_: object, **__: object) -> None:
    return None


def _own_nest(path: Path, block: Block) -> Path:
    return own_nest(path)


@contextmanager
def _without_checks(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for check in CHECKS[name]:
            instead: Callable[..., Any] = _own_nest if check == "check_whole" else _nothing
            patch.setattr(f"{PRIMITIVES[name].run.__module__}.{check}", instead)
        yield


def unchecked(fn: Function, name: str, arguments: Sequence[Any]) -> Function | None:
    """What a step would make of *fn* if nothing was checked; None if it makes no program at all."""
    if name not in CHECKS:
        return None
    with _without_checks(name):
        try:
            change, _ = PRIMITIVES[name].run(fn, *arguments)
        except Exception:
            return None
    made: Function = change.function
    return made
