"""What all tests share: goldens, texts that a test compares with and `--update-goldens` writes anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden texts instead of comparing")


def golden_path(node: pytest.Item) -> Path:
    """Returns where the golden of a test is: `goldens/<module>/<test>.txt` beside the test's module."""
    name = node.name.removeprefix("test_").replace("[", "-").replace("]", "").replace("/", "-")
    return node.path.parent / "goldens" / node.path.stem.removeprefix("test_") / f"{name}.txt"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Gives a function that compares a text with the golden of the test; one golden a test."""
    path = golden_path(request.node)

    def check(text: str) -> None:
        __tracebackhide__ = True
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists():
            pytest.fail(f"there is no golden {path}; write it with --update-goldens")
        else:
            assert text == path.read_text(encoding="utf-8")

    return check
