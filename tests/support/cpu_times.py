"""The CPU time of tests, `pytest --cpu-times 20`: unlike the time of day, it says nearly the same on a busy machine.

What a test's fixtures and threads took is part of it, and what the processes did that it started and waited for.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

STARTED = pytest.StashKey[float]()
PROPERTY = "cpu seconds"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cpu-times", type=int, metavar="N", help="show the CPU seconds of folders and of the N longest tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    longest = config.getoption("--cpu-times")
    if longest is not None:
        config.pluginmanager.register(CpuTimes(longest))


def cpu_seconds() -> float:
    """Returns the seconds of CPU time that this process took, and those of its children that ended."""
    return sum(os.times()[:4])


class CpuTimes:
    """A plugin that sums the CPU times of tests, in whichever process they run, and shows the longest at the end."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._of_test: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[STARTED] = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((PROPERTY, cpu_seconds() - item.stash[STARTED]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, float):
                self._of_test[report.nodeid] = value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        of_folder: dict[str, float] = {}
        for test, seconds in self._of_test.items():
            folder = test.split("::")[0].rpartition("/")[0]
            of_folder[folder] = of_folder.get(folder, 0) + seconds
        terminalreporter.section("CPU seconds")
        terminalreporter.write_line(f"{sum(self._of_test.values()):8.1f} all {len(self._of_test)} tests")
        for folder, seconds in _longest_first(of_folder):
            terminalreporter.write_line(f"{seconds:8.1f} {folder}")
        for test, seconds in _longest_first(self._of_test)[: self._longest]:
            terminalreporter.write_line(f"{seconds:8.2f} {test}")


def _longest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
