"""Plans from tuning records. A record whose plan no longer applies, as the rules are others now, is left out with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from weft.cost import Plan, parse_plan
from weft.driver.kernel import naming
from weft.driver.kernel_request import KernelRequest
from weft.driver.recorded.best_records import BestRecords
from weft.driver.recorded.workloads import graph_workload
from weft.graph import Graph
from weft.records import Record
from weft.support.errors import LoweringError, ParseError, ScheduleError, WeftError
from weft.support.knobs import Switches
from weft.support.text import printable_line

NO_LONGER_APPLIES: Final = (ScheduleError, LoweringError)
"""The errors of carrying out a plan that was made for other rules."""


class RecordWarning(UserWarning):
    """A tuning record is ignored; its workload is compiled with the default schedule."""


def with_recorded_plan(request: KernelRequest, records: BestRecords) -> KernelRequest:
    """Returns *request* with the plan of its best record, if there is one, and it has no plan of its own."""
    if not records or request.plan is not None:
        return request
    with naming(request):
        record = records.find(request.workload)
    plan = _plan(record, f"kernel {request.name}")
    return request if plan is None else replace(request, plan=plan, record=record)


def recorded_graph_plan(graph: Graph, switches: Switches, records: BestRecords) -> tuple[Plan | None, Record | None]:
    """Returns the plan that is recorded for a graph as the model has it, and its record."""
    record = records.find(graph_workload(graph, switches).digest) if records else None
    plan = _plan(record, f"graph {graph.name}")
    return plan, None if plan is None else record


def used_records(requests: Mapping[str, KernelRequest], graph_record: Record | None, records: BestRecords) -> list[str]:
    """Returns in words which decisions of a model are from tuning records, and how many from the pack; nothing if none are."""
    kernels = [r.record for r in requests.values() if r.record is not None]
    followed = [*kernels, *([graph_record] if graph_record is not None else [])]
    if not followed:
        return []
    found = [f"{len(kernels)} of {len(requests)} kernels"] if kernels else []
    found += ["the graph"] if graph_record is not None else []
    shipped = sum(map(records.is_shipped, followed))
    return [", ".join(found) + (f" ({shipped} from the pack)" if shipped else "")]


def _plan(record: Record | None, subject: str) -> Plan | None:
    """Returns the plan of a record; None if another version of Weft wrote it, of which it warns."""
    if record is None:
        return None
    try:
        return parse_plan(record.plan)
    except ParseError as error:
        leave_out(subject, error)
        return None


def leave_out(subject: str, error: WeftError) -> None:
    """Warns that the record of *subject* is not followed, in one line."""
    cause = error.__cause__ if isinstance(error.__cause__, WeftError) else error
    told = printable_line(cause.message.partition("\n")[0])
    text = f"the tuning record of {printable_line(subject)} no longer applies and is left out: {told}"
    warnings.warn(text, RecordWarning, stacklevel=2)
