"""The plans that a search took for its best, measured again at length: of many short measurements the best is the luckiest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def settled(
    trials: Sequence[tuple[str, float]], at_length: Callable[[Sequence[str]], Mapping[str, float]]
) -> list[float]:
    """Return the throughputs of *trials*, plans in order with what each measured.

    *at_length* returns the throughputs of plans by a longer measurement. It is asked for each plan that is faster than all
    before it by what is known, until all of these were measured so: the others were no candidate for the best.
    """
    found: dict[str, float] = {}
    while True:
        scores = [found.get(plan, score) for plan, score in trials]
        best, asked = 0.0, dict[str, None]()
        for (plan, _), score in zip(trials, scores, strict=True):
            if score > best:
                best = score
                asked.update({} if plan in found else {plan: None})
        if not asked:
            return scores
        found |= at_length(list(asked))
