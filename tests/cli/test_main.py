"""What all commands have in common: help, versions, exit codes, and streams that end early or are full."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Cli

import weft
from weft.cli import compile_options, targets
from weft.cli.compile_options import MEASURING
from weft.cli.console import human_bytes, human_seconds
from weft.cli.main import COMMANDS
from weft.targets import cpuinfo, listed_core

GROUPS = {
    "cache": ("ls", "size", "clear"),
    "records": ("ls", "show", "merge", "export", "import", "prune", "salvage"),
}
ALONE = [name for name in COMMANDS if name not in GROUPS]
CALLS = [*ALONE, *[f"{group} {name}" for group, names in GROUPS.items() for name in names]]
LONG = "x" * 300
WEFT = [sys.executable, "-m", "weft.cli.main"]
PROGRAM = [str(Path(sys.executable).with_name("weft"))]


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


@pytest.mark.parametrize("command", ["", *CALLS])
def test_help_is_tidy(cli: Cli, command: str) -> None:
    shown = cli(*command.split(), "--help").out
    assert "<bool>" not in shown
    assert "{" not in shown
    text = "\n".join(line.strip() for line in shown.partition("╭")[0].splitlines()).strip()
    assert "\n\n\n" not in text


def test_help_names_arguments_in_capitals(cli: Cli) -> None:
    assert "weft run [OPTIONS] MODEL" in cli("run", "--help").out
    assert "weft bench [OPTIONS] [MODELS]..." in cli("bench", "--help").out
    assert "--install-completion" in cli("--help").out.partition("Begin with")[2]


@pytest.mark.parametrize("command", CALLS)
def test_help_teaches_by_example(cli: Cli, command: str) -> None:
    done = cli(*command.split(), "--help")
    assert done.code == 0
    assert re.search(rf"^ *(WEFT_\w+=\S+ )?weft {command}\b", done.out.partition("Examples:")[2], re.MULTILINE)


def test_every_group_is_tested(cli: Cli) -> None:
    for group, names in GROUPS.items():
        assert re.findall(r"^│ (\w+) ", cli(group, "--help").out.partition("Commands")[2], re.MULTILINE) == list(names)


@pytest.mark.parametrize("command", CALLS)
def test_every_command_that_tells_facts_has_json(cli: Cli, command: str) -> None:
    assert "--json" in cli(*command.split(), "--help").out


@pytest.mark.parametrize("command", ["compile", "run", "inspect", "report"])
def test_commands_that_compile_have_the_same_options(cli: Cli, command: str) -> None:
    shown = cli(command, "--help").out
    for option in (
        "--target",
        "--shape",
        "-O",
        "--precision",
        "--denormals",
        "--without",
        "--verify",
        "--records",
        "--no-cache",
        "-q",
        "-v",
    ):
        assert re.search(rf"[ │]{option}\b", shown), option


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "args", ["--help", "--version", "cache size", "targets", "run mlp.weft --random", "inspect mlp.weft"]
)
@pytest.mark.usefixtures("cli")
def test_what_needs_no_compiler_does_not_wait_for_it(mlp_weft: Path, args: str) -> None:
    shutil.copy(mlp_weft, "mlp.weft")
    code = (
        "import sys\nfrom weft.cli.main import main\n"
        "try: main()\nexcept SystemExit as done: assert not done.code\n"
        "sys.exit('llvmlite' in sys.modules or 'onnx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *args.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(cli: Cli, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # none is to be told from the parents
    asked = [*PROGRAM, "--show-completion", shell]
    assert "weft" in subprocess.run(asked, capture_output=True, text=True, check=True, env=env).stdout
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "")  # the program is called as argv[0] says
    for words, wanted in (("weft insp", "inspect"), ("weft cache cl", "clear"), ("weft run --targ", "--target")):
        for name, value in {
            "_WEFT_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }.items():
            monkeypatch.setenv(name, value)
        shown = cli().out
        assert wanted in shown, words
        assert "doctor" not in shown  # as the help for all would


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"weft {weft.__version__}\n"


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "weft", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"weft {weft.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "weft", "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, "python -m weft run" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "args", [[], ["compyle"], ["run"], ["run", "mlp.onnx", "--threads", "0"], ["run", "no.onnx", "-x"]]
)
def test_wrong_usage_is_2(cli: Cli, args: list[str]) -> None:
    assert cli(*args).code == 2


def test_the_examples_in_help_are_accepted(cli: Cli) -> None:
    for command in ("compile", "run", "inspect", "report"):
        shown = cli(command, "--help").out
        for example in re.findall(rf"^ *weft ({command} .*\S)$", shown, re.MULTILINE):
            args = example.replace('"', "").split(" ")
            assert cli(*args).code == 1, example  # the files are not there, but the usage is right


def test_a_reader_that_leaves_is_no_error(cli: Cli) -> None:
    here, there = os.pipe()
    os.close(here)
    done = subprocess.run(
        [*WEFT, "inspect", "dense.onnx", "--asm", "1"], stdout=there, stderr=subprocess.PIPE, check=False
    )
    os.close(there)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("args", [["targets"], ["inspect", "dense.onnx", "--asm", "1"], ["targets", "--json"]])
def test_a_full_output(cli: Cli, args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*WEFT, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: the output can't be written: No space left on device\n")


@pytest.mark.parametrize("args", [["inspect", LONG], ["run", LONG, "--random"], ["compile", "mlp.onnx", "-o", LONG]])
def test_a_path_that_the_system_refuses(cli: Cli, args: list[str]) -> None:
    done = cli(*args)
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(rf"error: {LONG}.* can't be (used|read|written): File name too long\n  hint: .*\n", done.err)


def test_a_bug_is_told_in_words(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("thing")

    monkeypatch.setattr(targets, "can_run", fail)
    done = cli("targets")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: this is a bug in Weft: KeyError: 'thing'\n  hint: report it with the command and what it prints with -v\n"
    )
    monkeypatch.setattr(compile_options, "target_here", fail)
    for flag in ("-v", "--verbose"):
        told = cli("run", "mlp.onnx", "--random", flag).err
        assert told.startswith("error: this is a bug in Weft: KeyError: 'thing'\n")
        assert "Traceback (most recent call last)" in told
    assert "Traceback" not in cli("run", "mlp.onnx", "--random").err


def test_verbose_tells_the_stages(cli: Cli) -> None:
    told = cli("run", "dense.onnx", "--random", "-v", "--no-cache").err
    assert [line.split()[0] for line in told.splitlines()] == ["read", "optimize", "plan", "kernels", "link", "run"]
    cli("run", "dense.onnx", "--random")
    assert cli("run", "dense.onnx", "--random", "-v").err.startswith("nothing had to be compiled\nrun ")


def test_progress_is_shown_on_a_terminal(cli: Cli) -> None:
    command = [*WEFT, "run", "dense.onnx", "--random", "--no-cache"]
    shown = on_a_terminal(command)
    assert "━" in shown
    assert re.search(r"kernels\b", shown)
    assert "━" not in on_a_terminal([*command, "--quiet"])


def test_no_progress_where_there_is_no_terminal(cli: Cli) -> None:
    done = subprocess.run(
        [*WEFT, "run", "dense.onnx", "--random", "--no-cache"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ("" if listed_core(cpuinfo()) else f"{MEASURING}\n")
    assert "━" not in done.stdout


def test_tables_fit_a_narrow_terminal(cli: Cli) -> None:
    shown = on_a_terminal([*WEFT, "inspect", "conv.onnx", "--kernels", "-O", "1", "-q"], columns=60)
    lines = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown).splitlines()
    assert [line for line in lines if len(line) > 60] == []
    assert any("conv2d_relu" in line and line.rstrip().endswith("…") for line in lines)


def test_numbers_for_people() -> None:
    assert [human_bytes(n) for n in (0, 1023, 1024, 1536, 5 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 MiB",
        "3.00 GiB",
    ]
    assert [human_seconds(s) for s in (2.5, 0.25, 0.0125, 0.00125)] == ["2.50 s", "250 ms", "12 ms", "1.25 ms"]
