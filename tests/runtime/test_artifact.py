"""Saved models: what is written is read back, and nothing damaged or foreign gets through."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import WEIGHTS, affine, rows

from weft.native import _rt
from weft.runtime import Model, host, load
from weft.runtime.artifact import PREFIX_SIZE, read_artifact, write_artifact
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
    before = affine(flat).package
    before = replace(before, target="a machine", machine=host.machine(), readonly=flat.readonly)
    write_artifact(before, tmp_path / "m")
    after = read_artifact(tmp_path / "m")
    for name in ("plan", "main", "inputs", "outputs", "asserts", "readonly", "target", "machine", "features"):
        assert getattr(after, name) == getattr(before, name)
    assert bytes(after.image) == flat.blob
    assert isinstance(after.constants, _rt.Block)
    assert np.frombuffer(memoryview(after.constants), np.float32)[16:].tolist() == WEIGHTS.tolist()


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
    assert message(tmp_path / "none.weft") == "there is no such file"


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


def test_any_altered_byte_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    for at in (*range(PREFIX_SIZE), *range(PREFIX_SIZE, len(whole), 97), len(whole) - 1):
        altered = bytearray(whole)
        altered[at] ^= 0x20
        saved.write_bytes(altered)
        with pytest.raises(ArtifactError):
            load(saved)


def test_message_for_another_format(saved: Path) -> None:
    whole = bytearray(saved.read_bytes())
    struct.pack_into("<I", whole, 4, 99)
    saved.write_bytes(whole)
    assert message(saved) == (
        "the file has format 99, and this Weft reads 2\n  hint: save the model again with this version of Weft"
    )


def save_for(flat: FlatImage, path: Path, **facts: object) -> None:
    write_artifact(replace(affine(flat).package, **facts), path)  # type: ignore[arg-type]


def test_message_for_another_machine(flat: FlatImage, tmp_path: Path) -> None:
    save_for(flat, tmp_path / "m", machine="z80", target="a home computer")
    assert message(tmp_path / "m") == (
        f"the model is for z80, and this is {host.machine()}\n"
        "  hint: compile the model for this machine (it was compiled for a home computer)"
    )


def test_message_for_missing_features(flat: FlatImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "features", lambda: frozenset({"avx2", "sse41"}))
    save_for(flat, tmp_path / "m", machine=host.machine(), features=("sse4.1", "avx512_vnni", "amx-tile"))
    assert message(tmp_path / "m") == (
        "this processor lacks avx512_vnni, amx-tile\n"
        f"  hint: compile the model for this machine (it was compiled for {host.machine()})"
    )


def test_features_are_read_from_the_system(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu sse4_1 avx512_vnni\nbugs\t\t: none\n")
    assert host.features(tmp_path / "cpuinfo") == frozenset(("fpu", "sse41", "avx512vnni"))
    assert host.features(tmp_path / "none") is None
    (tmp_path / "other").write_text("nothing to see\n")
    assert host.features(tmp_path / "other") is None


def test_a_failed_save_leaves_nothing(flat: FlatImage, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        affine(flat).save(tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_model_keeps_one_copy_of_its_constants(flat: FlatImage) -> None:
    model = affine(flat)
    assert Model(model.package).package.constants is model.package.constants


def test_a_loaded_model_holds_its_weights_once(flat: FlatImage, tmp_path: Path) -> None:
    """What the process holds grows by the weights and little else; the file itself is not mapped."""
    weights = 64 << 20
    package = replace(affine(flat).package, constants=np.ones(weights, np.uint8))
    write_artifact(package, tmp_path / "m")
    code = (
        "import sys, weft.runtime as r\n"
        "held = lambda: sum(int(s.split()[1]) for s in open('/proc/self/smaps') if s.startswith('Rss:')) << 10\n"
        "before = held(); m = r.load(sys.argv[1]); print(held() - before, sys.argv[1] in open('/proc/self/maps').read())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m")], check=True, capture_output=True, text=True)
    grown, is_mapped = done.stdout.split()
    assert weights <= int(grown) < weights + (4 << 20)
    assert is_mapped == "False"


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
