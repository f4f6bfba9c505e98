"""What was measured of a layer's plans, kept in files: no plan is measured twice on a machine, in one process."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from weft.driver.hardware import hardware_of
from weft.targets import Target
from weft.tune.measure import Outcome

FOLDER = Path(__file__).parent / "cache"


class Memory:
    """The outcomes of a layer's plans by the plans' texts, without code and single times.

    *part* names the file of *folder* that this process writes; those of other parts are read where this one knows nothing, so
    that processes side by side share a folder.
    """

    def __init__(self, layer: str, target: Target, folder: Path = FOLDER, part: str = "") -> None:
        name = f"tuner-{layer}-{hardware_of(target).digest[:12]}"
        self.path = folder / f"{name}{part and '-'}{part}.pickle"
        self._own: dict[str, Outcome] = {}
        self._others: dict[str, Outcome] = {}
        for path in sorted(folder.glob(f"{name}*.pickle")):
            (self._own if path == self.path else self._others).update(pickle.loads(path.read_bytes()))

    @property
    def known(self) -> dict[str, Outcome]:
        """All outcomes, this part's own where others differ."""
        return self._others | self._own

    @property
    def best(self) -> float:
        """The throughput of the best plan known, relative to the rules' schedule."""
        return max(1.0 / o.measured.ratio.middle for o in self.known.values() if o.measured is not None)

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Keeps the results of *outcomes*."""
        self._own.update({o.plan: _brief(o) for o in outcomes})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_bytes(pickle.dumps(self._own))
        new.replace(self.path)  # whoever reads it meanwhile finds the last one whole


def _brief(outcome: Outcome) -> Outcome:
    """Returns *outcome* with its result alone, and of times only their ratio."""
    if outcome.measured is None:
        return replace(outcome, built=None, result=replace(outcome.result, stages=()))
    return replace(outcome, built=None, result=replace(outcome.measured, times=(), incumbent=(), stages=()))
