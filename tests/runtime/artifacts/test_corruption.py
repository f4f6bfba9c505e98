"""Damaged artifacts: every one is refused, or is the same model; none, however made, can make the loader misbehave."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.artifacts.fuzz_load import fuzz
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import affine

from weft.native import _rt
from weft.runtime.artifact import write_artifact


@pytest.fixture(scope="module")
def artifact(flat: FlatImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifact") / "affine.weft"
    write_artifact(affine(flat).package, path)
    return path


def contents(found: _rt.Artifact) -> tuple[object, ...]:
    parts = bytes(memoryview(found.image)), bytes(memoryview(found.constants))
    return (*parts, found.plan, found.main, found.inputs, found.outputs, found.checks, found.notes)


def test_every_damaged_byte_is_refused_or_padding(artifact: Path) -> None:
    data = artifact.read_bytes()
    whole = np.frombuffer(data, np.uint8)
    image_at, image_bytes, constants_at = (struct.unpack_from("<Q", data, at)[0] for at in (40, 48, 80))
    padding = range(image_at + image_bytes, constants_at)
    wanted = contents(_rt.Artifact(whole, 1))
    for at in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            altered = whole.copy()
            altered[at] ^= flip
            if at in padding:
                assert contents(_rt.Artifact(altered, 1)) == wanted
                continue
            with pytest.raises(_rt.LoadError):
                _rt.Artifact(altered, 1)


def test_every_truncation_is_refused(artifact: Path) -> None:
    whole = np.frombuffer(artifact.read_bytes(), np.uint8)
    for size in range(len(whole)):
        with pytest.raises(_rt.LoadError):
            _rt.Artifact(whole[:size], 1)


def test_a_late_size_of_an_input_is_refused(flat: FlatImage, tmp_path: Path) -> None:
    """Only outputs may have one: their data is not looked at before the call."""
    package = affine(flat).package
    late = [replace(s, shape=("found",) * len(s.shape), late=True) for s in package.inputs]
    write_artifact(replace(package, inputs=tuple(late)), tmp_path / "late.weft")
    with pytest.raises(_rt.LoadError, match="what it says of itself is impossible"):
        _rt.Artifact(str(tmp_path / "late.weft"), 1)


def test_mutations_with_right_checksums_do_no_harm(artifact: Path, tmp_path: Path) -> None:
    loaded, refused = fuzz(artifact, tmp_path, 5_000)
    assert loaded + refused == 5_000
    assert min(loaded, refused) > 300


@pytest.mark.slow
def test_a_hundred_thousand_mutations_of_a_large_artifact_do_no_harm(flat: FlatImage, tmp_path: Path) -> None:
    package = affine(flat).package
    weights = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)
    rows = {n: f"check {n} of {{0}} and {{1}}" for n in range(500)}
    fields = {**vars(package), "constants": weights, "asserts": rows, "notes": {"memory": "row\n" * 5_000}}
    write_artifact(type(package)(**fields), tmp_path / "large.weft")
    loaded, refused = fuzz(tmp_path / "large.weft", tmp_path, 100_000)
    assert loaded + refused == 100_000
    assert min(loaded, refused) > 5000
