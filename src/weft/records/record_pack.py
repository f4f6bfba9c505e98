"""Packs of records: the plans that are known to be faster on one kind of machine, as text, to be shipped and reviewed.

{"weft_pack": 1, "hardware": "bac8...", "facts": {"name": "Intel(R) Xeon(R) Processor", "cores": 2, ...}}
{"workload": "9c...", "for": "matmul f32[64, 1024] ...", "seconds": 2.41e-05, ..., "plan": ["matmul: Tile(...)", ...]}

A file holds the records of one machine and is named by its digest. A line is read when its workload is asked for; one that can't
be read, or whose record is no winner, is passed over: no compilation fails for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from weft.records.record import Hardware, Record, read_fields
from weft.records.store import Store
from weft.support.errors import RecordsError

FOLDER: Final = "WEFT_PACK_DIR"
"""The environment variable that names another folder of packs; set to nothing, it has no pack used."""

SHIPPED: Final = Path(__file__).parent / "packs"
"""The packs that come with Weft."""

HEAD: Final = "weft_pack"
VERSION: Final = 1
"""Counts up when the lines change: packs of other versions are not used."""

LEAST_GAIN: Final = 0.01
"""The part of the incumbent's time that a record's interval is to be below it by: machines of a kind differ by less."""

_KEPT: Final = (
    "seconds",
    "low",
    "high",
    "baseline",
    "samples",
    "threads",
    "target",
    "weft",
    "backend",
    "time",
    "origin",
)
"""The fields of a record in a line, in order, beside its workload and plan; its trace, which is long, is left out."""

_SECONDS: Final = ("seconds", "low", "high", "baseline")
DIGITS: Final = 4
"""Significant digits of times: more are noise."""


def pack_folder() -> Path | None:
    """Returns the folder of packs; None where the environment says that there is none."""
    given = os.environ.get(FOLDER)
    if given is None:
        return SHIPPED
    return Path(given) if given else None


class Pack:
    """The records for the machine of digest *hardware* in *folder*; empty where there is no pack, or it can't be read."""

    def __init__(self, hardware: str, folder: Path | None) -> None:
        self.hardware = hardware
        self.path = None if folder is None or not hardware else folder / f"{hardware}.jsonl"
        self._lines = _lines_by_workload(self.path)

    def __bool__(self) -> bool:
        """Tells whether there are records."""
        return bool(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def best(self, workload: str) -> Record | None:
        """Returns the record of a workload, if there is one whose time is below the incumbent's beyond noise."""
        line = self._lines.get(workload)
        if line is None:
            return None
        try:
            record = _record(json.loads(line), self.hardware)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return record if record.workload == workload and is_clear_win(record) else None

    def unusable(self) -> list[str]:
        """Returns the workloads whose lines can't be used."""
        return [w for w in self._lines if self.best(w) is None]


def is_clear_win(record: Record, least_gain: float = 0.0) -> bool:
    """Tells whether a record is verified, and its whole interval below its incumbent's time, by *least_gain* of that at least."""
    is_compared = record.verified and record.baseline is not None
    return is_compared and record.high < (record.baseline or 0.0) * (1 - least_gain)


def winners_of(store: Store, hardware: str) -> list[Record]:
    """Returns the best clear win of each workload that *store* has for a machine, in the order of the workloads' digests."""
    found: dict[str, Record] = {}
    for record in store.records():  # the best first
        if record.hardware == hardware and is_clear_win(record, LEAST_GAIN):
            found.setdefault(record.workload, record)
    return [found[w] for w in sorted(found)]


def machines_with_winners(store: Store) -> list[Hardware]:
    """Returns the machines that *store* has clear wins for."""
    digests = {r.hardware for r in store.records() if is_clear_win(r, LEAST_GAIN)}
    known = [store.hardware(d) for d in sorted(digests)]
    return [h for h in known if h is not None]


def pack_lines(store: Store, hardware: Hardware, records: Iterable[Record]) -> Iterator[str]:
    """Yields the lines of a pack of *records* of a machine, whose labels *store* has."""
    facts = json.loads(hardware.facts)
    yield json.dumps({HEAD: VERSION, "hardware": hardware.digest, "facts": facts}) + "\n"
    for r in records:
        workload = store.workload(r.workload)
        label = "" if workload is None else workload.label
        yield json.dumps({"workload": r.workload, "for": label, **_kept(r), "plan": r.plan.splitlines()}) + "\n"


def _kept(record: Record) -> dict[str, object]:
    return {n: _rounded(n, getattr(record, n)) for n in _KEPT}


def _rounded(name: str, value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if name in _SECONDS and isinstance(value, float) else value


def _record(read: Mapping[str, Any], hardware: str) -> Record:
    """Returns the record of a line; raises `ValueError`, `TypeError` or `KeyError` for one that has none."""
    kept = read_fields(Record, {name: read[name] for name in ("workload", *_KEPT)})
    plan = "".join([f"{line}\n" for line in read["plan"]])
    return Record(hardware=hardware, plan=plan, verified=True, **kept)


def _lines_by_workload(path: Path | None) -> dict[str, str]:
    """Returns the lines of a pack, not yet read, by their workloads; none where the file is none of this machine's."""
    if path is None:
        return {}
    try:
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        read = json.loads(head)
        if read[HEAD] != VERSION or read["hardware"] != path.stem:
            return {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
    return {_workload_in(line): line for line in lines if line}


def _workload_in(line: str) -> str:
    """Returns the workload with which a line begins; the line itself, which no workload is called, where it does not."""
    before, _, rest = line.partition('{"workload": "')
    return line if before or not rest else rest.partition('"')[0]


def no_winners(store: Store) -> RecordsError:
    """Returns the error for a database that has nothing for a pack."""
    return RecordsError(
        f"{store.path} has no record that is faster than its incumbent beyond noise",
        hint=f"a pack holds verified records whose whole interval is {LEAST_GAIN:.0%} or more below the incumbent's"
        " time; tune for longer, with --minutes",
    )
