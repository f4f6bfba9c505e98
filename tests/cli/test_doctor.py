"""`weft doctor` tells what a machine can do, and for what is not well, what to do."""

from __future__ import annotations

import importlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.commands import Cli
from tests.records.entries import MATMUL, record
from tests.support.processors import unlisted_processor

from weft.cli.doctor import check_machine, check_weft
from weft.cli.doctor import command as doctor
from weft.cli.doctor.calibration import UNLISTED
from weft.cli.doctor.findings import Finding, State, checked
from weft.cli.records.export_pack import export_packs
from weft.driver.cache.cache_folder import NAME, TAG
from weft.driver.hardware import hardware_of
from weft.native import _rt
from weft.records import Store
from weft.support.errors import CacheError
from weft.targets import cpuinfo, host, machine_name

GB = 1 << 20  # in kB


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The files of a system that is well."""
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast Chip 9000\nflags\t: sse\n",
        "proc/loadavg": "0.10 0.20 0.30 1/100 1234",
        "proc/meminfo": f"MemTotal: {16 * GB} kB\nMemFree: {2 * GB} kB\nMemAvailable: {8 * GB} kB\n",
        "proc/self/cgroup": "0::/box",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    }
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "root"


def test_the_pack_of_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_weft.pack(tmp_path) == Finding("pack", State.OK, "not used: WEFT_PACK_DIR is empty")
    monkeypatch.setenv("WEFT_PACK_DIR", str(tmp_path))
    none = check_weft.pack(tmp_path)
    assert (none.state, none.told) == (
        State.OK,
        "Weft comes with no tuning records for such a machine; `weft tune` makes some",
    )
    here = hardware_of(host())
    with Store(tmp_path / "tune.db") as store:
        store.add(here, MATMUL, record(0.5, hardware=here))
        export_packs(store, tmp_path)
    good = check_weft.pack(tmp_path)
    assert (good.state, good.told) == (
        State.OK,
        "1 tuning records for this machine; --without pretuned leaves them out",
    )
    path = tmp_path / f"{here.digest}.jsonl"
    path.write_text(path.read_text() + "{\n")
    harmed = check_weft.pack(tmp_path)
    assert (harmed.state, harmed.told) == (
        State.ADVICE,
        f"2 tuning records for this machine; --without pretuned leaves them out; 1 of {path} can't be used",
    )
    assert harmed.todo


def test_a_machine_that_is_well(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    found = {f.name: f for f in (checked(c, root) for c in check_machine.MACHINE)}
    assert {name: f.state for name, f in found.items() if name not in ("vectors", "caches")} == dict.fromkeys(
        ("processor", "cores", "load", "memory", "huge pages", "clock"), State.OK
    )
    assert found["processor"].told.startswith("Fast Chip 9000, x86_64, Linux")
    assert str(host().isa.vector_bits) in found["vectors"].told
    assert found["cores"].told == "4 of 4"
    assert found["load"].told == "a load average of 0.1 over the last minute, on 4 processors"
    assert found["memory"].told == "8.00 GiB free of 16.00 GiB"
    assert found["huge pages"].told == "madvise"


def wrong(root: Path, check: str, file: str, text: str) -> Finding:
    """Returns what *check* finds where a file of the system has another text."""
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text)
    found = checked(getattr(check_machine, check), root)
    assert found.state is not State.OK
    assert found.todo
    return found


def test_huge_pages_that_are_off(root: Path) -> None:
    found = wrong(root, "huge_pages", "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")
    assert found == Finding(
        "huge pages",
        State.ADVICE,
        "switched off: large weights are read up to 40% slower",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )


def test_a_machine_that_is_busy(root: Path) -> None:
    assert "a load average of 99.0 over" in wrong(root, "load", "proc/loadavg", "99 99 99").told


def test_little_memory(root: Path) -> None:
    told = wrong(root, "memory", "proc/meminfo", f"MemTotal: {2 * GB} kB\nMemAvailable: {GB // 2} kB\n").told
    assert told == "512.0 MiB free of 2.00 GiB"


def test_a_container_with_little_memory(root: Path) -> None:
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/memory.max").write_text(str(4 << 30))
    told = checked(check_machine.memory, root).told
    assert told == "8.00 GiB free of 16.00 GiB, at most 4.00 GiB for this process"


def test_a_quota(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    found = wrong(root, "cores", "sys/fs/cgroup/box/cpu.max", "150000 100000")
    assert found.told == "2 of 8: a quota of 2 holds this process back"
    assert _rt.quota_cpus(str(root)) == 2


def test_a_process_that_is_bound(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    path = "sys/devices/system/cpu/cpu0/topology/thread_siblings_list"
    assert wrong(root, "cores", path, "0,4").told == "1 of 8 (two share a core): this process is bound to some"


def test_a_clock_that_stays_slow(root: Path) -> None:
    governor = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    assert wrong(root, "clock", governor, "powersave").told == "powersave: the processor stays slow"
    (root / governor).with_name("scaling_driver").write_text("intel_pstate")  # whose powersave is not
    assert checked(check_machine.clock, root).state is State.OK


def test_a_cache_that_many_share(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = replace(host(), caches=replace(host().caches, l3=64 << 20))
    monkeypatch.setattr(check_machine, "host", lambda: cut)
    monkeypatch.setattr(check_machine, "cache_sizes", lambda: {1: cut.caches.l1, 2: cut.caches.l2, 3: 480 << 20})
    told = checked(check_machine.caches, root).told
    assert re.search(r"L2 [\d.]+ [KM]iB, L3 480 MiB, of which kernels are cut to 64 MiB$", told)


def test_caches_that_are_not_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_machine, "cache_sizes", dict)
    found = checked(check_machine.caches, root)
    assert found.state is State.ADVICE
    assert found.told.startswith("the system does not tell them; taken for L1 ")


@pytest.mark.parametrize(
    ("flags", "state", "told"),
    [
        ({"sse4"}, State.ADVICE, "no AVX2"),
        (set(), State.PROBLEM, "no SSE 4.2, which all code needs"),
    ],
)
def test_an_old_processor(
    root: Path, monkeypatch: pytest.MonkeyPatch, flags: set[str], state: State, told: str
) -> None:
    monkeypatch.setattr(check_machine, "can_run", lambda target: target.name.rpartition("=")[2] in flags)
    found = checked(check_machine.vectors, root)
    assert found.state is state
    assert told in found.told
    assert found.todo


def test_another_machine(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_machine, "machine", lambda: "aarch64")
    assert checked(check_machine.processor, root).state is State.PROBLEM


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    for check in check_machine.MACHINE:
        assert "can't be looked at" not in checked(check, tmp_path).told


def test_a_check_that_fails_is_a_finding(tmp_path: Path) -> None:
    def no_such_thing(_: Path) -> Finding:
        raise CacheError("it is broken", hint="mend it")

    found = checked(no_such_thing, tmp_path)
    assert found == Finding("no such thing", State.PROBLEM, "can't be looked at: it is broken", "report this")


def test_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    assert checked(check_weft.cache, tmp_path).state is State.OK
    assert os.listdir(tmp_path / "cache" / NAME) == [TAG]  # nothing is left
    monkeypatch.setattr(check_weft, "ROOM", 1 << 60)
    assert "almost full" in checked(check_weft.cache, tmp_path).told
    monkeypatch.setenv("WEFT_CACHE_DIR", "/proc/weft")
    found = checked(check_weft.cache, tmp_path)
    assert found.state is State.PROBLEM
    assert found.told.startswith("Weft's cache is not used: ")
    assert "WEFT_CACHE_DIR" in found.todo


def test_code_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(check_weft.code_generator, tmp_path).state is State.OK
    monkeypatch.setattr(check_weft, "build_function", lambda _: lambda x, y: None)
    assert checked(check_weft.code_generator, tmp_path).told.endswith("a test kernel computes wrongly")


def test_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [
        "numpy>=2.0",
        "llvmlite==0.50.*",
        'matplotlib>=3.8; extra == "plot"',
        'typer>=0.1; extra == "nice"',
        'pytest>=8; extra == "test"',
    ]
    monkeypatch.setattr(check_weft, "requires", lambda _: wanted)
    versions = {"numpy": "2.4.6", "llvmlite": "0.50.1", "matplotlib": "", "typer": "0.29", "pytest": ""}
    monkeypatch.setattr(check_weft, "_version", lambda name: versions[name])
    assert check_weft.needed(tmp_path) == Finding("needed", State.OK, "numpy 2.4.6, llvmlite 0.50.1")
    assert list(check_weft.extras()) == [
        Finding(
            "plot",
            State.ADVICE,
            "not installed: matplotlib: for pictures of rooflines",
            'pip install "matplotlib>=3.8", if you want that',
        ),
        Finding("nice", State.OK, "typer 0.29"),
        Finding(
            "test", State.ADVICE, "not installed: pytest: for running Weft's own tests", "make test, if you want that"
        ),
    ]
    versions |= {"numpy": "", "llvmlite": "0.51.0"}
    assert check_weft.needed(tmp_path) == Finding(
        "needed",
        State.PROBLEM,
        "numpy>=2.0 is needed, and there is none, llvmlite==0.50.* is needed, and there is 0.51.0",
        'pip install "numpy>=2.0" "llvmlite==0.50.*"',
    )


def test_bounds_of_versions() -> None:
    kept = [
        ("2.0.1", ">=2.0"),
        ("10.0", ">=2.0"),
        ("0.50.3", "==0.50.*"),
        ("2.13.0", "==2.13.0"),
        ("1.26", "<2"),
        ("1", "!=1"),
    ]
    broken = [("1.9", ">=2.0"), ("0.51", "==0.50.*"), ("2.13.1", "==2.13.0"), ("3.1", "<3")]
    assert [check_weft.fits(*pair) for pair in kept] == [True] * len(kept)
    assert [check_weft.fits(*pair) for pair in broken] == [False] * len(broken)


def test_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [f.name for f in check_weft.tools()] == list(check_weft.TOOLS)
    monkeypatch.setenv("PATH", "")
    found = list(check_weft.tools())
    assert [f.state for f in found] == [State.ADVICE] * len(found)
    assert found[0].told.startswith("there is none (cc, gcc, clang): for linking")


def test_the_command(cli: Cli) -> None:
    done = cli("doctor")
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line for line in lines if not line.startswith(" ")][:-1] == ["machine", "weft", "packages", "tools"]
    assert re.fullmatch(r"(no|\d+) problems?, (no|\d+) pieces? of advice|all is well", lines[-1])
    assert all(len(line) <= 120 for line in lines)
    facts = json.loads(cli("doctor", "--json").out)
    assert list(facts) == ["machine", "weft", "packages", "tools"]
    assert {f["state"] for part in facts.values() for f in part.values()} <= {"ok", "advice"}
    assert facts["weft"]["code"]["state"] == "ok"
    shown = cli("doctor", "-q").out
    assert "  ok " not in shown


def test_a_problem_is_exit_code_1(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", "/proc/weft")
    done = cli("doctor", "-q")
    assert done.code == 1
    assert "problem  cache         Weft's cache is not used" in done.out
    assert "-> set WEFT_CACHE_DIR to a folder of your own" in done.out


def test_a_compiler_that_cannot_be_imported(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError("No module named 'llvmlite'")

    monkeypatch.setattr(importlib, "import_module", fail)
    found = doctor.examine(Path("/"))
    (told,) = found["weft"]
    assert told.state is State.PROBLEM
    assert told.told == "the compiler can't be imported: No module named 'llvmlite'"


@pytest.mark.skipif(machine_name() != "x86_64", reason="only x86-64 processors are measured")
def test_calibrate_prints_a_row_for_the_table(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    with unlisted_processor():
        before = host()
        done = cli("doctor", "--calibrate")
        assert host() == before, "the command is a process of its own to the tests after it"
        again = json.loads(cli("doctor", "--calibrate", "--json").out)
    assert done.code == 0
    row, about, told = done.out.strip().splitlines()
    assert re.match(r"KnownCore\('\w+', '.*, \d{4}-\d\d-\d\d, weft doctor --calibrate'", row)
    assert about == "# {vendor_id}, family {cpu family}, model {model}".format_map(cpuinfo())
    assert told == f"# {UNLISTED}"
    assert again["listed"] is False
    assert again["row"]["fma_latency"] > 0
    assert [path.name.partition("-")[0] for path in tmp_path.glob("weft-cache/core-*")] == ["core"]
