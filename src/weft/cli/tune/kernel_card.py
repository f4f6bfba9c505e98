"""The part of a page about tuning on one kernel: the course of its search, its new plan, and the knobs that mattered."""

from __future__ import annotations

from typing import Final

from weft.cli.console import human_time
from weft.cli.tune.markup import Markup, element
from weft.cli.tune.page_parts import Meter, meters
from weft.cli.tune.plan_words import Difference, plan_differences
from weft.cli.tune.search_chart import course_text, search_chart
from weft.cost import parse_plan
from weft.tune.importance import FEWEST, Importance, knob_importances
from weft.tune.measure import Interval
from weft.tune.task_tuner import Trial
from weft.tune.tasks import Task
from weft.tune.tuning_session import TuneReport

MOST_KNOBS: Final = 8
"""The knobs that are shown, of all that explain anything."""

LEAST_SHARE: Final = 0.01
"""The least share of the variance that a shown knob explains."""


def kernel_card(report: TuneReport, task: Task, number: int, *, is_open: bool) -> Markup:
    """Returns the card of a kernel that was tuned; it has the link #kernel-*number*."""
    trials = report.trials_of(task)
    return element(
        "details",
        element("summary", task.name, element("small", task.workload.label), element("small", _outcome(report, task))),
        element(
            "div",
            element("h4", "The course of the search"),
            search_chart(trials),
            element("p", *[element("span", text, class_=f"k-{key}") for key, text in KEYS.items()], class_="keys"),
            element("p", course_text(trials), class_="note"),
            *_standing(task),
            *_plan(report, task),
            *_importance(report, task),
        ),
        class_="card kernel",
        id=f"kernel-{number}",
        open=is_open,
    )


KEYS: Final = {
    "best": "best so far",
    "tried": "a candidate, measured briefly",
    "failed": "a candidate that failed",
    "incumbent": "the incumbent, the rules' schedule",
}
"""The legend of the picture's marks."""


def share_text(report: TuneReport, task: Task) -> str:
    """Returns which part of a run a kernel's calls took before."""
    whole = report.run_seconds or sum(t.seconds for t in report.tasks)
    return f"{task.seconds / whole:.1%}" if whole else "?"


def ratio_text(ratio: Interval) -> str:
    """Returns the time that is left, with its interval."""
    return f"{ratio.middle:.0%} ({ratio.low:.0%} to {ratio.high:.0%})"


def _outcome(report: TuneReport, task: Task) -> str:
    """Returns a line with the time of a kernel, and the result of tuning it."""
    trials, winner = report.trials_of(task), report.winner_of(task)
    calls = "one call" if task.calls == 1 else f"{task.calls} calls"
    about = f"{share_text(report, task)} of a run in {calls}; {len(trials)} candidates; "
    if winner is not None:
        r = winner.record
        before = "" if r.baseline is None else f"{human_time(r.baseline)} a call before, {human_time(r.seconds)} now: "
        return f"{about}{before}{ratio_text(winner.ratio)} of the time"
    if _best(trials) is None:
        return f"{about}none was faster"
    return (
        f"{about}the best was not kept: measured again, it was no faster beyond noise, or the model as a whole was not"
    )


def _best(trials: list[Trial]) -> Trial | None:
    """Returns the candidate that was fastest in the search, None if none was faster than the incumbent."""
    best = max(trials, key=lambda t: t.score)
    return best if best.score > 1 and best.outcome.built is not None else None


def _plan(report: TuneReport, task: Task) -> list[Markup]:
    """Returns the decisions of the winner, or else of the best candidate, that differ from the rules'."""
    winner, best = report.winner_of(task), _best(report.trials_of(task))
    if winner is not None:
        heading, plan = "What the winner does otherwise than the rules", winner.record.plan
    elif best is not None and best.outcome.built is not None:
        heading, plan = (
            "What the fastest candidate did otherwise than the rules; it was not kept",
            best.outcome.built.plan,
        )
    else:
        return []
    found = plan_differences(task.plan, parse_plan(plan))
    items = [element("li", *_difference(d)) for d in found]
    texts = {"The rules' plan": str(task.plan), "This plan": plan}
    both = [element("div", element("h4", name), element("pre", text)) for name, text in texts.items()]
    return [
        element("h4", heading),
        element("ul", *items, class_="plan") if items else element("p", "Nothing: the plans are the same."),
        element("details", element("summary", "Both plans, line by line"), element("div", *both), class_="plans"),
    ]


def _standing(task: Task) -> list[Markup]:
    """Returns the bound of the kernel, where it was measured."""
    if task.standing is None:
        return []
    s = task.standing
    rate = (
        f"{s.rate:.1f} GFLOP/s, {s.intensity:.1f} operations for each byte moved" if s.rate else "it moves data alone"
    )
    return [element("h4", "What bounded it before"), element("p", f"{s.bound}; {rate}.")]


def _difference(d: Difference) -> list[str]:
    return [element("b", d.question), ": ", d.answer, " ", element("small", d.subject)]


def _importance(report: TuneReport, task: Task) -> list[Markup]:
    """Returns bars of the knobs that explain most."""
    heading = element("h4", "Which choices mattered")
    try:
        found = knob_importances(report.knobs_of(task), report.trials_of(task))
    except ModuleNotFoundError:
        return [heading, element("p", UNKNOWN, class_="note")]
    shown = [i for i in found if i.share >= LEAST_SHARE][:MOST_KNOBS]
    note = EXPLAINED if shown else NOTHING if found else f"It takes {FEWEST} candidates with a time to say anything."
    bars = [meters([_meter(i) for i in shown])] if shown else []
    return [heading, *bars, element("p", note, class_="note")]


def _meter(importance: Importance) -> Meter:
    knob = importance.knob
    tried = f"{knob.address[0]}; {importance.tried} of {len(knob.domain)} alternatives tried"
    return Meter(knob.domain[0].question, importance.share, f"{importance.share:.0%}", tried)


EXPLAINED: Final = (
    "The part of the differences between candidates (the variance of the logarithm of their speed) that a choice has part in, "
    "alone or together with others: how much worse trees predict candidates that they have not seen when it is replaced by that "
    "of another candidate. Candidates that failed do not count. Several choices may have part in the same differences, so that "
    "the parts may add up to more than 100%."
)

NOTHING: Final = "No choice explains differences between the candidates so that those not seen could be predicted."
UNKNOWN: Final = "That takes XGBoost, which is not installed: the extra tune."
