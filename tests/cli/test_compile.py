"""`weft compile` writes a file that runs, or says why not and writes nothing."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import Cli

import weft


def test_the_file_runs(cli: Cli) -> None:
    done = cli("compile", "mlp.onnx", "-o", "mlp.weft")
    assert done.code == 0
    assert re.fullmatch(r"wrote mlp\.weft: [\d.]+ KB for cpu, in [\d.]+ m?s\n", done.out)
    assert done.err == ""
    x = np.load("x.npy")
    assert np.array_equal(np.asarray(weft.load("mlp.weft")(x)), np.asarray(weft.compile("mlp.onnx")(x)))


def test_json_and_quiet(cli: Cli) -> None:
    done = cli("compile", "mlp.onnx", "-o", "mlp.weft", "--json")
    figures = json.loads(done.out)
    assert done.code == 0
    assert figures.pop("seconds") > 0
    assert figures == {
        "model": "mlp.onnx", "artifact": "mlp.weft", "target": "cpu", "bytes": Path("mlp.weft").stat().st_size,
    }  # fmt: skip
    assert cli("compile", "mlp.onnx", "-o", "mlp.weft", "-q").out == ""


def test_options_reach_the_compiler(cli: Cli) -> None:
    options = [
        "--threads",
        "1",
        "--shape",
        "batch=4",
        "--target",
        "cpu -mattr=sse4",
        "-O",
        "1",
        "--precision",
        "strict",
        "--verify",
    ]
    assert cli("compile", "mlp.onnx", "-o", "mlp.weft", *options, "--no-cache").code == 0
    model = weft.load("mlp.weft")
    assert str(model.inputs[0]) == "x: f32[4, 24]"
    assert model.package.target == "cpu -mattr=sse4"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("nowhere/m", "nowhere/m can't be written: there is no folder nowhere\n  hint: make it, or choose another"),
        (".", ". can't be written: it is not a plain file\n  hint: choose another name"),
        ("/dev/full", "/dev/full can't be written: it is not a plain file\n  hint: choose another name"),
    ],
)
def test_where_no_file_can_be(cli: Cli, output: str, message: str) -> None:
    done = cli("compile", "mlp.onnx", "-o", output)
    assert (done.code, done.out, done.err) == (1, "", f"error: {message}\n")


def test_a_folder_that_may_not_be_written_in(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # root may write anywhere
    done = cli("compile", "mlp.onnx", "-o", "m")
    assert done.code == 1
    assert done.err == (
        f"error: m can't be written: you may not write in {tmp_path}\n  hint: choose another folder\n"
    )  # fmt: skip


def test_a_full_disk_leaves_what_was_there(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cli("compile", "mlp.onnx", "-o", "m")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    done = cli("compile", "conv.onnx", "-o", "m", "--no-cache")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: m can't be written: No space left on device\n  hint: choose another place\n"
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_disk_that_is_really_full(cli: Cli, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "weft", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        done = cli("compile", "mlp.onnx", "-o", disk / "m")
        left = list(disk.iterdir())
    finally:
        subprocess.run(["umount", disk], check=True)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {disk / 'm'} can't be written: No space left on device\n  hint: choose another place\n"
    assert left == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["mlp.onnx"], "Missing option '--output'"),
        (["-o", "m"], "Missing argument"),
        (["mlp.onnx", "-o", "m", "-O", "4"], "Invalid value for '--opt-level'"),
        (["mlp.onnx", "-o", "m", "--shape", "batch"], "'batch' is not of the form NAME=SIZE"),
        (["mlp.onnx", "-o", "m", "--shape", "batch=0"], "'batch=0' is not of the form NAME=SIZE"),
        (["mlp.onnx", "-o", "m", "--shape", "batch=" + "9" * 5000], "is not of the form NAME=SIZE"),
        (["mlp.onnx", "-o", "m", "--fast"], "No such option: --fast"),
    ],
)
def test_wrong_usage(cli: Cli, args: list[str], message: str) -> None:
    done = cli("compile", *args)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.replace("│", " ").split())


def test_an_unwritable_cache_is_told_and_done_without(cli: Cli, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", "compile", "dense.onnx", "-o", "m"],
        check=True, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "WEFT_CACHE_DIR": "/proc/weft"},
    )  # fmt: skip
    assert done.stdout.startswith("wrote m: ")
    assert done.stderr == (
        "warning: Weft's cache is not used: [Errno 2] No such file or directory: '/proc/weft'\n"
    )  # fmt: skip
