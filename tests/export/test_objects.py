"""`weft compile -o FOLDER/` and `-o LIBRARY.so`: what C programs link, or look up while they run."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.export.conftest import HERE, OPEN, RT, STRICT, Saved, Saver, build, compilers
from tests.export.conftest import Library as Runtime

import weft
from weft.cli.main import main
from weft.codegen.objects import write_object
from weft.codegen.objects.read_elf import read_object
from weft.driver.export.c_header import c_names, header_text
from weft.driver.export.linkable import export_folder, export_library, exported_names, object_parts
from weft.native import _rt, header_files, source_files
from weft.runtime.package import TensorSpec
from weft.support.dtypes import SCALARS, f32
from weft.support.errors import ArtifactError, ToolchainError
from weft.support.unique_names import UniqueNames


def run(program: Path, given: bytes) -> tuple[bytes, bytes]:
    done = subprocess.run([program], input=given, capture_output=True, check=False)
    return done.stdout, done.stderr


def link(cc: str, folder: Path, *more: str | Path) -> Path:
    """The one line that the header tells, with every warning an error, but for the runtime, which is among *more*."""
    flags = [*STRICT, f"-I{folder}", f"-I{folder / 'weft'}"]
    return build(cc, folder / "main", "-std=c99", *flags, *more, folder / "model.o")


@pytest.mark.sampled(1)
@compilers
def test_an_object_with_its_weights(cc: str, saved: Saver, tmp_path: Path) -> None:
    mlp, folder = saved("mlp"), tmp_path / "mlp"
    made = export_folder(mlp.model.package, folder)
    assert [p.name for p in made[:2]] == ["model.o", "model.h"]
    assert {p.name for p in made[2:]} == {p.name for p in (*source_files(), *header_files())}
    program = link(cc, folder, HERE / "linked.c", *(folder / "weft").glob("*.c"))
    assert run(program, mlp.input_bytes) == (mlp.output_bytes, b"")


@compilers
def test_an_object_with_its_weights_in_a_file(cc: str, saved: Saver, library: Runtime, tmp_path: Path) -> None:
    mlp, folder = saved("mlp"), tmp_path / "mlp"
    assert folder / "weights.bin" in export_folder(mlp.model.package, folder, embed=False)
    weights = folder / "weights.bin"
    program = link(cc, folder, HERE / "linked.c", f'-DWEIGHTS="{weights}"', library(cc, "-std=c99"))
    assert run(program, mlp.input_bytes) == (mlp.output_bytes, b"")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + b"?")
    assert run(program, mlp.input_bytes) == (b"", b"the file was altered: its checksum is wrong\n")
    weights.write_bytes(whole + b"?")
    assert run(program, mlp.input_bytes) == (b"", b"these are another model's weights: the file has another size\n")
    weights.unlink()
    assert run(program, mlp.input_bytes) == (b"", b"there is no such file\n")


def test_the_header_is_cpp_too(saved: Saver, tmp_path: Path) -> None:
    export_folder(saved("tiny_gpt2_decode").model.package, tmp_path / "gpt")
    source = tmp_path / "main.cpp"
    source.write_text('#include "model.h"\n#include "model.h"\nint main() { return gpt_load(NULL, NULL, NULL); }\n')
    flags = [*STRICT, f"-I{tmp_path / 'gpt'}", f"-I{tmp_path / 'gpt' / 'weft'}", "-c", str(source), "-o", "/dev/null"]
    done = subprocess.run(["g++", "-std=c++17", *flags], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_object_is_whole(saved: Saver) -> None:
    """No relocation, no undefined symbol, nothing writable; the model's bytes are in it."""
    package = saved("tiny_resnet").model.package
    parts, symbols = object_parts(package, "net")
    found = read_object(b"".join(write_object("x86_64", parts, symbols)))
    assert found.relocations == ()
    assert {s.name for s in found.symbols if s.section == 0} == {""}
    assert {s.name for s in found.symbols} == {"", "net_header", "net_image", "net_weights", "net_plan", "net_main"}
    by_name = {s.name: s for s in found.sections}
    assert by_name[".text.net"].data == bytes(memoryview(package.image))
    assert by_name[".rodata.net_weights"].data == bytes(memoryview(package.constants))  # type: ignore[arg-type]
    assert not any(s.flags & 1 for s in found.sections)


class Tensor(ctypes.Structure):
    """weft_tensor."""

    _fields_: ClassVar[list[tuple[str, type[Any]]]] = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class Library:
    """A library with the runtime in it, as any language can use it: here through ctypes."""

    def __init__(self, path: Path) -> None:
        self.lib = ctypes.CDLL(str(path))
        self.lib.weft_acquire.restype = ctypes.c_void_p
        self.model = ctypes.c_void_p()
        assert self.lib.weft_open(None, ctypes.byref(self.model), None) == 0

    def __call__(self, x: np.ndarray, y: np.ndarray) -> None:
        shapes = [np.array(a.shape, np.int64) for a in (x, y)]
        tensors = [Tensor(a.ctypes.data, s.ctypes.data, a.ndim, f32.code) for a, s in zip((x, y), shapes, strict=True)]
        ctx = ctypes.c_void_p(self.lib.weft_acquire(self.model))
        assert self.lib.weft_plan(ctx, ctypes.byref(tensors[0]), ctypes.byref(tensors[1])) == 0
        assert shapes[1].tolist() == list(y.shape)
        assert self.lib.weft_run(ctx, ctypes.byref(tensors[0]), ctypes.byref(tensors[1])) == 0
        self.lib.weft_release(ctx)


def check_library(library: Library, mlp: Saved) -> None:
    y = np.empty((OPEN, 10), np.float32)
    library(mlp.inputs["x"], y)
    np.testing.assert_array_equal(y, mlp.outputs[0])


def test_a_library_with_the_runtime(saved: Saver, tmp_path: Path) -> None:
    export_library(saved("mlp").model.package, tmp_path / "mlp.so")
    check_library(Library(tmp_path / "mlp.so"), saved("mlp"))


def test_a_library_exports_what_the_header_declares_and_no_more(saved: Saver, tmp_path: Path) -> None:
    export_library(saved("mlp").model.package, tmp_path / "mlp.so")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", tmp_path / "mlp.so"], capture_output=True, text=True, check=True
    )
    assert sorted(line.split()[-1] for line in listed.stdout.splitlines()) == sorted(exported_names())
    assert {"weft_open", "weft_load", "weft_run", "weft_dtype_name"} <= set(exported_names())


def test_message_without_a_compiler(saved: Saver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ToolchainError) as caught:
        export_library(saved("mlp").model.package, tmp_path / "m.so")
    assert str(caught.value) == (
        f"{tmp_path}/m.so can't be made: that takes a C compiler, and there is none\n"
        "  hint: apt install gcc, or the like; or save a .weft file, which needs no compiler and which weft_load opens"
    )
    assert not (tmp_path / "m.so").exists()


def test_message_for_a_library_of_another_machine(saved: Saver, tmp_path: Path) -> None:
    package = replace(saved("mlp").model.package, machine="riscv64")
    with pytest.raises(ToolchainError) as caught:
        export_library(package, tmp_path / "m.so")
    assert str(caught.value) == (
        f"{tmp_path}/m.so can't be made: it is for riscv64, and the C compiler here for {_rt.MACHINE}\n"
        "  hint: write a FOLDER/, and link it there with the runtime's sources; or save a .weft file"
    )


def test_the_command_writes_either(
    saved: Saver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    digits = HERE.parents[1] / "examples" / "digits" / "digits.onnx"

    def command(output: str, code: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["weft", "compile", str(digits), "-o", output])
        with pytest.raises(SystemExit) as done:
            main()
        assert (done.value.code or 0) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    assert command("digits/").startswith("wrote digits/: ")
    assert {p.name for p in Path("digits").iterdir()} >= {"model.o", "model.h", "weft"}
    assert "digits_load" in Path("digits/model.h").read_text()
    assert command("digits.so").startswith("wrote digits.so: ")
    Path("digits.so").unlink()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "that takes a C compiler, and there is none" in command("digits.so", 1)
    assert not Path("digits.so").exists()


def test_names_become_identifiers() -> None:
    names = ["x", "x", "x y", "größe", "9", "_a", "", "int", "ctx", "a/b:0"]
    assert c_names(names, UniqueNames(first=2)) == [
        "x",
        "x_2",
        "x_y",
        "gr__e",
        "x_9",
        "x_a",
        "x_3",
        "x_int",
        "x_ctx",
        "a_b_0",
    ]


def test_a_header_for_every_dtype_and_rank_compiles(saved: Saver, tmp_path: Path) -> None:
    specs = tuple(TensorSpec(f"in/{t}", t, ("n + 1", 3, "n + 1")[:rank]) for t in SCALARS.values() for rank in (0, 3))
    package = replace(saved("mlp").model.package, inputs=specs, outputs=specs)
    none = replace(package, inputs=(), outputs=specs[:1])
    text = header_text(package, "all", embedded=True) + header_text(none, "none", embedded=False)
    (tmp_path / "model.c").write_text(f"{text}int main(void) {{ return 0; }}\n")
    command = ["gcc", "-std=c99", *STRICT, f"-I{RT}", "-c", tmp_path / "model.c", "-o", tmp_path / "m.o"]
    assert subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False).stderr == ""


def test_message_for_a_machine_without_elf(saved: Saver, tmp_path: Path) -> None:
    package = replace(saved("mlp").model.package, machine="wasm32")
    with pytest.raises(ArtifactError) as caught:
        export_library(package, tmp_path / "m.so")
    assert str(caught.value) == "there are no ELF files for wasm32\n  hint: save a .weft file"


def test_message_for_a_compiler_that_fails(saved: Saver, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        export_library(saved("mlp").model.package, tmp_path / "m.so", compiler="false")
    assert str(caught.value) == "the C compiler failed: 1\n  hint: see whether it compiles other programs"


def test_objects_are_the_same_every_time(saved: Saver) -> None:
    package = weft.load(saved("mlp").path).package
    first, again = (b"".join(write_object("x86_64", *object_parts(package, "x"))) for _ in range(2))
    assert first == again
