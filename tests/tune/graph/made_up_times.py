"""Machines that are made up: how long each kernel of a graph takes is told by a function, and nothing is built or run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from weft.cost import Following, Plan
from weft.driver.build import Compilation
from weft.graph import Group
from weft.tune.graph import graph_tuner
from weft.tune.graph.graph_forms import GraphForms
from weft.tune.graph.profile_beside import Beside
from weft.tune.measure import Interval

Seconds = Callable[[Group], float]


class MadeUpMachine:
    """Takes the place of what runs models; `runs` are the models that it was asked to time, the incumbent each time left out."""

    def __init__(self, seconds: Seconds, *, is_wrong: Callable[[Compilation], bool] = lambda _: False) -> None:
        self.seconds, self.is_wrong = seconds, is_wrong
        self.runs: list[Compilation] = []

    def install(self, monkeypatch: pytest.MonkeyPatch, *, is_built: bool = False) -> None:
        """Times models by what is made up; they are not built, unless they are to be used otherwise."""
        if not is_built:
            monkeypatch.setattr(GraphForms, "build", unbuilt)
        monkeypatch.setattr(graph_tuner, "ModelTimer", lambda made, *_: MadeUpTimer(self, made))
        monkeypatch.setattr(graph_tuner, "profile_beside", self.beside)
        monkeypatch.setattr(graph_tuner, "profile_alone", lambda timer, _: self.times(timer))

    def times(self, timer: MadeUpTimer) -> tuple[float, ...]:
        return tuple([self.seconds(g) for g in timer.made.fused.calls])

    def beside(self, first: MadeUpTimer, second: MadeUpTimer, _: float) -> Beside:
        self.runs.append(first.made)
        a, b = self.times(first), self.times(second)
        ratio = sum(a) / sum(b)
        return Beside(a, b, Interval(0.99 * ratio, ratio, 1.01 * ratio))


def unbuilt(forms: GraphForms, plan: Plan) -> Any:
    """What a tuner asks of a compiled model, without its code."""
    fused = forms.decided(Following(plan))
    requests = dict(zip([g.key for g in fused.calls], forms.requests_of(fused), strict=True))
    return SimpleNamespace(fused=fused, requests=requests, graph_plan=plan)


class MadeUpTimer:
    """A compiled model on a made up machine."""

    def __init__(self, machine: MadeUpMachine, made: Compilation) -> None:
        self.made = made
        self.outputs: Sequence[np.ndarray[Any, Any]] = [np.full(3, 1.0 + machine.is_wrong(made))]


def by_operator(seconds: dict[str, float]) -> Seconds:
    """Returns the times of kernels by the operator in them that has one; any other takes a microsecond."""

    def taken(group: Group) -> float:
        return max([seconds[n.op] for n in group.nodes if n.op in seconds], default=1e-6)

    return taken


def by_panel(best: int) -> Seconds:
    """Returns the times of matrix products: those by panels of *best* columns take half as long as others."""

    def taken(group: Group) -> float:
        products = [n for n in group.nodes if n.op == "matmul_packed" and n.inputs[1] is not None]
        widths = [int(getattr(n.inputs[1].shape[-1], "value", 0)) for n in products if n.inputs[1] is not None]
        return (1e-4 if best in widths else 2e-4) if widths else 1e-6

    return taken
