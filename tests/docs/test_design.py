"""The measurements behind the design decisions still run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.docs.markdown import ROOT, check

FOLDER = ROOT / "docs" / "design"


def measured(*numbers: int) -> str:
    command = [sys.executable, str(FOLDER / "measure.py"), *map(str, numbers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_faults_that_only_the_interpreter_sees() -> None:
    (page,) = FOLDER.glob("0008-*.md")
    shown = "".join(line.strip() + "\n" for line in page.read_text().splitlines() if line.startswith("    "))
    check("# 0008\n... us an iteration\n" + shown, measured(8), page.name)


@pytest.mark.slow
def test_all_of_them() -> None:
    """Each page that says how it was measured has its measurement, and each measurement its page."""
    pages = sorted(FOLDER.glob("[0-9]*.md"))
    shown = [p.name[:4] for p in pages if f"measure.py {int(p.name[:4])}`" in p.read_text()]
    assert len(shown) >= 9
    assert [line for line in measured().splitlines() if line.startswith("# ")] == [f"# {n}" for n in shown]
