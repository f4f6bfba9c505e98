"""Damaged files end in an error of Weft's, or are imported; nothing else is raised."""

from __future__ import annotations

import io
import json
import random
import zipfile
from typing import Any

import pytest

pytest.importorskip("h5py")

from tests.frontends.fuzz.json_values import places
from tests.frontends.keras.saved import FOLDER, parts_of

from weft.frontends.dispatch import to_graph
from weft.support.errors import WeftError

NAMES = sorted(p.name for p in FOLDER.iterdir() if p.suffix == ".keras")
VALUES: list[Any] = [None, True, -1, 0, 3, 2**40, 0.5, "", "x", [], {}, [1, 2], [[0, 1]], {"class_name": "Dense"}]


def damaged_config(rng: random.Random) -> bytes:
    """Returns an archive of which some settings have other values, or are missing."""
    config, weights = parts_of(rng.choice(NAMES))
    for _ in range(rng.randint(1, 3)):
        where, key = rng.choice(places(config))
        if rng.random() < 0.2:
            del where[key]
        else:
            where[key] = rng.choice(VALUES)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights)
    return made.getvalue()


def damaged_bytes(rng: random.Random) -> bytes:
    """Returns an archive of which some bytes have other values, or the end is missing."""
    whole = bytearray((FOLDER / rng.choice(NAMES)).read_bytes())
    for _ in range(rng.randint(1, 8)):
        whole[rng.randrange(4, len(whole))] = rng.randrange(256)
    return bytes(whole[: rng.randrange(4, len(whole))] if rng.random() < 0.3 else whole)


def refusal(seed: int) -> WeftError | None:
    """Returns the error that a damaged model ends in; None for one that is imported."""
    rng = random.Random(seed)
    model = (damaged_bytes if seed % 4 == 0 else damaged_config)(rng)
    try:
        to_graph(model)
    except WeftError as error:
        return error
    return None


def tried(seed: int) -> None:
    error = refusal(seed)
    assert error is None or error.hint, (seed, error)


@pytest.mark.parametrize("block", range(4))
def test_damaged_models(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        tried(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_damaged_models(block: int) -> None:
    for seed in range(1000 + 500 * block, 1500 + 500 * block):
        tried(seed)
