"""`weft targets` tells what can be compiled for, and what of it runs here."""

from __future__ import annotations

import json

import pytest
from tests.cli.commands import Cli

from weft.targets import cpu as cpu_module
from weft.targets.cpu import LEVELS, can_run, cpu, host


def test_the_list(cli: Cli) -> None:
    done = cli("targets")
    lines = [line.split() for line in done.out.splitlines()]
    assert done.code == 0
    assert [line[0] for line in lines[2:]] == ["cpu"] * (1 + len(LEVELS))
    assert lines[2][1:5] == [host().cpu, str(host().vector_bits), "bits", "yes"]


def test_json(cli: Cli) -> None:
    rows = json.loads(cli("targets", "--json").out)
    assert [r["target"] for r in rows] == ["cpu", *[f"cpu -mattr={name}" for name in LEVELS]]
    assert [r["runs_here"] for r in rows] == [True, *[can_run(cpu(name)) for name in LEVELS]]


def test_what_is_missing_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = cpu_module.host_flags() - {"avx2", "fma"}
    monkeypatch.setattr("weft.cli.targets.host_flags", lambda: poor)
    monkeypatch.setattr("weft.cli.targets.can_run", lambda target: "+fma" not in target.features)
    lines = cli("targets").out.splitlines()
    avx2 = next(line for line in lines if line.startswith("cpu -mattr=avx2"))
    assert " no " in avx2
    assert avx2.rstrip().endswith("this processor lacks avx2, fma")
    rows = json.loads(cli("targets", "--json").out)
    assert next(r["missing"] for r in rows if r["target"] == "cpu -mattr=avx2") == ["avx2", "fma"]
