"""The entries of a database of tuning records: frozen values of numbers and texts, each with a digest that identifies it.

This layer knows plans, programs and machines as texts alone: their meaning is known to `driver` and `tune`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

from weft.support.digest import digest

KERNEL: Final = "kernel"
GRAPH: Final = "graph"
"""The kinds of workloads: a kernel's loops, and a whole graph as the model has it."""


@dataclass(frozen=True)
class Hardware:
    """A machine that was measured on: the `digest` that identifies it, and *facts* to be read, a JSON object."""

    digest: str
    facts: str = "{}"


@dataclass(frozen=True)
class Workload:
    """The computation that a plan schedules.

    *text* is all of it but names, *flags* the other inputs of code generation (`parallel lift`, `precision=model`). Workloads of
    one *structure* differ in *sizes* alone: `structure` is a digest of the text with its integers taken out, and *sizes* are
    these in order. *label* is for people, such as `matmul f32[128, 768] f32[768, 768]`.
    """

    kind: str
    text: str
    flags: str = ""
    structure: str = ""
    sizes: tuple[int, ...] = ()
    label: str = ""

    @cached_property
    def digest(self) -> str:
        """The digest by which records refer to it: of its kind, text and flags."""
        return workload_digest(self.kind, self.text, self.flags)


def workload_digest(kind: str, text: str, flags: str) -> str:
    """Returns the digest of a workload, see `Workload`."""
    return digest(kind, text, flags)


@dataclass(frozen=True)
class Record:
    """A plan for a workload, and the time that it takes on a machine.

    *workload* and *hardware* are digests; *weft* and *backend* the versions that made the code; *target* and *threads* those of
    the measurement. *plan* and *trace* are texts of a plan and of the steps that it led to. *seconds* is the median of *samples*
    times, *low* and *high* its confidence interval; *baseline* is the median of the incumbent, measured in turns with it (None:
    there was none). *verified* tells that its results were compared with those of the incumbent. *time* is when it was
    measured (seconds since 1970), *origin* the tuner that found it.
    """

    workload: str
    hardware: str
    weft: str
    plan: str
    seconds: float
    low: float
    high: float
    baseline: float | None = None
    samples: int = 1
    verified: bool = False
    threads: int = 1
    backend: str = ""
    target: str = "cpu"
    trace: str = "[]"
    time: float = 0.0
    origin: str = ""

    @cached_property
    def digest(self) -> str:
        """The digest of all fields, so that the same record is kept once however often it is merged."""
        return digest("record", *_content(self))


@dataclass(frozen=True)
class Measurement:
    """A candidate that was measured: its *seconds*, or the kind of its *failure* (`timeout`, `crash`, `wrong`), else empty.

    All of them are kept: a search that is resumed measures none twice, but for failures that may be the machine's, and cost
    models learn from them.
    """

    workload: str
    hardware: str
    weft: str
    plan: str
    seconds: float | None = None
    failure: str = ""
    time: float = 0.0
    origin: str = ""

    @cached_property
    def digest(self) -> str:
        """The digest of all fields."""
        return digest("measurement", *_content(self))

    @property
    def is_worth_a_retry(self) -> bool:
        """Whether the candidate failed as one does on a machine that is busy or full, so that another try may succeed."""
        return self.failure in ("timeout", "crash", "memory")

    @cached_property
    def plan_digest(self) -> str:
        """The digest of the plan alone, by which a candidate is looked up."""
        return digest(self.plan)


Entry: TypeAlias = Hardware | Workload | Record | Measurement
E = TypeVar("E", Hardware, Workload, Record, Measurement)
Value: TypeAlias = str | int | float | None
"""The types of fields as SQLite and JSON store them."""

TABLES: Final[Mapping[str, type[Entry]]] = {
    "hardware": Hardware,
    "workload": Workload,
    "record": Record,
    "measurement": Measurement,
}
"""The tables of a database, in an order in which none refers to one after it."""

NAMES: Final = {kind: name for name, kind in TABLES.items()}


def columns(kind: type[Entry]) -> list[str]:
    """Returns the names of the columns of an entry's table: its digest, then its other fields."""
    return ["digest", *[f.name for f in fields(kind) if f.name != "digest"]]


def values(entry: Entry) -> list[Value]:
    """Returns the fields of *entry* in the order of `columns`, as SQLite and JSON store them."""
    return [entry.digest, *_content(entry)]


def _content(entry: Entry) -> list[Value]:
    """Returns the fields but for the digest; numbers of NumPy become Python's."""
    found = [(getattr(entry, f.name), str(f.type)) for f in fields(entry) if f.name != "digest"]
    return [None if v is None else _WRITERS[kind](v) for v, kind in found]


def entry_of(kind: type[E], given: Sequence[Any]) -> E:
    """Returns the entry whose `values` are *given*.

    Raises `ValueError` for values of other types, and where the digest is not that of the rest.
    """
    names = columns(kind)
    if len(given) != len(names):
        raise ValueError(f"a {NAMES[kind]} has {len(names)} fields, not {len(given)}")
    read = read_fields(kind, dict(zip(names, given, strict=True)))
    made = kind(**{f.name: read[f.name] for f in fields(kind)})
    if made.digest != read["digest"]:
        raise ValueError(f"the digest of a {NAMES[kind]} is not that of its fields")
    return made


def read_fields(kind: type[Entry], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns fields of an entry from their stored values in SQLite or JSON; raises `ValueError` for values of other types."""
    kinds = {"digest": "str", **{f.name: str(f.type) for f in fields(kind)}}
    return {name: _READERS[kinds[name]](name, value) for name, value in given.items()}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, which is no text")
    return value


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, which is no whole number")
    return value


def _number(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value!r}, which is no number, 0 or more")
    return float(value)


def _number_or_none(name: str, value: object) -> float | None:
    return None if value is None else _number(name, value)


def _truth(name: str, value: object) -> bool:
    if value not in (0, 1):
        raise ValueError(f"{name} is {value!r}, neither 0 nor 1")
    return bool(value)


def _sizes(name: str, value: object) -> tuple[int, ...]:
    read = json.loads(_text(name, value))
    if not isinstance(read, list):
        raise ValueError(f"{name} is {value!r}, which is no list")
    return tuple([_whole(name, v) for v in read])


_WRITERS: Final[Mapping[str, Callable[[Any], Value]]] = {
    "str": str,
    "int": int,
    "float": float,
    "float | None": float,
    "bool": int,
    "tuple[int, ...]": lambda sizes: json.dumps([int(v) for v in sizes]),
}
"""How a field is stored, by its type."""

_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "str": _text,
    "int": _whole,
    "float": _number,
    "float | None": _number_or_none,
    "bool": _truth,
    "tuple[int, ...]": _sizes,
}
"""How a field is read, by its type."""
