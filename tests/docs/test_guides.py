"""The guides for newcomers work as written: every command and every line of code is run, in a folder of their own."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, SLOW, blocks, run

from weft.cli.lazy import load
from weft.cli.main import COMMANDS
from weft.targets import host

DOCS = ROOT / "docs"
PAGES = [
    DOCS / name
    for name in re.findall(r"\((\w+\.md)\)", (DOCS / "index.md").read_text("utf-8").partition("## The tour")[0])
]
"""Those with which a newcomer begins."""

LONG = {"tuning"}
"""Those whose commands take most of a minute."""

LANGUAGES = {"python", "sh", "c", "cpp", "text"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that begins with nothing but the examples and the sources, as a newcomer has it."""
    for name in ("examples", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in LONG)) for p in PAGES]
)
def test_page(page: Path, folder: Path) -> None:
    if page.stem == "install" and not host().isa.fma:
        pytest.skip("the page shows a processor that has AVX2")
    assert run(page, folder) > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_block_is_one_that_is_run(page: Path) -> None:
    """Code that is indented, or in a language that nobody runs, would be shown but not tested."""
    text = page.read_text(encoding="utf-8")
    assert {b.language for b in blocks(page)} <= LANGUAGES
    assert len(re.findall(r"^```", text, re.M)) == 2 * len(blocks(page))
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    assert not re.search(r"^(?: {4}|\t)\S", outside, re.M)
    assert all(b.file for b in blocks(page) if b.language in ("c", "cpp"))


@pytest.mark.parametrize("page", [*PAGES, DOCS / "index.md", ROOT / "README.md"], ids=lambda p: p.stem)
def test_the_options_that_are_named_exist(page: Path) -> None:
    """Of commands that are only mentioned, the options at least are those of the command."""
    for line in re.findall(r"`(weft [^`\n]+)`", page.read_text(encoding="utf-8")):
        name, *words = line.split()[1:]
        if name in COMMANDS:
            command = load(name, COMMANDS[name])
            parts = getattr(command, "commands", {})  # of a group, such as `weft cache`
            known = {o for part in [command, *parts.values()] for p in part.params for o in p.opts} | {"--help"}
            assert {w for w in words if w.startswith("-")} <= known, line
        else:
            assert name.startswith("--") or name == "COMMAND", line


def test_the_extras_are_those_that_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (DOCS / "install.md").read_text(encoding="utf-8").partition("## Extras")[2]
    assert re.findall(r"^\| `(\w+)` \|", text, re.M) == list(project["optional-dependencies"])


def test_no_advice_installs_weft_from_an_index() -> None:
    """Weft is on no index: `pip install` of its name, or of its extras, would fetch what somebody else put there."""
    wrong = re.compile(r"weft\[|pip install (?:-\S+ +|--\S+ +)*[\"']?weft\b")
    roots = [ROOT / name for name in ("src", "docs", "packaging", "examples", "benchmarks")]
    files = [p for root in roots for p in root.rglob("*") if p.suffix in {".py", ".md", ".toml", ".sh", ".js", ".html"}]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in [*files, ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if wrong.search(line)
    ]
    assert found == []


@pytest.mark.slow
def test_installing(tmp_path: Path) -> None:
    """The page on installing, in a copy of what the repository holds, with nothing installed."""
    copy = tmp_path / "weft"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    assert any(b.file == SLOW for b in blocks(DOCS / "install.md"))
    run(DOCS / "install.md", copy, slow=True)
    assert list(copy.glob(".venv/lib/*/site-packages/weft/cli/report/page/page.html"))
