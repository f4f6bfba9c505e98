"""The process that reads bytecode: what it can't read, what ends it, and what becomes of the next module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import weft
from weft.frontends.dispatch import to_graph
from weft.frontends.jax import bytecode
from weft.frontends.jax.bytecode import BytecodeReader

HOSTILE = """
import os, signal, sys, time
from weft.support.worker_side import end_with, limit_memory, serve, take_pipes

def answer(data):
    if data == b"die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if data == b"hang":
        time.sleep(600)
    if data == b"eat":
        limit_memory(1 << 26)
        bytearray(1 << 28)
    return b"tmodule of " + data

end_with(int(sys.argv[1]))
serve(*take_pipes(), answer)
"""
"""A worker that does what it is told to."""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BytecodeReader]:
    (tmp_path / "hostile_worker.py").write_text(HOSTILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(bytecode, "MODULE", "hostile_worker")
    monkeypatch.setattr(bytecode, "find_spec", lambda name: name)
    with closing(BytecodeReader()) as reader:
        yield reader


def said(reader: BytecodeReader, data: bytes) -> str:
    with pytest.raises(weft.ModelError) as caught:
        reader.text(data, "net.mlir")
    return str(caught.value)


def test_damaged_bytecode_is_refused() -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(weft.ModelError, match="is damaged bytecode of StableHLO: failed to deserialize"):
        to_graph(b"ML\xefR\rStableHLO_v1.15.0\x00\x01%\x05\x01")


def test_a_module_that_ends_the_process_is_told_and_the_next_is_read(hostile: BytecodeReader) -> None:
    assert hostile.text(b"a", "net.mlir") == "module of a"
    assert said(hostile, b"die") == (
        "net.mlir is damaged bytecode of StableHLO: the process that read it ended: it was killed by SIGSEGV\n"
        "  hint: export the function again"
    )
    assert hostile.text(b"b", "net.mlir") == "module of b"
    assert "the process that read it ended: it ended with the status 1" in said(hostile, b"eat")


def test_a_module_that_takes_too_long(hostile: BytecodeReader, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile.text(b"a", "net.mlir")
    monkeypatch.setattr(bytecode, "SECONDS", 0.1)
    assert "net.mlir is damaged bytecode of StableHLO: it took more than 0.1 s to read" in said(hostile, b"hang")


def test_what_is_not_installed_or_does_not_start(hostile: BytecodeReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "MODULE", "no_such_module")
    with pytest.raises(weft.ToolchainError, match=r"does not start: .*No module named no_such_module"):
        hostile.text(b"a", "net.mlir")
    monkeypatch.setattr(bytecode, "find_spec", lambda name: None)
    with pytest.raises(weft.ToolchainError, match="which is bytecode, needs jaxlib"):
        hostile.text(b"a", "net.mlir")
