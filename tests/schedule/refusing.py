"""Checking what a refusal says: what is wrong, where, and what would make the step legal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weft.support.errors import ScheduleError


def refused(attempt: Callable[[], object], what: str, at: str | None = None, hint: str | None = None) -> None:
    """Fails unless *attempt* is refused for the reason *what*, with the line *at* of the program marked, and with *hint*.

    *at* is the beginning of the marked line. A message without a mark is expected to be about no statement.
    """
    with pytest.raises(ScheduleError) as caught:
        attempt()
    first, *program = str(caught.value.message).splitlines()
    assert first.partition(" is not legal: ")[2] == what
    marked = [line.strip() for line in program if line.endswith("# <-- here")]
    assert len(marked) == (at is not None)
    assert all(line.startswith(at or "") for line in marked), marked
    assert caught.value.hint == hint
