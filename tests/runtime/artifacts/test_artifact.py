"""Saved models: what is written is read back, and nothing damaged or foreign gets through."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import WEIGHTS, affine, rows

from weft.native import _rt
from weft.runtime import Model, load
from weft.runtime.artifact import read_artifact, write_artifact
from weft.support.errors import ArtifactError


@pytest.fixture
def saved(flat: FlatImage, tmp_path: Path) -> Path:
    path = tmp_path / "affine.weft"
    affine(flat).save(path)
    return path


def message(path: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        load(path)
    return str(caught.value).removeprefix(f"{path}: ")


def test_saved_model_computes_the_same(flat: FlatImage, saved: Path) -> None:
    for a, b in zip(load(saved, threads=1)(rows(50)), affine(flat)(rows(50)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_everything_is_read_back(flat: FlatImage, tmp_path: Path) -> None:
    before = replace(
        affine(flat).package,
        target="a machine",
        machine=_rt.MACHINE,
        readonly=flat.readonly,
        arena=1 << 40,
        notes={"model": "b5bb  größe.onnx", "memory": "buffer  bytes\nt1  64\n", "empty": ""},
    )
    write_artifact(before, tmp_path / "m")
    after = read_artifact(tmp_path / "m")
    for name in (
        "plan",
        "main",
        "inputs",
        "outputs",
        "asserts",
        "readonly",
        "target",
        "machine",
        "features",
        "arena",
        "notes",
    ):
        assert getattr(after, name) == getattr(before, name)
    assert bytes(memoryview(after.image)) == flat.blob
    assert isinstance(after.constants, _rt.Block)
    assert np.frombuffer(memoryview(after.constants), np.float32)[16:].tolist() == WEIGHTS.tolist()


def test_a_loaded_model_saves_the_same_file(saved: Path, tmp_path: Path) -> None:
    load(saved).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_names_of_any_text_survive(flat: FlatImage, tmp_path: Path) -> None:
    names = ("", "x/y:0", "größe\n", "{0}", "a" * 5000)
    package = affine(flat).package
    inputs = tuple(replace(package.inputs[0], name=n, shape=(n or "N", 4)) for n in names)
    write_artifact(replace(package, inputs=inputs), tmp_path / "m")
    assert read_artifact(tmp_path / "m").inputs == inputs
    write_artifact(replace(package, notes={"zero": "a\0b"}), tmp_path / "m")
    assert read_artifact(tmp_path / "m").notes == {"zero": "a\ufffdb"}


def test_saving_is_deterministic_and_replaces(flat: FlatImage, saved: Path) -> None:
    before = saved.read_bytes()
    affine(flat).save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == ["affine.weft"]


def test_loaded_model_needs_no_compiler(saved: Path) -> None:
    code = (
        "import sys, numpy as np, weft.runtime as r; y, t = r.load(sys.argv[1])(np.ones((2, 4), np.float32));"
        "print(y.sum(), sorted({'llvmlite', 'onnx', 'weft.ir', 'weft.driver'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(saved)], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "1.0 []"


def test_message_for_no_file(tmp_path: Path) -> None:
    assert message(tmp_path / "none.weft") == "there is no such file\n  hint: check the path"


def test_messages_for_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert message(tmp_path / "pipe") == "it is not a plain file\n  hint: check the path"
    assert message(tmp_path) == "it is not a plain file\n  hint: check the path"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert (
        message(tmp_path / "loop")
        == f"the file cannot be opened: the system's error {errno.ELOOP}\n  hint: check the path"
    )


def test_message_for_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert message(tmp_path / "empty") == "the file is not a model saved by Weft\n  hint: compile the model and save it"


@pytest.mark.parametrize("content", [b"WEFT", b"ELF" * 100])
def test_message_for_a_foreign_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "foreign").write_bytes(content)
    assert message(tmp_path / "foreign") == (
        "the file is not a model saved by Weft\n  hint: compile the model and save it"
    )


def test_message_for_a_truncated_file(saved: Path) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[:-1])
    assert message(saved) == (
        f"the file is truncated: it has {len(whole) - 1} of {len(whole)} bytes\n  hint: copy it again"
    )


def test_message_for_a_file_that_has_grown(saved: Path) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole + b"!")
    assert message(saved) == (
        f"the file has grown: it has {len(whole) + 1} of {len(whole)} bytes\n  hint: copy it again"
    )


def test_message_for_altered_weights(saved: Path) -> None:
    whole = bytearray(saved.read_bytes())
    whole[-1] ^= 1
    saved.write_bytes(whole)
    assert message(saved) == "the file was altered: its checksum is wrong\n  hint: copy it again"
    y = load(saved, verify=False)(rows(2))[0]
    assert y.shape == (2, 4)


AGAIN = "make it again with this version: weft compile MODEL -o"


def test_message_for_another_format(saved: Path) -> None:
    whole = bytearray(saved.read_bytes())
    struct.pack_into("<I", whole, 4, 99)
    saved.write_bytes(whole)
    assert message(saved) == (f"the file has format 99, and this Weft reads {_rt.FORMAT}\n  hint: {AGAIN} {saved}")


def save_for(flat: FlatImage, path: Path, **facts: object) -> None:
    write_artifact(replace(affine(flat).package, **facts), path)  # type: ignore[arg-type]


OTHER = "\n  hint: compile the model for this machine, or with a target that it has (weft compile --target)"


def test_message_for_another_abi(saved: Path) -> None:
    whole = bytearray(saved.read_bytes())
    struct.pack_into("<I", whole, 104, 7)
    struct.pack_into("<Q", whole, 16, _rt.checksum(whole[24 : struct.unpack_from("<Q", whole, 40)[0]]))
    saved.write_bytes(whole)
    assert message(saved) == (f"its code has ABI 7, and this Weft has {_rt.ABI}\n  hint: {AGAIN} {saved}")


def test_message_for_another_machine(flat: FlatImage, tmp_path: Path) -> None:
    save_for(flat, tmp_path / "m", machine="z80", target="a home computer")
    assert message(tmp_path / "m") == f"the model is for z80, and this is {_rt.MACHINE}{OTHER}"


def test_message_for_missing_features(flat: FlatImage, tmp_path: Path) -> None:
    save_for(flat, tmp_path / "m", machine=_rt.MACHINE, features=("fpu", "warp_drive", "time-travel"))
    assert message(tmp_path / "m") == f"this processor lacks warp_drive time-travel{OTHER}"


def test_message_for_features_of_another_runtime(flat: FlatImage, tmp_path: Path) -> None:
    save_for(flat, tmp_path / "m", machine=_rt.MACHINE, features=("fpu", "weft.teleport"))
    told = "it needs teleport, which this runtime of Weft does not have"
    assert message(tmp_path / "m") == f"{told}\n  hint: {AGAIN} {tmp_path / 'm'}"


def test_a_failed_save_leaves_nothing(flat: FlatImage, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(ArtifactError, match="taken can't be written: it is not a plain file"):
        affine(flat).save(tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_model_keeps_one_copy_of_its_constants(flat: FlatImage) -> None:
    model = affine(flat)
    assert Model(model.package).package.constants is model.package.constants


HELD = """
import sys, weft.runtime as r
def held(kind):
    return sum(int(s.split()[1]) for s in open('/proc/self/smaps') if s.startswith(kind + ':')) << 10
before, private = held('Rss'), held('Anonymous')
m = r.load(sys.argv[1], copy=sys.argv[2] == 'copy', verify=sys.argv[2] != 'trust')
print(held('Rss') - before, held('Anonymous') - private)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["map", "copy", "trust"])
def test_a_loaded_model_holds_its_weights_once(flat: FlatImage, tmp_path: Path, how: str) -> None:
    """Mapped weights are the system's copy of the file, which processes share; unverified, they are read when they are used."""
    weights, little = 64 << 20, 4 << 20
    package = replace(affine(flat).package, constants=np.ones(weights, np.uint8))
    write_artifact(package, tmp_path / "m")
    command = [sys.executable, "-c", HELD, str(tmp_path / "m"), how]
    grown, private = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert (grown > weights - little) == (how != "trust")
    assert grown < weights + little
    assert (private > weights - little) == (how == "copy")


def test_a_loaded_file_may_be_replaced_and_deleted(flat: FlatImage, tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_for(flat, path, constants=np.tile(WEIGHTS, 10_000))
    model = load(path)
    wanted = [np.array(y) for y in model(rows(3))]
    save_for(flat, path, constants=np.zeros(40_000, np.float32))
    path.unlink()
    for a, b in zip(model(rows(3)), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def unprotected() -> int:
    """How many mappings of this process are writable and executable: other libraries have some."""
    modes = [line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines()]
    return sum("w" in mode and "x" in mode for mode in modes)


def open_files() -> Counter[str]:
    """Returns the files that this process has open, temporary ones and memory among them: threads beside may make pipes."""
    found: Counter[str] = Counter()
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the list itself, or of another thread
            found[os.readlink(f"/proc/self/fd/{fd}")] += 1
    return Counter({name: n for name, n in found.items() if name.startswith("/") and not name.startswith("/proc/")})


def test_loading_leaves_nothing_behind(saved: Path) -> None:
    """Neither an open file, nor a temporary one, nor a page that is writable and executable."""
    before = open_files(), unprotected()
    model = load(saved)
    assert (open_files(), unprotected()) == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
    assert model(rows(1))[0].shape == (1, 4)


def test_the_checksum_shows_any_change_of_a_byte_the_length_and_the_order() -> None:
    data = np.random.default_rng(0).integers(0, 256, 300, np.uint8)
    variants = [data[:n] for n in range(300)] + [np.roll(data, 64), np.roll(data, 8)]
    for at in range(300):
        for bit in (1, 128):
            changed = data.copy()
            changed[at] ^= bit
            variants.append(changed)
    sums = {_rt.checksum(np.ascontiguousarray(v)) for v in [data, *variants]}
    assert len(sums) == 1 + len(variants)
    assert _rt.checksum(np.zeros(64, np.uint8)) != _rt.checksum(np.zeros(65, np.uint8))
