"""The page of `weft tune --report`: the results and course of a session, in one file that fetches nothing and runs nothing."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from typing import Final

import weft
from weft.cli.console import human_seconds, human_time
from weft.cli.report.page_frame import framed
from weft.cli.tune.candidate_fates import FATES, count_fates
from weft.cli.tune.graph_card import graph_section
from weft.cli.tune.kernel_card import kernel_card, ratio_text, share_text
from weft.cli.tune.limit_words import part_now, part_of_limit
from weft.cli.tune.markup import Markup, element, joined
from weft.cli.tune.page_parts import Meter, card, meters, section, tile
from weft.support.text import printable
from weft.tune.measure import shares_text, stage_seconds
from weft.tune.tasks import Task
from weft.tune.tuning_session import TuneReport

SECTIONS: Final = {"candidates": "Candidates", "graph": "Layouts", "kernels": "Kernels", "time": "Time"}

STAGES: Final = {
    "parse": "reading plans",
    "schedule": "scheduling loops",
    "lower": "lowering them",
    "LLVM": "LLVM: making machine code",
    "link": "linking it",
    "inputs": "making inputs",
    "check": "comparing results with those of the unscheduled loops",
    "time": "timing, in turns with the incumbent",
}
"""The states of the processes that build and run candidates, in words."""

OPEN: Final = 6
"""Kernels whose cards are open from the first."""


def tuning_page(title: str, report: TuneReport, machine: Mapping[str, object]) -> str:
    """Returns the page about a session that tuned the model *title* on *machine*, as HTML."""
    content = (
        _summary(title, report, machine),
        _candidates(report),
        graph_section(report.graph),
        _kernels(report),
        _time(report),
    )
    body = joined(element("main", *content), element("footer", f"Weft {weft.__version__}"))
    style = (importlib.resources.files("weft.cli.tune") / "page" / "tuning.css").read_text(encoding="utf-8")
    return framed("tuning", printable(title), SECTIONS, style, body)


def _summary(title: str, report: TuneReport, machine: Mapping[str, object]) -> Markup:
    ratio, tuned = report.ratio, [t for t in report.tasks if report.trials_of(t)]
    rate = report.measured / max(report.seconds, 1e-9)
    whole = (
        ("Whole model", f"{ratio.middle:.1%}", f"of its time before ({ratio.low:.1%} to {ratio.high:.1%})")
        if ratio is not None
        else ("Whole model", "as before", "nothing was faster beyond noise than the rules' schedules")
    )
    tiles = [
        whole,
        ("Faster kernels", f"{len(report.winners)} of {len(tuned)}", "that were tuned, beyond noise, measured again"),
        ("Candidates", str(report.measured), f"{rate:.1f} a second"),
        ("Searched for", _duration(report.seconds), "the last measurements of the winners included"),
    ]
    part = part_of_limit(report)
    if part is not None:
        note = f"of what the machine can do, {part[0]:.0%} before; the limits of one core, kernel by kernel"
        tiles.append(("The kernels reach", f"{part[1]:.0%}", note))
    facts = [(k, str(machine[k])) for k in ("cpu", "machine", "system") if machine.get(k)]
    return element(
        "section",
        element("h1", title),
        element("p", *[element("span", element("i", k), v) for k, v in facts], class_="signature"),
        element("div", *[tile(*t) for t in tiles], class_="tiles"),
        element("p", f"The search ended because {report.reason}.", class_="reason"),
        id="summary",
    )


def _candidates(report: TuneReport) -> Markup:
    counts = count_fates(t for trials in report.trials.values() for t in trials)
    rows = [Meter(FATES[fate], n / sum(counts.values()), str(n)) for fate, n in counts.items()]
    note = "By their short measurement in the search. The best of each kernel was measured again, longer."
    return section("candidates", "What became of the candidates", note, card(meters(rows)))


def _time(report: TuneReport) -> Markup:
    stages = stage_seconds(t.outcome for trials in report.trials.values() for t in trials)
    whole = sum(stages.values())
    if not whole:
        return section("time", "Where the tuner's time went", "It is not known.")
    parts = {stage: seconds / whole for stage, seconds in sorted(stages.items(), key=lambda s: -s[1])}
    rows = [
        Meter(STAGES.get(s, s), part, f"{part:.0%}" if part >= 0.01 else "<1%", human_seconds(stages[s]))
        for s, part in parts.items()
    ]
    note = f"Processor time of the candidates, {human_seconds(whole)} in all: {shares_text(stages)}."
    return section("time", "Where the tuner's time went", note, card(meters(rows)))


def _kernels(report: TuneReport) -> Markup:
    """Returns a table of all kernels, and a card for each that was tuned."""
    tuned = [t for t in report.tasks if report.trials_of(t)]
    number = {id(t): n for n, t in enumerate(tuned, 1)}
    headings = (
        ("kernel", ""),
        ("of a run", "number"),
        ("before", "number wide"),
        ("after", ""),
        ("of its limit", "number"),
        ("tried", "number wide"),
    )
    head = element("tr", *[element("th", text, class_=cls, scope="col") for text, cls in headings])
    rows = [_row(report, t, number.get(id(t))) for t in report.tasks]
    table = element("table", element("thead", head), element("tbody", *rows))
    cards = [kernel_card(report, t, n, is_open=n <= OPEN) for n, t in enumerate(tuned, 1)]
    note = (
        "Times are those of one call; after: beside the schedule of the rules, in turns, with the interval of 95% confidence; of "
        "its limit: what arithmetic or memory need at least (the roofline of one core), by what the kernel takes now."
    )
    return section("kernels", "Kernels", note, card(table) if rows else element("p", "There was none to tune."), *cards)


def _row(report: TuneReport, task: Task, number: int | None) -> Markup:
    winner = report.winner_of(task)
    name = task.name if number is None else element("a", task.name, href=f"#kernel-{number}")
    after = element("span", ratio_text(winner.ratio), class_="faster") if winner is not None else "as before"
    return element(
        "tr",
        element("td", name, class_="name"),
        element("td", share_text(report, task), class_="number"),
        element("td", human_time(task.seconds / max(task.calls, 1)), class_="number wide"),
        element("td", after, class_="after"),
        element("td", "?" if (part := part_now(report, task)) is None else f"{part:.0%}", class_="number"),
        element("td", str(len(report.trials_of(task))), class_="number wide"),
    )


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else human_seconds(seconds)
