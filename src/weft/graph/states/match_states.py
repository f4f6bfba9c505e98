"""Which inputs and outputs of a graph are states, by patterns of their names: `past_*` becomes `present_*`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from weft.graph.core.graph import Graph
from weft.support.errors import ModelError

GIVE = 'give names of the model, such as state={"past_*": "present_*"}: each * stands for any text, the same in both'


def match_states(graph: Graph, patterns: Mapping[str, str]) -> dict[int, int]:
    """Returns, for the number of each input that is a state, that of its output, in the order of the inputs.

    Raises `ModelError` for a pattern that no input matches, an output that there is not, and one that is matched twice.
    """
    inputs, outputs = [v.name for v in graph.inputs], graph.output_names
    found: dict[int, int] = {}
    for taken, left in patterns.items():
        matches = [(n, m) for n, name in enumerate(inputs) if (m := _matched(taken, name)) is not None]
        if not matches:
            raise ModelError(f"no input is called {taken}, which is to be a state", hint=_of("inputs", inputs))
        if taken.count("*") != left.count("*"):
            raise ModelError(f"{taken} and {left} have different numbers of *", hint=GIVE)
        for n, parts in matches:
            name = _filled(left, parts)
            if n in found:
                raise ModelError(f"the input {inputs[n]} is matched twice, at last by {taken}", hint=GIVE)
            if name not in outputs:
                where = f"the input {inputs[n]} is to become the output {name}, which there is not"
                raise ModelError(where, hint=_of("outputs", outputs))
            found[n] = outputs.index(name)
    for n, output in found.items():
        twice = [inputs[k] for k in found if found[k] == output and k != n]
        if twice:
            raise ModelError(f"both {inputs[n]} and {twice[0]} are to become the output {outputs[output]}", hint=GIVE)
    return dict(sorted(found.items()))


def matching(patterns: Mapping[str, int], name: str) -> tuple[str, int] | None:
    """Returns the first of *patterns* that *name* matches, and the number given with it."""
    return next(((p, n) for p, n in patterns.items() if _matched(p, name) is not None), None)


def is_matched(patterns: Iterable[str], name: str) -> bool:
    """Tells whether *name* matches one of *patterns*."""
    return any(_matched(p, name) is not None for p in patterns)


def _matched(pattern: str, name: str) -> Sequence[str] | None:
    found = re.fullmatch("(.*)".join(map(re.escape, pattern.split("*"))), name, re.DOTALL)
    return None if found is None else found.groups()


def _filled(pattern: str, parts: Sequence[str]) -> str:
    pieces = pattern.split("*")
    return "".join(a + b for a, b in zip(pieces, [*parts, ""], strict=True))


def _of(kind: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"the model's {kind} are {shown}" if names else f"the model has no {kind}"
