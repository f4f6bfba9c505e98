"""Denormal numbers: kept or flushed to zero, in every thread of a call, and nowhere else."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage, tool

from weft.native import _rt
from weft.runtime.artifact import read_artifact, write_artifact
from weft.runtime.model import Model, load
from weft.runtime.package import Denormals, Package, TensorSpec
from weft.support.dtypes import f32
from weft.support.errors import InputError

pytestmark = pytest.mark.skipif(_rt.MACHINE != "x86_64", reason="the state is that of x86-64")

SMALLEST = np.float32(np.finfo(np.float32).tiny)
STATE = """
unsigned get(void) { return __builtin_ia32_stmxcsr(); }
void set(unsigned state) { __builtin_ia32_ldmxcsr(state); }
"""
FLUSH, STICKY = 0x8040, 0x3F


def package(flat: FlatImage, denormals: Denormals = "keep") -> Package:
    return Package(
        flat.blob,
        flat.symbols["halves_plan"],
        flat.symbols["halves_main"],
        b"",
        (TensorSpec("x", f32, (2,)),),
        (TensorSpec("y", f32, (3,)),),
        readonly=flat.readonly,
        denormals=denormals,
    )


def run(model: Model) -> list[float]:
    """Returns half of the smallest normal number, which is none, as two threads computed it."""
    for _ in range(200):
        y = np.asarray(model(np.array([SMALLEST, SMALLEST])))
        if y[2] == 2 and model.threads > 1:
            break  # each by a thread of its own; elsewhere the machine is too busy for two, or has but one
    return [float(v) for v in y[:2] / SMALLEST]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ctypes.CDLL]:
    """Gives functions that get and set the state of the calling thread, which stays as it was."""
    (tmp_path / "state.c").write_text(STATE)
    tool("gcc", "-O2", "-shared", "-fPIC", tmp_path / "state.c", "-o", tmp_path / "state.so")
    library = ctypes.CDLL(str(tmp_path / "state.so"))
    library.get.restype = ctypes.c_uint
    before = library.get()
    yield library
    library.set(ctypes.c_uint(before))


def test_every_thread_of_a_call(flat: FlatImage) -> None:
    keeping, flushing = Model(package(flat)), Model(package(flat, "flush"))
    for _ in range(5):
        assert run(keeping) == [0.5, 0.5]
        assert run(flushing) == [0, 0]


@pytest.mark.parametrize("callers", [0, FLUSH, 0x8000, 0x6000], ids=["plain", "flushing", "results", "rounding"])
@pytest.mark.parametrize("denormals", ["keep", "flush"])
def test_the_state_of_the_caller(flat: FlatImage, state: ctypes.CDLL, denormals: Denormals, callers: int) -> None:
    """It neither changes what a call computes, nor is it changed; not by a call that fails either."""
    model = Model(package(flat, denormals))
    state.set(ctypes.c_uint((state.get() & ~FLUSH) | callers))
    given = state.get() & ~STICKY
    made = np.asarray(model(np.array([SMALLEST, SMALLEST])))[:2].view(np.uint32).tolist()
    assert state.get() & ~STICKY == given
    with pytest.raises(Exception, match="status 41"):
        model(np.array([-1, 1], np.float32))
    assert state.get() & ~STICKY == given
    assert made == [0 if denormals == "flush" else 0x400000] * 2


def test_a_saved_model_remembers(flat: FlatImage, tmp_path: Path) -> None:
    keeping, flushing = (replace(package(flat, d), machine=_rt.MACHINE) for d in ("keep", "flush"))
    write_artifact(keeping, tmp_path / "keep")
    write_artifact(flushing, tmp_path / "flush")
    assert read_artifact(tmp_path / "flush").denormals == "flush"
    assert run(load(tmp_path / "keep")) == [0.5, 0.5]
    assert run(load(tmp_path / "flush")) == [0, 0]
    assert run(load(tmp_path / "keep", denormals="flush")) == [0, 0]
    assert run(load(tmp_path / "flush", denormals="keep")) == [0.5, 0.5]


def test_what_there_is_not(flat: FlatImage, tmp_path: Path) -> None:
    write_artifact(package(flat), tmp_path / "m")
    with pytest.raises(InputError) as told:
        load(tmp_path / "m", denormals="drop")  # type: ignore[arg-type] # that is the point
    assert str(told.value) == 'denormals is \'drop\'\n  hint: use "keep" or "flush"'
