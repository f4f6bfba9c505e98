"""Runs the code in a Markdown document: Python blocks in order, in one namespace, in the repository's root folder or another.

A text block is what the block before it prints; `...` in it stands for anything. Blocks of `sh` are run by the shell, with the
commands of the environment that runs this first in its path; they must end well. A block of C or
C++ names a file: it is a part of the project's file of that name, or else written to a new one.

A block marked `slow` is for the slow tests. One marked `speed` holds what is said of speed: where it fails on a machine that
others disturb, that is told (`Undecided`), once the rest has run.

A Python block that names a file of the project (```python src/weft/ops/reduce.py) runs as if it stood at that file's end: a new
file becomes a module, an existing one lends its names. A test file's functions are called. A diff block changes a copy of the
file that it names, and the copy takes the place of the module.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.support.disturbance import disturbance

ROOT = Path(__file__).resolve().parents[2]
SLOW, SPEED = "slow", "speed"
TURNS = 3
_BLOCK = re.compile(r"^```(\w+)(?: +(\S+))?[^\n]*\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Undecided(Exception):
    """What a document says of speed could not be judged on this machine now; all else that it says holds."""


class TooSlow(AssertionError):
    """A document says more of speed than was reached, though nothing seems to disturb the machine."""


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block: its language, its text, the line that it begins at, and the file that it belongs to, if it names one."""

    language: str
    text: str
    line: int
    file: str = ""


def blocks(path: Path) -> list[CodeBlock]:
    """Returns the fenced blocks of a document."""
    text = path.read_text()
    return [CodeBlock(m[1], m[3], text.count("\n", 0, m.start()) + 2, m[2] or "") for m in _BLOCK.finditer(text)]


def source_files(path: Path) -> list[str]:
    """Returns the files under src that the blocks of a document belong to."""
    return sorted({b.file for b in blocks(path) if b.file.startswith("src/")})


def links(path: Path) -> list[Path]:
    """Returns the files that a document links to."""
    found = _LINK.findall(path.read_text())
    return [(path.parent / target).resolve() for target in found if "://" not in target]


def run(path: Path, folder: Path = ROOT, *, slow: bool = False) -> int:
    """Runs a document in *folder*, and returns how many texts it compared; blocks marked `slow` are run if that is asked for.

    Raises `Undecided` at the end if a block marked `speed` failed on a disturbed machine. One that fails on a machine of its own
    must do so in each of `TURNS` runs: what disturbs may be gone when the question comes.
    """
    for _ in range(TURNS - 1):
        with contextlib.suppress(TooSlow):
            return _run(path, folder, slow=slow)
    return _run(path, folder, slow=slow)


def _run(path: Path, folder: Path, *, slow: bool) -> int:
    scope: dict[str, object] = {"__name__": "document"}
    printed, compared, skipped = "", 0, False
    undecided: list[str] = []
    with contextlib.chdir(folder):
        for block in blocks(path):
            skipped = not slow and (block.file == SLOW or (skipped and block.language == "text"))
            if skipped:
                continue
            if block.file == SPEED:
                undecided += judge(block, path, scope)
            elif block.language == "python":
                printed = execute(block, path, scope)
            elif block.language == "sh":
                printed = shell(block, path)
            elif block.language in ("c", "cpp"):
                place(block, path)
            elif block.language == "diff":
                exec(compile(patched(block), block.file, "exec"), new_module(block.file))
            elif block.language == "text":
                check(block.text, printed, f"{path.name}:{block.line}")
                compared += 1
    if undecided:
        raise Undecided("; ".join(undecided))
    return compared


def judge(block: CodeBlock, path: Path, scope: dict[str, object]) -> list[str]:
    """Runs what a document says of speed; if it fails, returns what disturbs the machine, and fails where nothing does."""
    try:
        exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec"), scope)
    except AssertionError as error:
        found = disturbance()
        if found is None:
            raise TooSlow(f"{path.name}:{block.line} fails: {error}") from error
        return [f"{path.name}:{block.line} fails ({error}), but {found}"]
    return []


def execute(block: CodeBlock, path: Path, scope: dict[str, object]) -> str:
    """Runs a Python block and returns what it prints."""
    names = names_of(block.file) if block.file else scope
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec"), names)
        for name, value in list(names.items()):
            if block.file.startswith("tests/") and name.startswith("test_") and callable(value):
                value()
    return out.getvalue()


def shell(block: CodeBlock, path: Path) -> str:
    """Runs a block in a shell, which must succeed, and returns what it prints on the standard output."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }
    asked = ["bash", "-e", "-o", "pipefail", "-c", block.text]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{path.name}:{block.line} ends with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def place(block: CodeBlock, path: Path) -> None:
    """Writes a block to the file that it names; if the project has that file, the block must be part of it instead."""
    if not (ROOT / block.file).exists():
        Path(block.file).write_text(block.text)
    else:
        assert block.text in (ROOT / block.file).read_text(), f"{path.name}:{block.line} is not in {block.file}"


def names_of(file: str) -> dict[str, object]:
    """Returns the namespace for a block that belongs to *file*."""
    if (ROOT / file).exists():
        return dict(vars(importlib.import_module(module_name(file))))
    return new_module(file)


def new_module(file: str) -> dict[str, object]:
    """Returns the namespace of a new module, which has the name that *file* has in the project."""
    module = sys.modules[module_name(file)] = ModuleType(module_name(file))
    return vars(module)


def module_name(file: str) -> str:
    return ".".join(Path(file).with_suffix("").parts).removeprefix("src.")


def patched(block: CodeBlock) -> str:
    """Returns the file of a diff block with the block's lines added, each after the line before it in the block."""
    lines = (ROOT / block.file).read_text().splitlines()
    at = 0
    for line in block.text.splitlines():
        if line.startswith("+"):
            lines.insert(at, line[1:])
        elif line != "...":
            at = lines.index(line[1:], at)
        at += 1
    return "\n".join(lines) + "\n"


def check(wanted: str, got: str, where: str) -> None:
    """Compares a shown text with a printed one."""
    match = doctest.OutputChecker().check_output(wanted.strip() + "\n", got.strip() + "\n", doctest.ELLIPSIS)
    assert match, f"{where} shows\n{wanted}\nbut the code prints\n{got}"
