"""Every golden belongs to a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import golden_path

TESTS = Path(__file__).parent


def test_no_golden_is_orphaned(request: pytest.FixtureRequest) -> None:
    config = request.config
    if config.option.keyword or config.option.markexpr or any("::" in a for a in config.args):
        pytest.skip("only some tests were selected")
    used = {golden_path(i) for i in request.session.items if "golden" in getattr(i, "fixturenames", ())}
    folders = {i.path.parent for i in request.session.items}
    stored = {p for f in folders for p in (f / "goldens").rglob("*.txt")}
    assert sorted(stored - used) == []
