"""Whatever the arguments and the files are, a command ends with 0, 1 or 2 and words: never with a traceback, never with a bug."""

from __future__ import annotations

import random
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import Cli

from weft.cli.lazy import load
from weft.cli.main import COMMANDS

LONG = {"demo", "bench"}
"""Commands that measure: of these, only what is refused before is tried."""

FILES = [
    "mlp.onnx", "conv.onnx", "mlp.weft", "x.npy", "empty", "text", "zeros", "short", "magic", "header", "folder",
    "nowhere", "nowhere/x", "", ".", "/dev/null", "/proc/self/mem", "objects.npy", "integers.npy", "complex.npy", "words.npy",
    "nothing.npy", "scalar.npy", "record.npy", "swapped.npy", "é…", "-", "x" * 300,
]  # fmt: skip
WORDS = [
    "0", "1", "-1", "2", "99999999999999999999", "1.5", "nan", "inf", "cpu", "cpu -mattr=sse4", "cpu -mattr=", "cpu -cores=0",
    "cpu -cores=²", "cpu -cores=2", " ", "batch=2", "batch=", "=", "batch=0", "batch=²", "bach=2", "batch=" + "9" * 20, "x=x.npy",
    "x=", "=x.npy", "y=x.npy", "x=folder", "x=text", "model", "strict", "fusion", "winograd", "[bold]", "[/]", "%s", "{0}", "\n",
]  # fmt: skip


def write_files(folder: Path, artifact: bytes) -> None:
    """Writes files that are nearly what a command takes."""
    for name, data in {
        "empty": b"", "text": b"hello world\n", "zeros": bytes(5000), "short": b"WEFT", "magic": b"WEFT" + bytes(100),
        "header": b"\x93NUMPY\x01\x00\xff\xff{" + bytes(100), "mlp.weft": artifact,
    }.items():  # fmt: skip
        (folder / name).write_bytes(data)
    (folder / "folder").mkdir()
    arrays: dict[str, Any] = {
        "integers": np.ones((2, 24), np.int64), "complex": np.ones((2, 24), np.complex64), "words": np.array(["a"]),
        "nothing": np.ones((0, 24), np.float32), "scalar": np.float32(1), "record": np.zeros(2, dtype=[("a", "f4")]),
        "swapped": np.ones((2, 24), ">f4"),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Returns bytes of which some are other, missing, or new."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        at, kind = rng.randrange(len(made)), rng.random()
        if kind < 0.6:
            made[at] = rng.randrange(256)
        elif kind < 0.8:
            del made[at : at + rng.randrange(1, 200)]
        else:
            made[at:at] = rng.randbytes(rng.randrange(1, 30))
    return bytes(made)


def value(rng: random.Random, option: Any) -> str:
    """Returns a value for an option: one of its kind, or any."""
    if rng.random() < 0.3:
        return rng.choice([*WORDS, *FILES])
    if option.name in ("seed", "threads", "seconds", "opt_level", "older_than"):
        return rng.choice(["1", "1", "2", "0", "3"])
    given = {
        "shape": "batch=2", "target": "cpu", "precision": "strict", "without": "fusion", "given": "x=x.npy", "schedule": "1",
        "asm": "1", "against": "", "output": "made", "save": "outputs", "trace": "t.json",
    }  # fmt: skip
    return given.get(option.name) or rng.choice(FILES)


def arguments(rng: random.Random) -> list[str]:
    """Returns the words of a call."""
    name = rng.choice([n for n in COMMANDS if n not in LONG])
    words, command = [name], load(name, COMMANDS[name])
    parts = getattr(command, "commands", {})
    if parts:
        part = rng.choice([*parts])
        words, command = [name, part], parts[part]
    for p in command.params:
        if p.param_type_name == "argument":
            words += [rng.choice(["damaged", "damaged", "mlp.onnx", "mlp.weft", rng.choice(FILES)])] * (
                rng.random() < 0.95
            )
        elif p.required or rng.random() < 2 / len(command.params):
            words += [p.opts[0]] if p.is_flag else [p.opts[0], value(rng, p)]
    words += [rng.choice([*WORDS, *FILES])] * (rng.random() < 0.05)
    short = {"report": ["--seconds", "0"], "tune": ["--trials", "2", "--minutes", "0.01"]}
    return words + short.get(name, ["--seconds", "0.01"] if "--profile" in words else [])


def try_calls(cli: Cli, folder: Path, seed: int, count: int) -> list[str]:
    """Makes *count* calls; returns those that did not end as they should. They have a cache of their own: some clear it."""
    cli.monkeypatch.setenv("WEFT_CACHE_DIR", str(folder / "cache of calls"))
    cli("compile", "mlp.onnx", "-o", "made")
    artifact, model = Path("made").read_bytes(), Path("mlp.onnx").read_bytes()
    write_files(folder, artifact)
    rng, wrong = random.Random(seed), list[str]()
    for _ in range(count):
        broken = damaged(rng, rng.choice([model, artifact]))
        (folder / "damaged").write_bytes(broken)
        words = arguments(rng)
        try:
            done = cli(*words)
        except Exception as error:
            wrong.append(f"{shlex.join(words)}: {type(error).__name__}: {error}")
            continue
        traceback = "Traceback" in done.err and not {"-v", "--verbose"} & set(words)
        if done.code not in (0, 1, 2) or traceback or "bug in Weft" in done.err or (done.code and not done.err.strip()):
            wrong.append(f"{shlex.join(words)}: {done.code} {done.err[:500]}")
            (folder / f"damaged-{len(wrong)}").write_bytes(broken)
    return wrong


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("seed", "count"), [(1, 10), *[pytest.param(n, 30, marks=pytest.mark.slow) for n in range(2)]])
def test_calls(cli: Cli, tmp_path: Path, seed: int, count: int) -> None:
    assert try_calls(cli, tmp_path, seed, count) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_calls(cli: Cli, tmp_path: Path, seed: int) -> None:
    assert try_calls(cli, tmp_path, seed, 400) == []


@pytest.mark.parametrize("name", [*COMMANDS])
@pytest.mark.parametrize("words", ["--no-such-option", "a b c d e f", "--threads", "--threads x", "--seconds nan"])
def test_wrong_usage(cli: Cli, name: str, words: str) -> None:
    if name in LONG and words == "a b c d e f":
        words = "--threads 0"
    done = cli(name, *words.split())
    assert done.code == 2
    assert re.search(r"Usage|Error|usage", done.err)
