"""The optimizations that can be switched off, one by one: to see what each is worth, or to get around one that fails.

weft.compile(model, without=("winograd", "parallel"))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.support.arguments import check_many
from weft.support.errors import InputError

KNOBS: Final = {
    "fusion": "several operators in one kernel",
    "layout": "channels in blocks the size of a vector",
    "winograd": "convolutions with fewer multiplications",
    "prepacking": "weights rearranged while compiling, not in each call",
    "memory": "memory that is used again once its content is dead",
    "parallel": "loops shared among threads",
}
"""The name of each optimization, and what there is with it."""


def check_knobs(without: Iterable[str]) -> tuple[str, ...]:
    """Returns the names sorted, each once; raises `InputError` for one that no optimization has."""
    hint = f"use {', '.join(KNOBS)}"
    names = [without] if isinstance(without, str) else check_many("without", without, hint)
    for name in names:
        if not isinstance(name, str) or name not in KNOBS:
            raise InputError(f"there is no optimization {name!r} to do without", hint=hint)
    return tuple([name for name in sorted(KNOBS) if name in names])
