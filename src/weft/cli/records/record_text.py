"""Tuning records as rows, as JSON, and by the keys that people type."""

from __future__ import annotations

import json
import time
from typing import Final

from weft.cli.console import human_age, human_time
from weft.records import Record, Store
from weft.support.errors import InputError

COLUMNS: Final = ("key", "takes", "x", "checked", "cores", "measured", "by", "what")

KEY: Final = 10
"""Characters of a digest that are shown."""


def label_of(record: Record, store: Store) -> str:
    """Returns the workload of a record, in words; its digest where the database does not know more."""
    workload = store.workload(record.workload)
    return record.workload if workload is None or not workload.label else workload.label


def machine_of(record: Record, store: Store) -> str:
    """Returns the machine of a record, in words."""
    known = _machine(record, store)
    name = str(known.get("name") or known.get("machine") or record.hardware)
    return f"{name}, {known['cores']} cores" if "cores" in known else name


def _machine(record: Record, store: Store) -> dict[str, object]:
    """Returns the facts of the machine of a record; none where the database has none."""
    hardware = store.hardware(record.hardware)
    try:
        found = json.loads(hardware.facts) if hardware is not None else {}
    except ValueError:  # another program wrote them
        return {}
    return found if isinstance(found, dict) else {}


def cells(record: Record, store: Store) -> list[str]:
    """Returns the cells of `COLUMNS`."""
    return [
        record.digest[:KEY],
        human_time(record.seconds),
        "-" if record.baseline is None or not record.seconds else f"{record.baseline / record.seconds:.2f}",
        "yes" if record.verified else "no",
        str(_machine(record, store).get("cores", "?")),
        human_age(time.time() - record.time),
        record.origin or "-",
        label_of(record, store),
    ]


def facts(record: Record, store: Store) -> dict[str, object]:
    """Returns a record for JSON, without its plan."""
    return {
        "key": record.digest,
        "what": label_of(record, store),
        "workload": record.workload,
        "hardware": record.hardware,
        "machine": _machine(record, store),
        "weft": record.weft,
        "backend": record.backend,
        "target": record.target,
        "threads": record.threads,
        "seconds": record.seconds,
        "low": record.low,
        "high": record.high,
        "baseline": record.baseline,
        "samples": record.samples,
        "verified": record.verified,
        "time": record.time,
        "origin": record.origin,
    }


def find_record(store: Store, key: str) -> Record:
    """Returns the record whose key begins with *key*; raises `InputError` where that is none, or several."""
    found = [r for r in store.records() if r.digest.startswith(key)]
    if len(found) == 1:
        return found[0]
    listed = f"`weft records ls {store.path}` lists them"
    if not found:
        raise InputError(f"there is no record {key!r} in {store.path}", hint=listed)
    raise InputError(f"{len(found)} records of {store.path} begin with {key!r}", hint=f"give more of it; {listed}")
