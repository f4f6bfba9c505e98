"""Saved models for devices: a host program and kernels in the place of code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.driver.device.test_models_on_device import each_target, inputs_of
from tests.models import mlp
from tests.runtime.devices.fake_driver import FakeDriver

import weft
from weft.driver.build import build
from weft.driver.export.linkable import object_parts
from weft.native import _rt
from weft.runtime import DeviceCode, Package, ProcessorCode, Replay
from weft.runtime.artifact import PAGE, artifact_parts, read_artifact
from weft.runtime.device_image import read_device_image, write_device_image
from weft.support.errors import ArtifactError

BINARIES = Replay(b"program", ((None, 0),) * 3, DeviceCode("cuda", "", ("a", "größe", "c"), (b"one", b"two\0", b"one")))
"""A host program whose three kernels are in two binaries."""


@pytest.fixture(scope="module")
def package() -> Package:
    """A model for OpenCL, which takes no device to make."""
    return build(mlp(batch=2, widths=(8, 4, 3)), "opencl", cache=None).package


def saved(package: Package) -> bytes:
    return b"".join(artifact_parts(package))


def test_a_file_has_all_of_a_package(package: Package) -> None:
    again = read_artifact(saved(package))
    for name in ("replay", "inputs", "outputs", "asserts", "target", "machine", "features", "states", "image"):
        assert getattr(again, name) == getattr(package, name)
    assert again.replay is not None
    assert again.code_bytes == package.code_bytes > 0
    assert bytes(memoryview(again.constants)) == bytes(memoryview(_rt.pack(package.constants)))  # type: ignore[arg-type]
    assert saved(again) == saved(package)


def test_a_reader_without_devices_refuses_it_by_name(package: Package) -> None:
    """One knows the features that it may ignore, and that a code begins inside of its image."""
    found = _rt.Artifact(np.frombuffer(saved(package), np.uint8), 1)
    assert found.features == ["weft.device"]
    assert found.readonly == 0  # nothing is executable
    assert (found.plan, found.main) == (0, 0)


def test_binaries_are_there_once() -> None:
    image = write_device_image(BINARIES)
    assert image.count(b"one") == 1
    assert read_device_image(memoryview(image), "m.weft") == BINARIES


def test_altered_images_are_refused_or_read() -> None:
    image = write_device_image(BINARIES)
    cut = [image[:n] for n in range(len(image))]
    flipped = [
        image[:n] + bytes([image[n] ^ flip]) + image[n + 1 :] for n in range(len(image)) for flip in (1, 0x80, 255)
    ]
    answers = [answer(altered) for altered in [*cut, *flipped, image + b"\0"]]
    told = {a for a in answers if a}
    assert told == {"m.weft: the file was altered: its kernels are not where it says\n  hint: compile the model again"}
    assert all(answers[: len(cut)])
    assert answers[-1]


def beside() -> Replay:
    """A host program of the same kernels, and two of the processor's behind them; four bytes of their image are constants."""
    code = ProcessorCode(_rt.Image(b"\xc3" * PAGE + b"data", PAGE), PAGE, (0, 64))
    return replace(BINARIES, callees=(*BINARIES.callees, *code.callees), processor=code)


def test_kernels_of_the_processor_are_in_the_image() -> None:
    made = beside()
    found = read_device_image(memoryview(write_device_image(made)), "m.weft")
    assert found.processor is not None
    assert made.processor is not None
    assert bytes(memoryview(found.processor.image)) == bytes(memoryview(made.processor.image))
    assert (found.processor.readonly, found.processor.offsets) == (PAGE, (0, 64))
    assert found.callees == (*BINARIES.callees, *found.processor.callees)
    assert replace(found, callees=BINARIES.callees, processor=None) == BINARIES


def test_altered_images_with_kernels_of_the_processor_are_refused_or_read() -> None:
    image = write_device_image(beside())
    code = image.index(b"\xc3" * PAGE)
    places = [*range(code), *range(code + PAGE, len(image))]  # all but the machine code itself
    cut = [image[:n] for n in places]
    flipped = [image[:n] + bytes([image[n] ^ flip]) + image[n + 1 :] for n in places for flip in (1, 0x80, 255)]
    answers = [answer(altered) for altered in [*cut, *flipped, image + b"\0"]]
    assert {a for a in answers if a} == {
        "m.weft: the file was altered: its kernels are not where it says\n  hint: compile the model again"
    }
    assert all(answers[: len(cut)])
    for kind in (b"PROC", b"ENTR"):  # one without the other
        assert answer(image.replace(kind, b"CODE"))


def test_a_kernel_outside_of_its_image_is_refused() -> None:
    made = beside()
    assert made.processor is not None
    for code in (
        replace(made.processor, offsets=(0, PAGE)),
        replace(made.processor, readonly=PAGE + 5),
        replace(made.processor, offsets=()),
    ):
        assert answer(write_device_image(replace(made, processor=code)))


def test_a_reader_without_kernels_of_the_processor_refuses_it_by_name(package: Package) -> None:
    """One knows no feature of that name."""
    found = _rt.Artifact(np.frombuffer(saved(replace(package, replay=beside())), np.uint8), 1)
    assert found.features == ["weft.device", "weft.processor"]
    unknown = saved(replace(package, features=("weft.other",)))
    with pytest.raises(ArtifactError, match=r"it needs other, which this runtime of Weft does not have"):
        read_artifact(unknown)


def answer(image: bytes) -> str:
    """Returns the error of an image, or nothing for one that is read."""
    try:
        read_device_image(memoryview(image), "m.weft")
    except ArtifactError as error:
        return str(error)
    return ""


def test_every_damaged_byte_of_the_image_is_refused(package: Package) -> None:
    whole = np.frombuffer(saved(package), np.uint8)
    header, image = artifact_parts(package)[:2]
    for at in range(len(header), len(header) + len(image), 37):
        altered = whole.copy()
        altered[at] ^= 0x40
        with pytest.raises(ArtifactError, match="its checksum is wrong"):
            read_artifact(altered.tobytes())


def test_a_program_that_is_none_is_refused_when_it_is_loaded(package: Package, driver: FakeDriver) -> None:
    altered = replace(package, replay=replace(BINARIES, device=DeviceCode("cuda", "", (), ()), callees=()))
    with pytest.raises(ArtifactError, match="these bytes are no host program"):
        weft.load(saved(altered))


def test_it_is_not_for_programs_in_c(package: Package) -> None:
    with pytest.raises(ArtifactError) as error:
        object_parts(package, "model")
    assert str(error.value) == (
        "a model for opencl has no code that a program in C could link\n"
        "  hint: save it as a .weft file, which weft.load runs, or compile it for a cpu target"
    )


@each_target
def test_a_loaded_model_computes_the_same_without_the_compiler(target: str, tmp_path: Path) -> None:
    model = weft.compile(mlp(batch=2, widths=(8, 4, 3)), target=target)
    model.save(tmp_path / "m.weft")
    (given,), code = (
        inputs_of(model),
        (
            "import sys, numpy as np, weft; m = weft.load(sys.argv[1]); np.save(sys.argv[3], m(np.load(sys.argv[2])));"
            "print(sorted({'llvmlite', 'onnx', 'weft.ir', 'weft.driver', 'weft.codegen'} & set(sys.modules)))"
        ),
    )
    np.save(tmp_path / "x.npy", given)
    command = [sys.executable, "-c", code, *[str(tmp_path / n) for n in ("m.weft", "x.npy", "y.npy")]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), model(given))


def test_machine_code_is_loaded_as_it_was_saved(driver: FakeDriver, tmp_path: Path) -> None:
    model = weft.compile(mlp(batch=2, widths=(8, 4, 3)), target="cuda", cache=False)
    model.save(tmp_path / "m.weft")
    loaded, given = weft.load(tmp_path / "m.weft"), inputs_of(model)
    np.testing.assert_array_equal(loaded.run(given)[0], model.run(given)[0])


def test_the_cache_has_models_for_devices(driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    source = mlp(batch=2, widths=(8, 4, 3)).SerializeToString()
    model = weft.compile(source, target="cuda")

    def fails(*_: object) -> Callable[..., object]:
        raise AssertionError("it is compiled again")

    monkeypatch.setattr("weft.driver.compile.resolve", fails)
    given = inputs_of(model)
    np.testing.assert_array_equal(weft.compile(source, target="cuda").run(given)[0], model.run(given)[0])
