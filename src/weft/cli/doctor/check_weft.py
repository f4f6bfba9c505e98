"""The checks by `weft doctor` of Weft itself, of the packages around it, and of the tools for exported models."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from time import perf_counter
from typing import Final

import llvmlite.binding as llvm
import numpy as np

import weft
from weft.cli.console import human_bytes, human_seconds
from weft.cli.doctor.findings import Check, Finding, State
from weft.driver.cache.code_cache import Cache, default_cache
from weft.driver.function import build_function
from weft.driver.hardware import hardware_of
from weft.loop import parse_program
from weft.native import _rt
from weft.records import Pack, pack_folder
from weft.support.digest import digest
from weft.support.knobs import PRETUNED
from weft.targets import host

EXTRAS: Final = {
    "bench": "`weft demo`, and comparing with ONNX Runtime",
    "plot": "pictures of rooflines",
    "test": "running Weft's own tests",
    "torch": "compiling what `torch.export.export` makes",
}
"""The purposes of the optional packages, by the name of the extra; an extra that is not here is listed all the same."""

TESTS: Final = "test"
"""The extra that `make test` installs."""

TOOLS: Final = {
    "C compiler": (("cc", "gcc", "clang"), "linking what is exported into programs of your own", "apt install gcc"),
    "linker": (("ld", "ld.lld", "mold"), "the same", "apt install binutils"),
}
"""Programs that are used if they are there: their possible names, their purpose, and how to get one."""

ROOM: Final = 1 << 30
PROBE: Final = "def probe(x: f32[64], y: f32[64]):\n    for i in range(64):\n        y[i] = x[i] + 1.0\n"


def package(_: Path) -> Finding:
    """Which Weft it is."""
    told = f"{weft.__version__}, runtime ABI {_rt.ABI}, Python {sys.version.split()[0]}, {Path(weft.__file__).parent}"
    return Finding("weft", State.OK, told)


def code_generator(_: Path) -> Finding:
    """Whether LLVM makes code that runs: a small kernel is compiled and called."""
    told = f"LLVM {'.'.join(map(str, llvm.llvm_version_info))} (llvmlite {version('llvmlite')})"
    start = perf_counter()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    build_function(parse_program(PROBE))(x, y)
    if not np.array_equal(y, x + 1):
        return Finding("code", State.PROBLEM, f"{told}: a test kernel computes wrongly", "report this")
    return Finding(
        "code", State.OK, f"{told}: a test kernel was compiled and run in {human_seconds(perf_counter() - start)}"
    )


def cache(_: Path) -> Finding:
    """Whether compiled code can be kept: an entry is written, read, and removed."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        store = default_cache()
        key = digest(uuid.uuid4())
        store.put("probe", key, b"probe")
        works = store.get("probe", key) == b"probe"
    if not works:
        reason = str(told[-1].message).partition("\n")[0] if told else f"{store.folder} does not keep what is written"
        todo = "set WEFT_CACHE_DIR to a folder of your own; until then every model is compiled anew"
        return Finding("cache", State.PROBLEM, reason, todo)
    store.path("probe", key).unlink(missing_ok=True)
    return _room(store)


def _room(store: Cache) -> Finding:
    used, free = sum(e.nbytes for e in store.entries()), shutil.disk_usage(store.folder).free
    told = f"{store.folder}: {human_bytes(used)} of at most {human_bytes(store.limit)}, {human_bytes(free)} free"
    if free < ROOM:
        todo = "`weft cache clear`, or set WEFT_CACHE_DIR to a folder on another disk"
        return Finding("cache", State.ADVICE, f"{told}: the disk is almost full", todo)
    return Finding("cache", State.OK, told)


def pack(_: Path) -> Finding:
    """Whether Weft comes with tuning records for this machine, and whether they can be read."""
    folder = pack_folder()
    if folder is None:
        return Finding("pack", State.OK, "not used: WEFT_PACK_DIR is empty")
    found = Pack(hardware_of(host()).digest, folder)
    if not found:
        return Finding("pack", State.OK, "Weft comes with no tuning records for such a machine; `weft tune` makes some")
    told, wrong = (
        f"{len(found)} tuning records for this machine; --without {PRETUNED.name} leaves them out",
        found.unusable(),
    )
    if wrong:
        todo = "pip install --force-reinstall . (in the checkout of Weft), or write the pack again"
        return Finding("pack", State.ADVICE, f"{told}; {len(wrong)} of {found.path} can't be used", todo)
    return Finding("pack", State.OK, told)


def environment(_: Path) -> Finding:
    """Which environment variables that change Weft's behaviour are set."""
    found = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("WEFT_")]
    return Finding("environment", State.OK, ", ".join(found) or "no WEFT_ variable is set")


def needed(_: Path) -> Finding:
    """Whether the packages that Weft can't do without are there, in versions that fit."""
    found, wrong = [], []
    for text in [r for r in requires("weft") or [] if "extra ==" not in r]:
        name, wanted = _requirement(text)
        there = _version(name)
        found.append(f"{name} {there}")
        if not there or not all(fits(there, w) for w in wanted):
            wrong.append((text.partition(";")[0], there or "none"))
    if wrong:
        told = ", ".join(f"{text} is needed, and there is {there}" for text, there in wrong)
        return Finding("needed", State.PROBLEM, told, _installing([text for text, _ in wrong]))
    return Finding("needed", State.OK, ", ".join(found))


def _requirement(text: str) -> tuple[str, list[str]]:
    """Returns the name and the bounds in the text of a requirement, such as `numpy<3,>=2.0`."""
    name = re.match(r"[\w.-]+", text)
    return name[0] if name else text, re.findall(r"[<>=!~]=?\s*[\d.*]+", text.partition(";")[0])


def fits(there: str, bound: str) -> bool:
    """Tells whether a version keeps to a bound: `>=2.0`, `<3`, `==0.50.*` or `==1.2`; other bounds are taken to be kept."""
    sign, _, digits = re.split(r"((?<=[=<>])\s*)(?=\d)", bound, maxsplit=1)
    wanted = [int(d) for d in digits.split(".") if d.isdigit()]
    numbers = [int(d) for d in re.findall(r"\d+", there.partition("+")[0])]
    if sign == "==":
        return numbers[: len(wanted)] == wanted
    return {">=": numbers >= wanted, "<": numbers < wanted}.get(sign, True)


WEFT: tuple[Check, ...] = (package, code_generator, cache, pack, environment, needed)


def extras() -> Iterator[Finding]:
    """Gives, for each extra of the package, the packages installed and the missing ones."""
    wanted: dict[str, list[str]] = {}
    for text in requires("weft") or []:
        found = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", text)
        if found is not None:
            wanted.setdefault(found[2], []).append(text.partition(";")[0].strip())
    for name, texts in wanted.items():
        versions = {_requirement(text)[0]: _version(_requirement(text)[0]) for text in texts}
        told = ", ".join(f"{p} {v}" for p, v in versions.items() if v)
        missing = ", ".join(p for p, v in versions.items() if not v)
        if not missing:
            yield Finding(name, State.OK, told)
            continue
        purpose = f": for {EXTRAS[name]}" if name in EXTRAS else ""
        told += f"{'; ' if told else ''}not installed: {missing}{purpose}"
        todo = "make test" if name == TESTS else _installing([t for t in texts if not versions[_requirement(t)[0]]])
        yield Finding(name, State.ADVICE, told, f"{todo}, if you want that")


def _installing(texts: Sequence[str]) -> str:
    """Returns the command that installs packages; by their own names, for Weft is installed from its checkout alone."""
    return "pip install " + " ".join(f'"{text}"' for text in texts)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def tools() -> Iterator[Finding]:
    """Gives, for each kind of tool, which one there is."""
    for kind, (names, purpose, todo) in TOOLS.items():
        path = next(filter(None, map(shutil.which, names)), None)
        if path is None:
            yield Finding(kind, State.ADVICE, f"there is none ({', '.join(names)}): for {purpose}", todo)
            continue
        try:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
            yield Finding(kind, State.OK, f"{path}: {done.stdout.partition(chr(10))[0] or 'its version is unknown'}")
        except (OSError, subprocess.TimeoutExpired) as e:
            yield Finding(kind, State.ADVICE, f"{path} does not run: {e}", todo)


CHECKS: Final = (WEFT, extras, tools)
"""All that this module looks at: of Weft itself, of the packages beside it, and of tools."""
