"""`--cpu-times` shows what tests, and processes that they started, took of the processor."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TESTS = """
import subprocess, sys, time

def test_sleeps():
    time.sleep(0.3)

def test_computes():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.4: pass"], check=True)
"""


def test_what_a_child_computes_counts_and_sleep_does_not(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(TESTS, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.cpu_times", "--cpu-times=2", "-n", "2", str(tmp_path)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    took = {name: float(seconds) for seconds, name in re.findall(r"([0-9.]+) \S*::test_(\w+)", ran.stdout)}
    assert list(took) == ["computes", "sleeps"]
    assert took["computes"] >= 0.3  # children are counted in ticks of the kernel's clock, which may leave some out
    assert took["sleeps"] < 0.3
