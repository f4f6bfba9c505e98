"""Tuning records as text, an entry a line, to be read, compared and kept under version control.

{"weft_records": 1}
{"table": "hardware", "digest": "3f...", "facts": "{...}"}
{"table": "record", "digest": "a1...", "workload": "9c...", "plan": "matmul: Tile(...)\\n", ...}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from weft.records.database import VERSION
from weft.records.record import NAMES, TABLES, Entry, columns, entry_of, values
from weft.records.store import Store
from weft.support.errors import RecordsError

HEAD: Final = "weft_records"

_HINT: Final = "give a file that `weft records export` wrote"


def lines_of(store: Store) -> Iterator[str]:
    """Yields the lines of all that *store* has, always in the same order."""
    yield json.dumps({HEAD: VERSION}) + "\n"
    for e in store.entries():
        kind = type(e)
        yield json.dumps({"table": NAMES[kind], **dict(zip(columns(kind), values(e), strict=True))}) + "\n"


def add_lines(store: Store, lines: Iterable[str | bytes], name: str) -> int:
    """Adds the entries in *lines* of the file *name*, all or nothing; returns how many entries were not there yet.

    Raises `RecordsError` naming the line that is none of an export's.
    """
    return store.add(*_entries(lines, name))


def _entries(lines: Iterable[str | bytes], name: str) -> Iterator[Entry]:
    """Yields the entries; the first line is the version, which a file that was cut at its beginning lacks."""
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            read = json.loads(line)
            if not isinstance(read, dict):
                raise ValueError("it is no object")
            if number > 1:
                yield _entry(read)
            elif read.get(HEAD) != VERSION:
                raise ValueError(f"the first line is {json.dumps({HEAD: VERSION})}")
        except (ValueError, RecursionError) as error:
            raise RecordsError(f"line {number} of {name} is none of tuning records: {error}", hint=_HINT) from None
    if number == 0:
        raise RecordsError(f"{name} is empty", hint=_HINT)


def _entry(read: dict[str, Any]) -> Entry:
    kind = TABLES.get(str(read.pop("table", None)))
    if kind is None:
        raise ValueError(f"its table is none of {', '.join(TABLES)}")
    names = columns(kind)
    if set(read) != set(names):
        raise ValueError(f"a {NAMES[kind]} has the fields {', '.join(names)}")
    made: Entry = entry_of(kind, [read[n] for n in names])  # type: ignore[type-var]
    return made
