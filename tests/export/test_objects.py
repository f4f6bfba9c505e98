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
from weft.codegen.llvm.elf import read_object
from weft.driver.export import export_folder, export_library, object_parts
from weft.driver.export_elf import write_library, write_object
from weft.driver.export_header import c_name, header_text
from weft.runtime.package import TensorSpec
from weft.support.dtypes import SCALARS, f32
from weft.support.errors import ArtifactError, ToolchainError


def run(program: Path, given: bytes) -> tuple[bytes, bytes]:
    done = subprocess.run([program], input=given, capture_output=True, check=False)
    return done.stdout, done.stderr


def link(cc: str, folder: Path, *more: str | Path) -> Path:
    """The one line that the header tells, with every warning an error, but for the runtime, which is among *more*."""
    flags = [*STRICT, f"-I{folder}", f"-I{folder / 'weft'}"]
    return build(cc, folder / "main", "-std=c99", *flags, *more, folder / "model.o")


@compilers
def test_an_object_with_its_weights(cc: str, saved: Saver, tmp_path: Path) -> None:
    mlp, folder = saved("mlp"), tmp_path / "mlp"
    made = export_folder(mlp.model.package, folder)
    assert [p.name for p in made[:2]] == ["model.o", "model.h"]
    assert {p.name for p in made[2:]} == {p.name for p in RT.iterdir() if p.suffix in (".c", ".h")} | {"weft.hpp"}
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
        ("data", ctypes.c_void_p), ("shape", ctypes.c_void_p), ("ndim", ctypes.c_int32), ("dtype", ctypes.c_int32)
    ]  # fmt: skip


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
    assert export_library(saved("mlp").model.package, tmp_path / "mlp.so")
    check_library(Library(tmp_path / "mlp.so"), saved("mlp"))


@compilers
def test_a_library_without_a_linker(cc: str, saved: Saver, library: Runtime, tmp_path: Path) -> None:
    """Weft writes it alone; the system's loader loads it, and nothing in it is both writable and executable."""
    mlp, path = saved("mlp"), tmp_path / "libmlp.so"
    assert not export_library(mlp.model.package, path, compiler="")
    handle = ctypes.CDLL(str(path))
    weights = bytes(memoryview(mlp.model.package.constants))  # type: ignore[arg-type]
    found = ctypes.addressof(ctypes.c_char.in_dll(handle, "weft_model_weights"))
    assert ctypes.string_at(found, len(weights)) == weights
    mapped = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if str(path) in line]
    assert "r-xp" in {row[1] for row in mapped}
    assert not [row for row in mapped if "w" in row[1] and "x" in row[1]]
    (tmp_path / "open.c").write_text(
        f'#include <dlfcn.h>\n#include "weft.h"\n#define FIND(name) dlsym(library, "weft_model_" #name)\n{header_call(mlp)}'
        "static int32_t mlp_load(const weft_options *options, weft_model **model, weft_error *error) {\n"
        f'  void *library = dlopen("{path}", RTLD_NOW);\n'
        "  weft_linked parts = {FIND(header), FIND(image), FIND(weights)};\n"
        "  return weft_link(&parts, 0, options, model, error);\n}\n"
        '#include "linked.c"\n'
    )
    (tmp_path / "model.h").touch()
    flags = ["-std=c99", *STRICT, f"-I{RT}", f"-I{tmp_path}", f"-I{HERE}"]
    program = build(cc, tmp_path / "main", *flags, tmp_path / "open.c", library(cc, "-std=c99"), "-ldl")
    assert run(program, mlp.input_bytes) == (mlp.output_bytes, b"")


def header_call(mlp: Saved) -> str:
    """The function of the model's header that calls it."""
    text = header_text(mlp.model.package, "mlp", embedded=True)
    call = text[text.index("static inline int32_t mlp_run") :]
    return call[: call.index("\n}\n") + 3]


def test_the_command_writes_either(
    saved: Saver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    digits = HERE.parents[1] / "examples" / "digits" / "digits.onnx"

    def command(output: str) -> str:
        monkeypatch.setattr("sys.argv", ["weft", "compile", str(digits), "-o", output])
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code in (0, None)
        return capsys.readouterr().out

    assert command("digits/").startswith("wrote digits/: ")
    assert {p.name for p in Path("digits").iterdir()} >= {"model.o", "model.h", "weft"}
    assert "digits_load" in Path("digits/model.h").read_text()
    assert "no C compiler" not in command("digits.so")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "there is no C compiler: programs link the runtime's sources" in command("digits.so")


def test_names_become_identifiers() -> None:
    taken: set[str] = set()
    names = ["x", "x", "x y", "größe", "9", "_a", "", "int", "ctx", "a/b:0"]
    assert [c_name(n, taken) for n in names] == [
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
    for write in (write_object, lambda m, p, s: write_library(m, "x.so", p, s)):
        first, again = (b"".join(write("x86_64", *object_parts(package, "x"))) for _ in range(2))
        assert first == again
