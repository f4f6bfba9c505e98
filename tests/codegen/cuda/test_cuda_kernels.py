"""Kernels as CUDA C++ and as machine code: threads, memories and barriers, and what the compiler tells of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.lower.threaded import tiled_matmul
from tests.schedule.programs import matmul
from tests.support.devices import needs_nvrtc

from weft.codegen import Module, SourceCode, backend_of, compile_program, link
from weft.codegen.cuda import nvrtc_library
from weft.codegen.cuda.nvrtc import compile_cubin
from weft.codegen.cuda.resources import Resources, read_resources
from weft.loop import parse_program
from weft.lower import lower
from weft.support.errors import InputError, LoweringError, ToolchainError
from weft.targets import parse_target
from weft.targets.cuda_machines import ARCHITECTURES, LISTED, cuda

SM_90 = cuda("sm_90")
HALVED = """
@function(kernel=1)
def f(x: f32[64]):
    for b in bound(0, 1, thread="blockIdx.x"):
        for t in bound(0, 64, thread="threadIdx.x"):
            x[t] = x[t] * 0.5
"""


def test_a_tiled_product(golden: Callable[[str], None]) -> None:
    flat = lower(tiled_matmul(matmul(64, 64, 64)).program, SM_90, verify=True)
    golden(backend_of(SM_90).listing(flat, SM_90))


def test_a_warp_has_a_barrier_of_its_own() -> None:
    text = HALVED.replace("x[t] = x[t] * 0.5", 'call("weft.barrier.warp")')
    assert "__syncwarp();" in backend_of(SM_90).listing(parse_program(text), SM_90)


EXCHANGED = """
@function(kernel=1)
def f(x: f32[64], n: i64[64], b: bool[64], h: f16[64], d: f64[64]):
    for b0 in bound(0, 1, thread="blockIdx.x"):
        for t in bound(0, 64, thread="threadIdx.x"):
"""


def exchanged(*buffers: str) -> str:
    """A kernel of 64 threads in which each takes what the next of its warp has in *buffers*."""
    kinds = {"x": "f32", "n": "i64", "b": "bool", "h": "f16", "d": "f64"}
    lines = []
    for b in buffers:
        lines += [f'own_{b} = alloc("register", {kinds[b]}[1])', f'taken_{b} = alloc("register", {kinds[b]}[1])']
    for b in buffers:
        shuffle = f'call("weft.shuffle.warp", taken_{b}.at(0), own_{b}.at(0), (t + 1) % 32)'
        lines += [f"own_{b}[0] = {b}[t]", shuffle, f"{b}[t] = taken_{b}[0]"]
    return EXCHANGED + "".join([f"            {line}\n" for line in lines])


def test_threads_of_a_warp_exchange_registers() -> None:
    text = backend_of(SM_90).listing(parse_program(exchanged("x", "h")), SM_90)
    assert "*taken_x = weft_shuffle_f32(*own_x, " in text
    assert "*taken_h = weft_shuffle_u16(*own_h, " in text


@needs_nvrtc
def test_shuffles_are_instructions() -> None:
    assert compile_program(parse_program(exchanged("x", "n", "b", "h", "d")), SM_90).data


def test_memory_of_warps_that_no_shuffle_replaces() -> None:
    text = HALVED.replace("x[t] = x[t] * 0.5", 'w = alloc("warp", f32[32])')
    with pytest.raises(
        LoweringError, match="w is in warp memory, which its accesses do not let shuffles take the place of"
    ):
        backend_of(SM_90).listing(parse_program(text + "            w[t % 32] = x[t]\n"), SM_90)


@pytest.mark.parametrize("arch", LISTED)
def test_a_kernel_waits_for_those_before_it_where_it_may_start_early(arch: str) -> None:
    copied = HALVED.replace("x: f32[64]", "x: f32[64], y: f32[64]").replace("x[t] = x[t]", "x[t] = y[t]")
    text = backend_of(cuda(arch)).write(parse_program(copied), cuda(arch)).text
    assert ("{\n  const uint32_t waited = weft_wait_for_grids();\n  y += waited;\n  const" in text) == (arch != "sm_80")
    assert ("fn_f_waits = 1" in text) == (arch != "sm_80")


@needs_nvrtc
@pytest.mark.parametrize("arch", LISTED)
def test_machine_code_is_of_its_architecture(arch: str) -> None:
    module = compile_program(parse_program(HALVED), cuda(arch))
    assert (module.kind, module.entries) == ("cubin", ("f",))
    assert module.data[:4] == b"\x7fELF"
    assert module.data[18:20] == (190).to_bytes(2, "little")  # EM_CUDA
    code = link([module], cuda(arch))
    assert isinstance(code, SourceCode)
    assert code.symbols == {"f": "fn_f"}
    assert code.binaries == {"f": module.data}


OPERATIONS = """
@function(kernel=1)
def f(x: f16[64], y: bf16[64], z: f32[64], n: i64[64], d: f64[64]):
    for b in bound(0, 1, thread="blockIdx.x"):
        for t in bound(0, 64, thread="threadIdx.x"):
            x[t] = f16(min(f32(x[t]), z[t]) / 3.0)
            y[t] = bf16(max(floor(z[t]), round_even(z[t]) + sqrt(z[t])))
            n[t] = n[t] // 3 + n[t] % 5 + i64(z[t])
            d[t] = floor(d[t]) + sqrt(d[t]) + f64(y[t])
"""


@needs_nvrtc
def test_helpers_are_instructions() -> None:
    assert compile_program(parse_program(OPERATIONS), cuda("sm_80")).data


def test_kernels_of_one_name_are_not_linked() -> None:
    made = Module("cubin", b"", entries=("f",))
    with pytest.raises(ToolchainError, match="the kernel f is defined twice"):
        link([made, made], SM_90)


def test_kernels_are_no_code_of_the_processor() -> None:
    with pytest.raises(ToolchainError) as error:
        backend_of(SM_90).image(SourceCode("cuda", ""), SM_90)
    assert str(error.value) == (
        "kernels for CUDA are no machine code of this processor\n  hint: weft.compile loads them on the device"
    )


@needs_nvrtc
def test_what_a_kernel_takes() -> None:
    text = 'extern "C" __global__ void f(float *x) { __shared__ float s[256]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); '
    found = compile_cubin(text + "x[threadIdx.x] = s[255 - threadIdx.x]; }", "sm_90").resources
    assert found["f"].shared == 1024
    assert 0 < found["f"].registers < 32
    assert found["f"].spills == 0


def test_a_log_of_the_assembler() -> None:
    log = """ptxas info    : Compiling entry function 'f' for 'sm_80'
ptxas         .     48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 72 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem, 376 bytes cmem[0]
ptxas info    : Compiling entry function 'g' for 'sm_80'
ptxas info    : Used 8 registers, 368 bytes cmem[0]
"""
    assert read_resources(log) == {"f": Resources(72, 1024, 48, 44), "g": Resources(8, 0, 0, 0)}


@needs_nvrtc
def test_source_that_nvrtc_refuses() -> None:
    with pytest.raises(ToolchainError, match=r"NVRTC refused the kernels for sm_90: (.|\n)*nonsense") as error:
        compile_cubin("void f() { nonsense; }", "sm_90")
    assert error.value.hint == "this is a bug in Weft"


@needs_nvrtc
def test_an_architecture_that_nvrtc_does_not_know() -> None:
    with pytest.raises(ToolchainError) as error:
        compile_cubin("", "sm_11")
    assert (
        error.value.hint
        == "use an architecture that this NVRTC knows, or a newer one: pip install -U nvidia-cuda-nvrtc"
    )


def test_a_machine_without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc_library, "library_path", lambda: None)
    nvrtc_library.library.cache_clear()
    with pytest.raises(ToolchainError) as error:
        compile_cubin("", "sm_90")
    assert str(error.value) == (
        "NVRTC, which compiles CUDA C++, is not installed\n"
        "  hint: install Weft with its extra 'cuda': pip install '.[cuda]' in the folder of the checkout"
    )
    monkeypatch.undo()
    nvrtc_library.library.cache_clear()


def test_targets_by_name() -> None:
    for arch in ARCHITECTURES:
        assert parse_target(f"cuda -arch={arch}") == cuda(arch)
    assert parse_target("cuda -arch=sm_80 -arch=sm_90").isa.cpu == "sm_90"
    with pytest.raises(InputError) as error:
        parse_target("cuda -arch=sm_12")
    assert str(error.value) == (
        "there is no architecture 'sm_12' of CUDA\n  hint: use one of sm_80, sm_86, sm_89, sm_90, sm_100, sm_120"
    )
    with pytest.raises(InputError) as error:
        parse_target("cuda -mattr=sm_90")
    assert str(error.value) == "target option '-mattr=sm_90' is not understood\n  hint: use -arch=sm_N"


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((9, 0), "sm_90"), ((8, 7), "sm_86"), ((12, 1), "sm_120"), ((7, 5), "sm_80"), (None, "sm_80")],
)
def test_the_target_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] | None, arch: str
) -> None:
    monkeypatch.setattr("weft.targets.cuda_machines.compute_capability", lambda: capability)
    assert cuda() == replace(cuda(arch))
