"""docs/errors.md shows every class of errors, and what is said: made by making the mistakes (`--update-goldens` writes it)."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from tests.docs.error_cases import CASES, Case
from tests.docs.markdown import ROOT
from tests.support.sources import SRC, trees

from weft.support import errors

PAGE = ROOT / "docs" / "errors.md"
INTRODUCTION = """\
# What goes wrong, and what to do

All errors that Weft raises on purpose are `weft.WeftError`s. Each says what was wrong, where (in the model: the operator and the
name of its node), and after `hint:` what to do. In Python, `error.message`, `error.where` and `error.hint` are the parts; the
command line shows them after `error:` and ends with 1 (with 2 if it was called wrongly); with `-v` it shows where in Weft they
arose.

This page is made from the tests (`tests/docs/error_cases.py`), which make each mistake. DIR stands for a folder.
"""

HINTED = {
    "ModelError",
    "MissingFile",
    "UnsupportedOperators",
    "UnknownValues",
    "InputError",
    "ArtifactError",
    "CacheError",
    "RecordsError",
    "DeviceError",
    "RuntimeFailure",
    "ToolchainError",
}
"""The errors that users meet; those of programs and schedules show the place instead where there is nothing to advise."""


@cache
def classes() -> dict[str, tuple[str, str]]:
    """Returns the base and the docstring of every class of errors under `WeftError`, by name."""
    found: dict[str, tuple[str, str]] = {}
    for _, tree in trees("class "):
        for c in tree.body:
            if isinstance(c, ast.ClassDef) and c.bases and isinstance(c.bases[0], ast.Name):
                found[c.name] = (c.bases[0].id, ast.get_docstring(c) or "")
    known = {"WeftError"}
    while more := {name for name, (base, _) in found.items() if base in known} - known:
        known |= more
    return {name: found[name] for name in found if name in known and name != "WeftError"}


def tree() -> list[tuple[str, str]]:
    """Returns the classes of the tree in the docstring of `weft.support.errors` in order, each with its base."""
    found: list[tuple[str, str]] = []
    above = ["WeftError"]
    for indent, name in re.findall(r"^( *[│ ]*)[├└]── (\w+) {2,}\S", inspect.getdoc(errors) or "", re.M):
        depth = len(indent) // 4 - 1
        above[depth + 1 :] = [name]
        found.append((name, above[depth]))
    return found


def told(case: Case, folder: Path) -> str:
    """Returns what is said when a mistake is made."""
    with pytest.raises(case.error) as caught:
        case.fail(folder)
    assert type(caught.value) is case.error, case.title
    text = str(caught.value).replace(str(folder), "DIR").replace(str(Path.cwd()), "HERE")
    return re.sub(r"[ \t]+$", "", text, flags=re.M).strip()


def page(folder: Path) -> str:
    """Returns the page."""
    parts = [INTRODUCTION]
    docs = classes()
    for name, _ in tree():
        cases = [c for c in CASES if c.error.__name__ == name]
        if cases:
            parts.append(f"## {name}\n\n{docs[name][1]}\n")
        for n, c in enumerate(cases):
            own = folder / f"{name}{n}"
            own.mkdir()
            parts.append(f"**{c.title[0].upper()}{c.title[1:]}**\n\n```text\n{told(c, own)}\n```\n")
    return "\n".join(parts)


def test_the_page(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    made = page(tmp_path)
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text(encoding="utf-8"), "write it with --update-goldens"


def test_the_tree_is_that_of_the_classes() -> None:
    assert dict(tree()) == {name: base for name, (base, _) in classes().items()}


def test_every_class_has_a_case() -> None:
    shown = {c.error.__name__ for c in CASES}
    assert {name for name, _ in tree()} - shown == {
        "ParseError",
        "Illegal",
    }  # of which `TextError`, `ScheduleError` come
    assert len({c.title for c in CASES}) == len(CASES)


def raised(tree: ast.Module) -> list[tuple[int, str, bool]]:
    """Returns the line, the class, and whether there is a hint, of each error that is made in a file."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return [
        (n.lineno, n.func.id, any(k.arg in ("hint", None) for k in n.keywords))
        for n in calls
        if isinstance(n.func, ast.Name)
    ]


def test_errors_that_users_meet_say_what_to_do() -> None:
    lacking = [
        f"{p.relative_to(SRC)}:{line}"
        for p, tree in trees(*HINTED)
        if "interp" not in p.parts  # the interpreter runs programs for developers
        for line, name, hint in raised(tree)
        if name in HINTED and not hint
    ]
    assert lacking == []
