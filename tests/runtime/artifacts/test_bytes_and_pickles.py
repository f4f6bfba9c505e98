"""Saved models as bytes: loaded without a file system, and what pickles are made of."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import pickletools
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import affine, rows

from weft.runtime import Model, load
from weft.runtime.session import InferenceSession
from weft.support.errors import ArtifactError, InputError

Arrays: TypeAlias = Any


@pytest.fixture
def saved(flat: FlatImage, tmp_path: Path) -> Path:
    affine(flat).save(tmp_path / "m.weft")
    return tmp_path / "m.weft"


def same(a: Arrays, b: Arrays) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def called(model: Model) -> Arrays:
    """Runs a model, in another process."""
    return model(rows(3))


def asked(session: InferenceSession) -> Arrays:
    """Runs a session, in another process."""
    return session.run(None, {session.get_inputs()[0].name: rows(3)})


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(data + data)[: len(data)]])
def test_bytes_are_loaded(saved: Path, kind: type[bytes]) -> None:
    assert same(load(kind(saved.read_bytes()))(rows(3)), load(saved)(rows(3)))


def test_bytes_that_change_later_change_no_model(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    for shift in range(0, 64, 16):  # one of them lies where the weights could be used in place
        moved = bytearray(shift) + data
        model = load(memoryview(moved)[shift:])
        wanted = model(rows(3))
        moved[shift:] = bytes(len(data))
        assert same(model(rows(3)), wanted)


def test_a_session_of_bytes_needs_no_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    session = InferenceSession(saved.read_bytes())
    assert same(asked(session), load(saved)(rows(3)))


def test_damaged_bytes(saved: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        load(saved.read_bytes()[:-1])
    assert str(caught.value).startswith("the bytes given: the file is truncated")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            io.BytesIO(),
            "an object of type BytesIO is no saved model\n  hint: give its bytes: source.getvalue() or source.read()",
        ),
        (None, "an object of type NoneType is no saved model\n  hint: give its path or its bytes"),
        (7, "an object of type int is no saved model\n  hint: give its path or its bytes"),
    ],
)
def test_what_is_neither_path_nor_bytes(source: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(source)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_path_that_is_none() -> None:
    with pytest.raises(ArtifactError, match="is no name of a file"):
        load("a\0b")


def test_models_and_sessions_pickle(saved: Path) -> None:
    for model in (load(saved, threads=1, spinning=False), load(saved, denormals="flush")):
        for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert same(again(rows(3)), model(rows(3)))
            assert (again.threads, again.inputs) == (model.threads, model.inputs)
            assert (again.package.notes, again.package.denormals) == (model.package.notes, model.package.denormals)
            assert again._options == model._options
    session = InferenceSession(str(saved))
    again = pickle.loads(pickle.dumps(session))
    assert same(asked(again), asked(session))
    assert repr(again.get_session_options()) == repr(session.get_session_options())


def test_a_model_goes_to_a_process_that_is_spawned(saved: Path) -> None:
    model, session = load(saved), InferenceSession(str(saved))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert same(pool.apply(called, [model]), model(rows(3)))
        assert same(pool.apply(asked, [session]), model(rows(3)))


def test_a_pickle_holds_the_saved_file_which_is_checked(saved: Path) -> None:
    data, whole = pickle.dumps(load(saved)), saved.read_bytes()
    names = {
        arg for code, arg, _ in pickletools.genops(data) if code.name in ("SHORT_BINUNICODE", "BINUNICODE", "GLOBAL")
    }
    assert names == {"weft.runtime.model", "_from_bytes", "threads", "spinning"}
    assert whole in data
    damaged = data.replace(whole, whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ArtifactError, match="the bytes given: the file was altered"):
        pickle.loads(damaged)
