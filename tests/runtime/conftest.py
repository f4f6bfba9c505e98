"""Hand-written generated code: tests/runtime/kernels.c as one flat image, built once."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RT = Path(str(files("weft.native") / "rt"))
NATIVE = RT.parent

STRICT_C = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror"]
FLAT_C = [  # no symbol from outside: no stack guard, no table of addresses, no loop turned into a call of memcpy
    "-fPIC",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fvisibility=hidden",
    "-fno-tree-loop-distribute-patterns",
]


@dataclass(frozen=True)
class FlatImage:
    blob: bytes
    symbols: dict[str, int]

    @property
    def readonly(self) -> int:
        return self.symbols["readonly"]


def tool(*command: str | Path) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def flat(tmp_path_factory: pytest.TempPathFactory) -> FlatImage:
    out = tmp_path_factory.mktemp("flat")
    tool("gcc", *STRICT_C, *FLAT_C, f"-I{RT}", "-c", HERE / "kernels.c", "-o", out / "k.o")
    tool("ld", "-T", HERE / "flat.ld", "--no-warn-rwx-segments", out / "k.o", "-o", out / "k.elf")
    tool("objcopy", "-O", "binary", out / "k.elf", out / "k.bin")
    lines = (line.split() for line in tool("nm", out / "k.elf").splitlines())
    return FlatImage((out / "k.bin").read_bytes(), {name: int(address, 16) for address, _, name in lines})
