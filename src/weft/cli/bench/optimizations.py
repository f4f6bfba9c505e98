"""The optimizations that a model's code has: knobs, passes that changed it, and decisions with a plain alternative.

A knob is what users know by a name (`support.knobs`). A pass is an optimization of a model where it changed the graph, or the
loops of a kernel. A decision is one where the program as it is was among the candidates, and another was cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from weft.cli.plan_text import questions_of
from weft.codegen import backend_of
from weft.cost import Candidate, Parallel, Question, cheapest
from weft.driver.build import Compilation
from weft.graph import GRAPH_PASSES
from weft.lower import passes_for
from weft.support.knobs import KNOBS
from weft.support.passes import Pass

Kind = Literal["knob", "graph pass", "loop pass", "decision"]


@dataclass(frozen=True)
class Optimization:
    """An optimization that code can be made without: its name, and what it is in a few words."""

    kind: Kind
    name: str
    meaning: str

    @property
    def without(self) -> tuple[str, ...]:
        """The knobs that switch it off (`CompileOptions.without`)."""
        return (self.name,) if self.kind == "knob" else ()

    @property
    def passes(self) -> tuple[str, ...]:
        """The settings of passes that switch it off (`CompileOptions.passes`)."""
        return (f"{self.name}=off",) if self.kind in ("graph pass", "loop pass") else ()

    def choose(self, candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        """Chooses the plain candidate, if there is one, of the decision that it is; of all others the cheapest."""
        plain = [c for c in candidates if type(c.decision).__name__ == self.name and c.decision.is_plain]
        return plain[0] if plain else cheapest(candidates)


def knobs() -> list[Optimization]:
    """Returns the knobs, which every model may be compiled without."""
    return [Optimization("knob", k.name, k.meaning) for k in KNOBS.values()]


def optimizations_of(made: Compilation) -> list[Optimization]:
    """Returns the passes that changed a model, compiled without a cache of kernels, and the decisions that were not plain."""
    changed = {(s.kind, s.name) for s in made.spans if s.facts.get("changed")}
    own: list[Pass[Any, Any]] = [Pass(*p) for p in backend_of(made.target).passes(made.target)]
    loops: list[Pass[Any, Any]] = [*passes_for(made.target), *own]
    return [
        *[Optimization("graph pass", n, "a pass over the graph") for n in _ran(GRAPH_PASSES, "graph pass", changed)],
        *[Optimization("loop pass", n, "a pass over loops") for n in _ran(loops, "pass", changed)],
        *_decisions(_questions(made)),
    ]


def _ran(passes: Iterable[Pass[Any, Any]], kind: str, changed: set[tuple[str, str]]) -> list[str]:
    return [p.name for p in passes if p.may_be_skipped and (kind, p.name) in changed]


def _questions(made: Compilation) -> Iterator[Question]:
    yield from made.choices
    for key, request in made.requests.items():
        yield from questions_of(request, made.target_of(key))


def _decisions(questions: Iterable[Question]) -> list[Optimization]:
    """Returns those with a plain alternative; of the knob that keeps loops serial, the decision says nothing more."""
    found = {
        type(q.chosen.decision): None
        for q in questions
        if not q.chosen.decision.is_plain and any(c.decision.is_plain for c in q.candidates)
    }
    return [Optimization("decision", d.__name__, d.question) for d in found if d is not Parallel]
