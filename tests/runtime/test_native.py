"""`python -m weft.native` tells a C or C++ compiler where the runtime is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weft.native import header_files, include_folders, source_files
from weft.native.__main__ import main


def test_what_there_is() -> None:
    names = {p.name for p in header_files()}
    assert {"weft.h", "weft_abi.h", "weft.hpp"} <= names
    assert {p.parent for p in header_files()} >= set(include_folders())
    assert len(names) == len(header_files()), "all of them lie in one folder beside a linked model"
    assert all(p.is_file() and p.suffix == ".c" for p in source_files())
    assert {"load.c", "pool.c"} <= {p.name for p in source_files()}


def test_the_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    includes, sources = [f"-I{p}" for p in include_folders()], [str(p) for p in source_files()]
    for asked, wanted in (
        (["--includes"], includes),
        (["--sources"], sources),
        (["--sources", "--includes"], [*includes, *sources]),
    ):
        monkeypatch.setattr(sys, "argv", ["weft.native", *asked])
        main()
        assert capsys.readouterr().out.split() == wanted
    monkeypatch.setattr(sys, "argv", ["weft.native"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "ask for --includes, --sources, or both" in capsys.readouterr().err


def test_a_compiler_takes_them(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text('#include "weft.hpp"\nint main() { return weft_dtype_bytes(WEFT_F32); }\n')
    asked = [sys.executable, "-m", "weft.native", "--includes"]
    options = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    command = ["g++", "-std=c++17", "-fsyntax-only", *options, str(tmp_path / "main.cpp")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""
