"""The outcomes of the candidates of a search, by kind and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.tune.measure import Failed
from weft.tune.task_tuner import Trial

FATES: Final = {
    "faster": "faster than the incumbent beyond noise",
    "alike": "not faster beyond noise",
    "early": "clearly slower, and measured no further",
    "plan": "not to be built: the loops can't follow the plan",
    "error": "not to be built: an error of the compiler",
    "wrong": "wrong: other results than those of the unscheduled loops",
    "raised": "ended with an error of the kernel itself",
    "memory": "out of memory",
    "timeout": "stopped, since it took too long",
    "crash": "crashed, and its process with it",
}
"""The kinds of fates in words, those of candidates that have a time first."""


def fate_of(trial: Trial) -> str:
    """Returns the kind of a candidate's outcome, one of `FATES`."""
    result = trial.outcome.result
    if isinstance(result, Failed):
        return result.kind
    if result.is_early:
        return "early"
    return "faster" if result.ratio.high < 1 else "alike"


def count_fates(trials: Iterable[Trial]) -> dict[str, int]:
    """Returns the number of candidates by outcome, in the order of `FATES`, without outcomes of none."""
    counts = dict.fromkeys(FATES, 0)
    for t in trials:
        counts[fate_of(t)] += 1
    return {fate: n for fate, n in counts.items() if n}
