"""Calling the command in this process, as the shell would."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import pytest
from tests.support.processors import kept_measured

from weft.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command did: its exit code, and what it printed on both streams."""

    code: int
    out: str
    err: str


class Cli:
    """Calls `weft`; the streams are those that pytest captures, and a processor that it measures is known to that call alone."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.monkeypatch = monkeypatch

    def __call__(self, *args: object) -> Done:
        """Runs `weft ARGS`."""
        self.capsys.readouterr()
        with kept_measured(), self.monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["weft", *map(str, args)])
            patch.setattr(warnings, "showwarning", warnings.showwarning)  # restored afterwards
            with pytest.raises(SystemExit) as ended:
                main()
        printed = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, printed.out, printed.err)
