"""`weft targets` tells what can be compiled for, and what of it runs here."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.cli.commands import Cli

from weft.runtime.devices import device_names
from weft.targets import LEVELS, can_run, cpu, host, host_flags
from weft.targets.cuda_machines import LISTED
from weft.targets.x86_cpus import flags_of


def test_the_list(cli: Cli) -> None:
    done = cli("targets")
    lines = [line.split() for line in done.out.splitlines()]
    assert done.code == 0
    names = ["cpu", *["cpu"] * len(LEVELS), "aarch64", "c", "c-vector", "opencl", "webgpu", "metal", *["cuda"] * 4]
    assert [line[0] for line in lines[2:]] == names
    assert lines[2][1:5] == [host().isa.cpu, str(host().isa.vector_bits), "bits", "yes"]


def test_json(cli: Cli) -> None:
    rows = json.loads(cli("targets", "--json").out)
    assert [r["target"] for r in rows] == [
        "cpu",
        *[f"cpu -mattr={name}" for name in LEVELS],
        "aarch64",
        "c",
        "c-vector",
        "opencl",
        "webgpu",
        "metal",
        "cuda",
        *[f"cuda -arch={arch}" for arch in LISTED],
    ]
    has_compiler = shutil.which("cc") is not None
    levels = [can_run(cpu(name)) for name in LEVELS]
    assert [r["runs_here"] for r in rows] == [
        True,
        *levels,
        False,
        has_compiler,
        has_compiler,
        bool(device_names("opencl")),
        bool(device_names("wgsl")),
        False,
        *[bool(device_names("cuda"))] * 4,
    ]


def test_what_is_missing_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = (host_flags() | set(flags_of(LEVELS["avx2"]))) - {"avx2", "fma"}
    monkeypatch.setattr("weft.targets.registry.host_flags", lambda: poor)
    lines = cli("targets").out.splitlines()
    avx2 = next(line for line in lines if line.startswith("cpu -mattr=avx2"))
    assert " no " in avx2
    assert avx2.rstrip().endswith("this processor lacks avx2, fma")
    rows = json.loads(cli("targets", "--json").out)
    assert next(r["missing"] for r in rows if r["target"] == "cpu -mattr=avx2") == ["avx2", "fma"]


@pytest.mark.parametrize(
    ("target", "found", "told"),
    [
        ("opencl", "opencl_library.find_devices", "there is no device: install the driver of a device"),
        (
            "webgpu",
            "webgpu_library.find_adapters",
            "there is no device: install Weft with its extra 'webgpu', pip install '.[webgpu]'",
        ),
    ],
)
def test_a_missing_device_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, target: str, found: str, told: str
) -> None:
    monkeypatch.setattr(f"weft.runtime.devices.{found}", tuple)
    line = next(line for line in cli("targets").out.splitlines() if line.startswith(target))
    assert " no " in line
    assert told in line


def test_metal_says_what_to_do(cli: Cli) -> None:
    line = next(line for line in cli("targets").out.splitlines() if line.startswith("metal"))
    assert " no " in line
    assert "Weft has no runtime for Metal: use the target webgpu, which runs on a Mac's GPU by way of Metal" in line
    row = next(r for r in json.loads(cli("targets", "--json").out) if r["target"] == "metal")
    assert (row["runs_here"], row["missing"]) == (False, ["device"])
