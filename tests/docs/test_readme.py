"""What the README shows works as pasted, in a process of its own."""

from __future__ import annotations

import re
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


WEFT = ".venv/bin/weft"


def commands() -> list[list[str]]:
    """Returns the words of the commands of Weft: of the lines that are code, and of the table."""
    text = README.read_text()
    lines = re.findall(rf"^    ({WEFT} .*)$", text, re.M) + re.findall(rf"`({WEFT} [^`]*)`", text)
    return [line.split() for line in lines]


def test_the_commands_exist() -> None:
    text, makefile = README.read_text(), (ROOT / "Makefile").read_text()
    targets = re.findall(r"(?:^    |`)make ([\w-]+)", text, re.M)
    assert {"demo", "test", "bench-models"} <= set(targets)
    assert [t for t in targets if f"\n{t}:" not in makefile] == []
    assert re.findall(r"(?:^ {4}|\| `)weft ", text, re.M) == []  # the shell of a fresh clone would not find it
    for words in commands():
        known = {option for p in load(words[1], COMMANDS[words[1]]).params for option in p.opts}
        assert {option for option in words if option.startswith("-")} <= known, words


def test_the_models_of_the_table_are_made_by_the_command_that_it_names() -> None:
    named = [Path(w).stem for words in commands() for w in words if w.startswith("benchmarks/onnx/")]
    assert len(named) == 8
    made = (ROOT / "benchmarks" / "models.py").read_text() + (ROOT / "benchmarks" / "networks.py").read_text()
    assert [name for name in named if not re.search(rf"\b{name.removesuffix('256')}", made)] == []


def test_the_commands_run_on_a_small_model(tmp_path: Path) -> None:
    """As in a fresh clone after `make demo`: `MODEL` stands for a model of the reader's."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / WEFT).symlink_to(Path(sys.executable).with_name("weft"))
    (tmp_path / "MODEL.onnx").write_bytes((ROOT / "examples" / "digits" / "digits.onnx").read_bytes())
    for words in commands():
        if "MODEL.onnx" in words and words[1] != "report":
            seconds = ["--seconds", "0.1"] if words[1] == "bench" else []
            done = subprocess.run([*words, *seconds], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    assert (tmp_path / "MODEL.weft").is_file()


def test_the_layers_are_those_that_there_are() -> None:
    """The house of the README names every folder that holds code."""
    lines = README.read_text().partition("## The house")[2].partition("## Further")[0].splitlines()
    named = [line.split("   ")[0] for line in (row.strip() for row in lines if row.startswith("    "))]
    folders = {
        p.parent.name for p in (ROOT / "src" / "weft").glob("*/__init__.py") if len(list(p.parent.rglob("*.py"))) > 1
    }
    assert {part.strip() for row in named for part in row.split(",")} >= folders | {"native"}
