"""The results of a session for the graph, its layouts and algorithms, in words and as facts for JSON."""

from __future__ import annotations

from weft.cli.console import human_count, human_time
from weft.cli.tune.plan_words import plan_differences, words_of
from weft.cost import Decision
from weft.tune.graph import Answer, GraphReport


def graph_sentence(found: GraphReport) -> str:
    """Returns a few sentences on the plans tried for the graph, the kept one, and the quality of the earlier choices."""
    tried = sum(len(a.seconds) for a in found.answers)
    searched = (
        f"Layouts and algorithms: tried {human_count(len(found.trials), 'plan')} in {human_time(found.seconds)}, which measured "
        f"{human_count(tried, 'alternative')} of {human_count(len(found.answers), 'question')}; {found.reason}."
    )
    return f"{searched} {kept_sentence(found)}"


def kept_sentence(found: GraphReport) -> str:
    """Returns the sentence about the kept plan, or the reason that none was."""
    if found.kept is None or found.ratio is None:
        return (
            "Kept those before, since no plan made the model faster beyond noise: algorithm by algorithm, they take at most "
            f"{found.regret:.1%} of a run more than the fastest that were measured."
        )
    changes = len(plan_differences(found.before, found.kept))
    r = found.ratio
    of_before = f"{r.middle:.1%} of the time before ({r.low:.1%} - {r.high:.1%})"
    return f"Kept a plan with {human_count(changes, 'other choice')}: {of_before}."


def graph_facts(found: GraphReport) -> dict[str, object]:
    """Returns the results for the graph, for JSON; times in seconds."""
    kept, ratio = found.kept, found.ratio
    changes = [] if kept is None else plan_differences(found.before, kept)
    return {
        "plans": len(found.trials),
        "seconds": found.seconds,
        "stopped": found.reason,
        "kept": kept is not None,
        "ratio": None if ratio is None else ratio.middle,
        "ratio_low": None if ratio is None else ratio.low,
        "ratio_high": None if ratio is None else ratio.high,
        "regret": found.regret,
        "changes": [
            {"about": d.subject, "question": d.question, "before": d.before, "after": d.after} for d in changes
        ],
        "questions": [_question(a) for a in found.answers],
    }


def _question(answer: Answer) -> dict[str, object]:
    return {
        "about": answer.subject,
        "question": question_of(answer),
        "before": None if answer.before is None else words_of(answer.before),
        "seconds": {words_of(d): s for d, s in fastest_first(answer)},
    }


def question_of(answer: Answer) -> str:
    """Returns the question in words."""
    return next(iter(answer.seconds)).question


def fastest_first(answer: Answer) -> list[tuple[Decision, float]]:
    """Returns the alternatives that could be measured with their seconds, the fastest first."""
    measured = [(d, s) for d, s in answer.seconds.items() if s != float("inf")]
    return sorted(measured, key=lambda found: found[1])
