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
from weft.cli.compile_options import MEASURING
from weft.targets import cpuinfo, listed_core


def test_the_file_runs(cli: Cli) -> None:
    done = cli("compile", "mlp.onnx", "-o", "mlp.weft")
    assert done.code == 0
    assert re.fullmatch(r"wrote mlp\.weft: [\d.]+ KiB for cpu, in [\d.]+ m?s\n", done.out)
    assert done.err == ""
    x = np.load("x.npy")
    assert np.array_equal(np.asarray(weft.load("mlp.weft")(x)), np.asarray(weft.compile("mlp.onnx")(x)))


def test_json_and_quiet(cli: Cli) -> None:
    done = cli("compile", "mlp.onnx", "-o", "mlp.weft", "--json")
    figures = json.loads(done.out)
    assert done.code == 0
    assert figures.pop("seconds") > 0
    assert figures == {
        "model": "mlp.onnx",
        "artifact": "mlp.weft",
        "target": "cpu",
        "bytes": Path("mlp.weft").stat().st_size,
    }
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
    done = cli("compile", "mlp.onnx", "-o", "m.weft")
    assert done.code == 1
    assert done.err == (
        f"error: m.weft can't be written: you may not write in {tmp_path}\n  hint: choose another folder\n"
    )


def test_a_full_disk_leaves_what_was_there(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cli("compile", "mlp.onnx", "-o", "m.weft")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    done = cli("compile", "conv.onnx", "-o", "m.weft", "--no-cache")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: m.weft can't be written: No space left on device\n  hint: choose another place\n"
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
        done = cli("compile", "mlp.onnx", "-o", disk / "m.weft")
        left = list(disk.iterdir())
    finally:
        subprocess.run(["umount", disk], check=True)
    assert (done.code, done.out) == (1, "")
    assert (
        done.err
        == f"error: {disk / 'm.weft'} can't be written: No space left on device\n  hint: choose another place\n"
    )
    assert left == []


def test_denormals(cli: Cli) -> None:
    assert cli("compile", "dense.onnx", "-o", "d.weft", "--denormals", "flush").code == 0
    assert weft.load("d.weft").package.denormals == "flush"
    wrong = cli("compile", "dense.onnx", "-o", "d.weft", "--denormals", "no")
    assert (wrong.code, wrong.err) == (1, 'error: denormals is \'no\'\n  hint: use "keep" or "flush"\n')


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["mlp.onnx"], "Missing option '--output'"),
        (["-o", "m"], "Missing argument"),
        (["mlp.onnx", "-o", "m", "-O", "4"], "Invalid value for '--opt-level'"),
        (["mlp.onnx", "-o", "m", "--shape", "batch"], "'batch' is not of the form NAME=SIZE"),
        (["mlp.onnx", "-o", "m", "--shape", "=4"], "'=4' is not of the form NAME=SIZE"),
        (["mlp.onnx", "-o", "m", "--shape", "batch=-1"], "the size in 'batch=-1' is not a number, 0 or more"),
        (["mlp.onnx", "-o", "m", "--shape", "batch=" + "9" * 5000], "is not a number, 0 or more"),
        (["mlp.onnx", "-o", "m", "--shape", "batch=4..2"], "there is no size in 4..2"),
        (["mlp.onnx", "-o", "m", "--state", "h="], "'h=' is not of the form INPUT=OUTPUT"),
        (["mlp.onnx", "-o", "m", "--capacity", "h"], "'h' is not of the form INPUT=ROWS"),
        (["mlp.onnx", "-o", "m", "--capacity", "h=many"], "the size in 'h=many' is not a number, 0 or more"),
        (["mlp.onnx", "-o", "m", "--fast"], "No such option: --fast"),
    ],
)
def test_wrong_usage(cli: Cli, args: list[str], message: str) -> None:
    done = cli("compile", *args)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.replace("│", " ").split())


def test_an_unwritable_cache_is_told_and_done_without(cli: Cli, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", "compile", "dense.onnx", "-o", "m.weft"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "WEFT_CACHE_DIR": "/proc/weft"},
    )
    assert done.stdout.startswith("wrote m.weft: ")
    told, *rest = done.stderr.splitlines()
    assert told == "warning: Weft's cache is not used: [Errno 2] No such file or directory: '/proc/weft'"
    assert rest == ([] if listed_core(cpuinfo()) else [MEASURING])  # which no cache can spare it


def test_a_name_that_says_nothing_is_told(cli: Cli) -> None:
    done = cli("compile", "mlp.onnx", "-o", "digits")
    assert (done.code, done.err) == (
        0,
        "warning: digits is a saved model, as digits.weft would be; a folder to link with C is digits/\n",
    )
    weft.load("digits")
    assert cli("compile", "mlp.onnx", "-o", "digits", "-q").err == ""


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("d.exe", "a saved model is not a program or library of another system"),
        ("d.onnx", "a saved model is not an ONNX model"),
        ("mlp.onnx", "it is the model itself"),
        ("link", "it is the model itself"),
    ],
)
def test_names_of_something_else_are_refused(cli: Cli, tmp_path: Path, output: str, message: str) -> None:
    Path("link").symlink_to("mlp.onnx")
    before = Path("mlp.onnx").read_bytes()
    done = cli("compile", "mlp.onnx", "-o", output)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {output} can't be written: {message}\n  hint: ")
    assert Path("mlp.onnx").read_bytes() == before


def test_no_report_replaces_its_model(cli: Cli) -> None:
    before = Path("mlp.onnx").read_bytes()
    for args in (
        ("report", "mlp.onnx", "-o", "mlp.onnx"),
        ("run", "mlp.onnx", "--random", "--trace", "mlp.onnx"),
        ("bench", "mlp.onnx", "--json", "mlp.onnx"),
    ):
        done = cli(*args)
        assert (done.code, done.err.splitlines()[0]) == (1, "error: mlp.onnx can't be written: it is the model itself")
    assert Path("mlp.onnx").read_bytes() == before


def test_a_link_is_written_through(cli: Cli) -> None:
    Path("v12.weft").touch(mode=0o600)
    Path("current.weft").symlink_to("v12.weft")
    assert cli("compile", "mlp.onnx", "-o", "current.weft").code == 0
    assert Path("current.weft").is_symlink()
    assert Path("v12.weft").stat().st_mode & 0o777 == 0o600
    weft.load("v12.weft")


def test_accuracy_is_told_where_asked_for(cli: Cli) -> None:
    done = cli("compile", "mlp.onnx", "-o", "mlp.weft", "--precision", "bf16", "--accuracy", "--json")
    (found,) = json.loads(done.out)["accuracy"]
    assert 0 <= found["mean"] <= found["largest"] < 0.05
    done = cli("compile", "mlp.onnx", "-o", "mlp.weft", "--accuracy")
    assert re.search(r"at most 0\.0e\+00 of its spread from the model's own precision, 0\.0e\+00 on average", done.out)


def test_accuracy_of_states_is_refused(cli: Cli) -> None:
    done = cli("compile", "mlp.onnx", "-o", "mlp.weft", "--state", "x=y", "--accuracy")
    assert "--accuracy compares single calls, and --state makes values that live across them" in done.err
    assert not Path("mlp.weft").exists()
