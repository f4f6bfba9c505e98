"""Entries of databases of tuning records, for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from weft.records import Entry, Hardware, Measurement, Record, Store, Workload, lines_of

HERE: Final = Hardware("a" * 40, '{"name": "Zen 4", "cores": 2}')
THERE: Final = Hardware("b" * 40, '{"name": "Cortex-A72", "cores": 4}')
PLAN: Final = "matmul: Rule(name='tiled')\n"


def matmul(*sizes: int, label: str = "matmul") -> Workload:
    """The workload of a matrix product of these sizes."""
    return Workload("kernel", f"C = A B {sizes}", "parallel lift", "a matrix product", sizes, label)


MATMUL: Final = matmul(64, 64, 64)


def record(
    seconds: float,
    workload: Workload = MATMUL,
    hardware: Hardware = HERE,
    baseline: float | None = 1.0,
    **facts: object,
) -> Record:
    """A verified record."""
    made = Record(
        workload.digest,
        hardware.digest,
        "0.1.0",
        PLAN,
        seconds,
        seconds * 0.9,
        seconds * 1.1,
        baseline,
        20,
        verified=True,
    )
    return replace(made, **facts)  # type: ignore[arg-type]


def measured(seconds: float | None, plan: str = PLAN, failure: str = "", time: float = 0.0) -> Measurement:
    """A candidate that was measured."""
    return Measurement(MATMUL.digest, HERE.digest, "0.1.0", plan, seconds, failure, time, "tests")


def text_of(path: Path) -> str:
    """All that a database holds."""
    with Store(path, read_only=True) as store:
        return "".join(lines_of(store))


_TIMES: Final = st.floats(1e-7, 10.0, allow_nan=False)
_WORKLOADS: Final = st.builds(
    matmul, st.integers(1, 3), st.integers(1, 3), label=st.sampled_from(["matmul", "dense", "ä\n'"])
)
_MACHINES: Final = st.builds(
    Hardware, st.sampled_from([HERE.digest, THERE.digest]), st.sampled_from(["{}", HERE.facts, THERE.facts])
)
_RECORDS: Final = st.builds(
    record,
    _TIMES,
    _WORKLOADS,
    _MACHINES,
    st.none() | _TIMES,
    plan=st.text(st.characters(codec="utf-8"), max_size=20),
    verified=st.booleans(),
    time=st.floats(0, 2e9),
)
_MEASUREMENTS: Final = st.builds(measured, st.none() | _TIMES, failure=st.sampled_from(["", "timeout"]))
ENTRIES: Final[st.SearchStrategy[list[Entry]]] = st.lists(_WORKLOADS | _MACHINES | _RECORDS | _MEASUREMENTS, max_size=8)
