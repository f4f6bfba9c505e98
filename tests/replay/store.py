"""The stored kernels: a line of hashes each, in files that Git shows the changes of, and their programs beside, compressed.

stored/avx512.txt             resnet18/conv2d.3 0f3c... 77aa... 91c0... e51b...
stored/avx512.programs.xz     the programs of these, to show what differs
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from tests.replay.kernels import STAGES, Stages, digest

FOLDER = Path(__file__).parent / "stored"
MOST_LINES = 60
"""Lines that are shown of a difference."""

Hashes = tuple[str, ...]


def read_hashes(machine: str) -> dict[str, Hashes]:
    """Returns the stored hashes of all kernels of a machine, by `model/kernel`."""
    path = FOLDER / f"{machine}.txt"
    rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return {name: tuple(hashes) for name, *hashes in rows}


def read_programs(machine: str) -> dict[str, str]:
    """Returns the stored programs by their hashes."""
    path = FOLDER / f"{machine}.programs.xz"
    return dict(json.loads(lzma.decompress(path.read_bytes()))) if path.exists() else {}


def write(machine: str, kernels: Mapping[str, Stages], kept: Mapping[str, Hashes]) -> None:
    """Stores *kernels*, and of those that were stored before the ones in *kept*."""
    before = read_programs(machine)
    hashes = {**kept, **{name: k.hashes() for name, k in kernels.items()}}
    made = {digest(text): text for k in kernels.values() for text in (k.loops, k.scheduled, k.lowered)}
    used = sorted({h for row in hashes.values() for h in row[:-1]})
    programs = {h: made[h] if h in made else before[h] for h in used}
    FOLDER.mkdir(exist_ok=True)
    rows = [f"{name} {' '.join(row)}\n" for name, row in sorted(hashes.items())]
    (FOLDER / f"{machine}.txt").write_text("".join(rows))
    (FOLDER / f"{machine}.programs.xz").write_bytes(
        lzma.compress(json.dumps(programs).encode(), preset=9 | lzma.PRESET_EXTREME)
    )


def difference(stored: Hashes, made: Stages, programs: Mapping[str, str]) -> str:
    """Returns how a kernel differs from the stored one: the first stage at which it does, and both programs there."""
    stage = next(n for n, (a, b) in enumerate(zip(stored, made.hashes(), strict=True)) if a != b)
    if STAGES[stage] == "llvm":
        return f"the same program is written as other LLVM IR:\n{made.lowered}"
    before, after = programs.get(stored[stage], ""), str(getattr(made, STAGES[stage]))
    lines = list(unified_diff(before.splitlines(), after.splitlines(), "stored", "now", lineterm="", n=3))
    more = [f"... {len(lines) - MOST_LINES} lines more"] if len(lines) > MOST_LINES else []
    return "\n".join([f"the {STAGES[stage]} program differs", *lines[:MOST_LINES], *more])
