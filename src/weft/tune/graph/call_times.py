"""The times of kernels within a run of a model, by workload, stored in the database so that no session measures them twice.

They are kept apart from the times of a kernel by itself, again and again on warm caches: a workload of its own kind, `call`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import time
from typing import Final

import weft
from weft.driver.kernel_request import KernelRequest
from weft.driver.recorded.workloads import kernel_workload
from weft.records import Hardware, Measurement, Store, workload_digest

CALL: Final = "call"
"""The kind of workload of a kernel that is called in a run of a model."""

ORIGIN: Final = "graph"


class CallTimes:
    """The seconds of calls by their kernels: those in *store* for *hardware*, and added ones."""

    def __init__(self, store: Store, hardware: Hardware) -> None:
        self.store, self.hardware = store, hardware
        self._seconds: dict[tuple[str, str], float | None] = {}

    def known(self, request: KernelRequest) -> float | None:
        """Returns the seconds of a kernel in a run, None where it was not measured."""
        key = _key(request)
        if key not in self._seconds:
            kept = self.store.measurements(key[0], self.hardware.digest)
            here = [m.seconds for m in kept if m.plan == key[1] and m.weft == weft.__version__]
            self._seconds[key] = next((s for s in here if s is not None), None)
        return self._seconds[key]

    def add(self, requests: Sequence[KernelRequest], seconds: Sequence[float]) -> int:
        """Keeps the times of kernels that have none yet; returns how many."""
        new = {_key(r): (r, s) for r, s in zip(requests, seconds, strict=True) if self.known(r) is None and s > 0}
        facts = self.hardware.digest, weft.__version__
        found = [Measurement(key, *facts, plan, s, time=time(), origin=ORIGIN) for (key, plan), (_, s) in new.items()]
        workloads = [replace(kernel_workload(r), kind=CALL) for r, _ in new.values()]
        self.store.add(self.hardware, *workloads, *found)
        self._seconds.update({key: s for key, (_, s) in new.items()})
        return len(new)


def _key(request: KernelRequest) -> tuple[str, str]:
    """Returns the digest of the workload of a kernel's call, and its plan, which is empty for the rules' choice."""
    return workload_digest(CALL, request.text, request.flags), "" if request.plan is None else str(request.plan)
