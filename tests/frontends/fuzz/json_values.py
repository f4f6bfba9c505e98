"""JSON of which some values are others, or are missing."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any, Final

VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    0,
    3,
    2**31,
    2**40,
    2**63,
    -(2**63),
    0.5,
    1e300,
    "",
    "x",
    "-1",
    "(3, 99999)",
    [],
    {},
    [1, 2],
    [-1],
    [[0, 1]],
    {"class_name": "Dense"},
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Returns every container in JSON with each of its keys."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict | list):
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            found += [(here, k) for k in keys]
            waiting += [here[k] for k in keys]
    return found


def change(rng: random.Random, value: Any) -> None:
    """Leaves out a value somewhere, or puts there another of the same text, or one at a border."""
    found = places(value)
    if not found:
        return
    where, key = rng.choice(found)
    kind = rng.random()
    if kind < 0.2:
        del where[key]
    elif kind < 0.6:
        where[key] = json.loads(json.dumps(_other(rng, found)))
    else:
        where[key] = deepcopy(rng.choice(VALUES))


def _other(rng: random.Random, found: list[tuple[Any, Any]]) -> Any:
    where, key = rng.choice(found)
    return where[key]


def damaged_json(rng: random.Random, data: bytes) -> bytes:
    """Returns a text of JSON with one to three values changed."""
    value = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        change(rng, value)
    return json.dumps(value).encode()
