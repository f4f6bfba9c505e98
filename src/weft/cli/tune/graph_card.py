"""The part of a page about tuning on the graph: its layouts and algorithms, the plans tried for each, and the kept one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.cli.console import human_time
from weft.cli.tune.graph_words import fastest_first, graph_sentence, question_of
from weft.cli.tune.markup import Markup, element
from weft.cli.tune.page_parts import card, section
from weft.cli.tune.plan_words import plan_differences, words_of
from weft.cost import Decision, addressed
from weft.tune.graph import Answer, GraphReport

MOST_QUESTIONS: Final = 24
"""The questions that are shown, those of the longest kernels."""

MOST_ALTERNATIVES: Final = 4
"""The alternatives that are shown of each question, the fastest."""

HEADING: Final = "Layouts and algorithms"

HEADINGS: Final = (("about", ""), ("question", ""), ("fastest alternatives", ""), ("before", ""), ("now", ""))


def graph_section(found: GraphReport | None) -> Markup:
    """Returns the section about the graph, whose plans may not have been searched."""
    if found is None:
        return section("graph", HEADING, "They were not searched.")
    head = element("tr", *[element("th", text, class_=cls, scope="col") for text, cls in HEADINGS])
    kept = found.before if found.kept is None else found.kept
    now = {(s, kind): d for (s, kind, _), d in addressed(kept.steps).items()}
    rows = [_row(a, now) for a in found.answers[:MOST_QUESTIONS]]
    table = element("table", element("thead", head), element("tbody", *rows))
    return section(
        "graph",
        HEADING,
        graph_sentence(found),
        card(table) if rows else element("p", "There was nothing to choose between."),
        *_changes(found),
    )


def _row(answer: Answer, now: Mapping[tuple[str, str], Decision]) -> Markup:
    alternatives = [f"{words_of(d)}: {human_time(s)}" for d, s in fastest_first(answer)[:MOST_ALTERNATIVES]]
    items = [element("li", text) for text in alternatives]
    kind = type(next(iter(answer.seconds))).__name__
    return element(
        "tr",
        element("td", answer.subject, class_="name"),
        element("td", question_of(answer)),
        element("td", element("ul", *items)),
        element("td", _words(answer.before)),
        element("td", _words(now.get((answer.subject, kind)))),
    )


def _words(decision: Decision | None) -> str:
    return "no such choice" if decision is None else words_of(decision)


def _changes(found: GraphReport) -> list[Markup]:
    """Returns the differences between the kept plan and the one before."""
    if found.kept is None:
        return []
    items = [
        element("li", element("b", d.question), ": ", d.answer, " ", element("small", d.subject))
        for d in plan_differences(found.before, found.kept)
    ]
    return [element("h4", "What the new plan does otherwise"), element("ul", *items, class_="plan")]
