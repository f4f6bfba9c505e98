"""What the README shows works as pasted, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import ROOT, blocks, check

from weft.cli.lazy import load
from weft.cli.main import COMMANDS

README = ROOT / "README.md"


def test_the_lines_of_python(tmp_path: Path) -> None:
    """They run beside the examples, and print what their comments say."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (shown,) = [b for b in blocks(README) if b.language == "python"]
    wanted = [line.rpartition("  # ")[2] for line in shown.text.splitlines() if line.startswith("print(")]
    done = subprocess.run([sys.executable, "-c", shown.text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    check("\n".join(wanted), done.stdout, "README.md")


def test_the_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = [line.split() for line in README.read_text().splitlines() if line.startswith("    ")]
    targets = [words[1] for words in commands if words and words[0] == "make"]
    assert targets == ["demo", "test"]
    assert all(f"\n{t}:" in makefile for t in targets)
    for words in commands:
        if words and words[0] == "weft":
            known = {option for p in load(words[1], COMMANDS[words[1]]).params for option in p.opts}
            assert {option for option in words if option.startswith("-")} <= known, words


def test_the_layers_are_those_that_there_are() -> None:
    """The house of the README names every folder that holds code."""
    lines = README.read_text().partition("## The house")[2].partition("## Further")[0].splitlines()
    named = [line.split("   ")[0] for line in (row.strip() for row in lines if row.startswith("    "))]
    folders = {
        p.parent.name for p in (ROOT / "src" / "weft").glob("*/__init__.py") if len(list(p.parent.rglob("*.py"))) > 1
    }
    assert {part.strip() for row in named for part in row.split(",")} >= folders | {"native"}
