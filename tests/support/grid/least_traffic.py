"""The least sectors that the blocks of a grid could move: each that a block touches between two barriers, once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from weft.codegen.interp.threads import thread_machine
from weft.codegen.interp.threads.grid import Grid
from weft.targets import Sight

_SHIFT = 40
"""Bits for the number of a sector, beside that of a block."""


class LeastTraffic:
    """Notes what the threads that run while it is in place touch of each buffer of global memory."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._touched: dict[str, list[Any]] = {}
        self._least: Counter[str] = Counter()
        machine, grid = thread_machine._Run, Grid
        count, pass_barrier = machine.count, grid.pass_barrier

        def counted(run: Any, memory: Any, places: Any, element: Any, **how: Any) -> None:
            if run.in_kernel and memory.sight is Sight.GRID and len(element):
                sector = element * memory.flat.itemsize // run.facts.sector
                touched = np.unique(run.grid.block[places[0]].astype(np.int64) << _SHIFT | sector)
                self._touched.setdefault(memory.buffer.name, []).append(touched)
            count(run, memory, places, element, **how)

        def passed(of: Any, blocks: Any) -> None:
            self._end_phase()
            pass_barrier(of, blocks)

        patch.setattr(machine, "count", counted)
        patch.setattr(grid, "pass_barrier", passed)

    def _end_phase(self) -> None:
        for name, touched in self._touched.items():
            self._least[name] += len(np.unique(np.concatenate(touched)))
        self._touched.clear()

    def of_buffer(self) -> Counter[str]:
        """Returns the sectors by the names of buffers."""
        self._end_phase()
        return self._least
