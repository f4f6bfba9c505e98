"""What all commands have in common: help, versions, exit codes, and streams that end early or are full."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Cli

import weft
from weft.cli.console import human_bytes, human_seconds

COMMANDS = ("compile", "run", "bench", "inspect", "targets", "demo")
WEFT = [sys.executable, "-m", "weft.cli.main"]


def on_a_terminal(command: list[str], columns: int = 80) -> str:
    """Returns what a command prints on a terminal, both streams together."""
    here, there = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=env)
    os.close(there)
    printed = b""
    while True:
        try:
            data = os.read(here, 65536)
        except OSError:  # the terminal is closed
            break
        if not data:
            break
        printed += data
    os.close(here)
    assert process.wait() == 0
    return printed.decode()


def test_help_lists_the_commands(cli: Cli) -> None:
    for args in (["--help"], ["-h"]):
        done = cli(*args)
        assert done.code == 0
        assert [c for c in COMMANDS if re.search(rf"^[│ ]*{c} +\w", done.out, re.MULTILINE)] == list(COMMANDS)
        assert "Begin with: weft demo" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(cli: Cli, command: str) -> None:
    done = cli(command, "--help")
    assert done.code == 0
    assert re.search(rf"^ *weft {command}\b", done.out, re.MULTILINE)


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"weft {weft.__version__}\n"


@pytest.mark.parametrize(
    "args", [[], ["compyle"], ["run"], ["run", "mlp.onnx", "--threads", "0"], ["run", "no.onnx", "-x"]]
)
def test_wrong_usage_is_2(cli: Cli, args: list[str]) -> None:
    assert cli(*args).code == 2


def test_the_examples_in_help_are_accepted(cli: Cli) -> None:
    for command in ("compile", "run", "inspect"):
        shown = cli(command, "--help").out
        for example in re.findall(rf"^ *weft ({command} .*\S)$", shown, re.MULTILINE):
            args = example.replace('"', "").split(" ")
            assert cli(*args).code == 1, example  # the files are not there, but the usage is right


def test_a_reader_that_leaves_is_no_error(cli: Cli) -> None:
    here, there = os.pipe()
    os.close(here)
    done = subprocess.run(
        [*WEFT, "inspect", "mlp.onnx", "--asm", "1"], stdout=there, stderr=subprocess.PIPE, check=False
    )
    os.close(there)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("args", [["targets"], ["inspect", "mlp.onnx", "--asm", "1"], ["targets", "--json"]])
def test_a_full_output(cli: Cli, args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*WEFT, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: the output can't be written: No space left on device\n")


def test_progress_is_shown_on_a_terminal(cli: Cli) -> None:
    command = [*WEFT, "run", "mlp.onnx", "--random", "--no-cache"]
    shown = on_a_terminal(command)
    assert "━" in shown
    assert re.search(r"kernels\b", shown)
    assert "━" not in on_a_terminal([*command, "--quiet"])


def test_no_progress_where_there_is_no_terminal(cli: Cli) -> None:
    done = subprocess.run(
        [*WEFT, "run", "mlp.onnx", "--random", "--no-cache"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "━" not in done.stdout


def test_tables_fit_a_narrow_terminal(cli: Cli) -> None:
    shown = on_a_terminal([*WEFT, "inspect", "conv.onnx", "--kernels", "-O", "1", "-q"], columns=60)
    lines = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown).splitlines()
    assert [line for line in lines if len(line) > 60] == []
    assert any("conv2d_relu" in line and line.rstrip().endswith("…") for line in lines)


def test_numbers_for_people() -> None:
    assert [human_bytes(n) for n in (0, 1023, 1024, 1536, 5 << 20, 3 << 30)] == [
        "0 B", "1023 B", "1.0 KB", "1.5 KB", "5.0 MB", "3.00 GB",
    ]  # fmt: skip
    assert [human_seconds(s) for s in (2.5, 0.25, 0.0125, 0.00125)] == ["2.50 s", "250 ms", "12 ms", "1.25 ms"]
