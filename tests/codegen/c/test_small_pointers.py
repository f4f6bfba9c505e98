"""Programs of 32 bits: pointers that generated code reads have slots of 8 bytes on every machine."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.codegen.c.test_networks import STRICT, package_of

import weft.native
from weft.cli.onnx_builder import GraphBuilder
from weft.codegen import abi
from weft.driver.export.c_source import export_c

RT = Path(weft.native.__file__).parent / "rt"
SMALL = ("cc", "-m32", *STRICT, "-ffreestanding", "-fno-stack-protector", "-fno-pic")

AT_ONE_PLACE = """
#include "weft_abi.h"
{checks}
"""

PROGRAM = """
#include "two.h"
static const unsigned bits[{count}] = {{ {inputs} }};
static void call(int number, int a, const void *b, int n) {{
  __asm__ volatile("int $0x80" : "+a"(number) : "b"(a), "c"(b), "d"(n) : "memory");
}}
void *memcpy(void *to, const void *from, unsigned n) {{
  for (unsigned i = 0; i < n; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}}
void *memset(void *to, int c, unsigned n) {{
  for (unsigned i = 0; i < n; i++) ((volatile char *)to)[i] = (char)c;
  return to;
}}
__attribute__((force_align_arg_pointer)) void _start(void) {{
  static float x[{count}], y[{made}];
  memcpy(x, bits, sizeof x);
  int status = two_run(x, y);
  call(4, 1, y, sizeof y);
  call(1, status, 0, 0);
}}
"""


def built(source: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "tried.c").write_text(source)
    return subprocess.run([*SMALL, "tried.c", *more], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True)
def _needs_a_compiler_for_32_bits(tmp_path: Path) -> None:
    if shutil.which("cc") is None or built("int x;", tmp_path, "-c").returncode != 0:
        pytest.skip("cc makes no programs of 32 bits")


def test_the_members_of_a_context_are_where_generated_code_reads_them(tmp_path: Path) -> None:
    places = {
        "arena": abi.ARENA,
        "arena_bytes": abi.ARENA_BYTES,
        "constants": abi.CONSTANTS,
        "alloc": abi.ALLOC,
        "free": abi.FREE,
        "threads": abi.THREADS,
        "failed_assert": abi.FAILED_ASSERT,
        "detail": abi.DETAIL,
        "arena_needed": abi.ARENA_NEEDED,
        "outside": abi.OUTSIDE,
        "output": abi.OUTPUT,
        "keep": abi.KEEP,
        "host": abi.HOST,
    }
    offsets = [f"__builtin_offsetof(struct weft_ctx, {name}) == {at}" for name, at in places.items()]
    offsets += [
        f"__builtin_offsetof(weft_tensor, shape) == {abi.TENSOR_SHAPE}",
        f"sizeof(weft_tensor) == {abi.TENSOR_BYTES}",
    ]
    checks = "\n".join(f"typedef char at{k}[({o}) ? 1 : -1];" for k, o in enumerate(offsets))
    done = built(AT_ONE_PLACE.format(checks=checks), tmp_path, f"-I{RT}", "-c")
    assert (done.returncode, done.stderr) == (0, "")


def two_layers() -> ModelProto:
    """Returns two products with a maximum between them, so that there is an arena: `x` [3, 4] -> `y` [3, 2]."""
    g = GraphBuilder("two")
    x = g.input("x", (3, 4))
    rng = np.random.default_rng(0)
    first, second = (g.weight(rng.standard_normal(s).astype(np.float32)) for s in ((4, 5), (5, 2)))
    g.output(g.op("MatMul", g.op("Relu", g.op("MatMul", x, first)), second), "y")
    return g.model()


def test_a_model_runs_in_a_program_of_32_bits(tmp_path: Path) -> None:
    package = package_of(two_layers(), "c")
    export_c(package, tmp_path / "two.c")
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    bits = ", ".join(f"{v}u" for v in struct.unpack("12I", x.tobytes()))
    source = PROGRAM.format(count=x.size, made=6, inputs=bits)
    done = built(source, tmp_path, "two.c", "-O2", "-nostdlib", "-static", "-o", "main")
    assert (done.returncode, done.stderr) == (0, "")
    try:
        ran = subprocess.run([tmp_path / "main"], capture_output=True, check=False)
    except OSError:
        pytest.skip("this system runs no programs of 32 bits")
    assert ran.returncode == 0
    (wanted,) = (weft.compile(two_layers())(x),)
    np.testing.assert_allclose(np.frombuffer(ran.stdout, np.float32).reshape(3, 2), wanted, rtol=1e-5)
