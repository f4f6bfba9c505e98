"""A driver of CUDA that runs kernels on the processor (`fake_cuda.c`), and the C++ compiler of the host in the place of NVRTC.

So the very text that NVRTC compiles is run, with its threads, its barriers and the arguments of its launches; helpers that are
instructions of a GPU are replaced by those in C.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.grid.host_kernels import compiled, entry, grid_library

from weft.codegen.c_family.helpers import helpers
from weft.codegen.c_family.kernel_facts import read_facts
from weft.codegen.cuda import backend
from weft.codegen.cuda.async_copies import COPY_HELPERS
from weft.codegen.cuda.cuda_dialect import UPDATE_HELPERS
from weft.codegen.cuda.cuda_head import HEAD
from weft.codegen.cuda.fragments import FRAGMENT_HELPERS, GATHER
from weft.codegen.cuda.group_products import GROUP_HELPERS
from weft.codegen.cuda.nvrtc import Cubin
from weft.runtime.devices import cuda_library
from weft.targets.instructions import GROUP_COLUMNS, GROUP_INSTRUCTIONS

SOURCES = [Path(__file__).with_name(name) for name in ("fake_cuda.c", "fake_streams.c")]
LIVE = ("blocks", "modules", "streams", "contexts", "pinned", "graphs")
"""What tests ask for by name: `pinned` is memory of the host that the device may use."""

WORDS = """
#define __global__
#define __shared__ static
#define __device__
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))
struct weft_dim { unsigned x, y, z; };
extern "C" {
extern weft_dim threadIdx, blockIdx;
void grid_barrier(void); void grid_warp_barrier(void); void grid_shuffle(void *, int, int);
}
template <typename T> static inline T __shfl_sync(unsigned, T x, int lane) { return grid_shuffle(&x, sizeof x, lane), x; }
#define __syncthreads() grid_barrier()
#define __syncwarp() grid_warp_barrier()
template <typename T> static inline T atomicCAS(T *at, T old, T made) {
  const T seen = *at;
  if (seen == old) *at = made;
  return seen;
}
template <typename T> static inline void atomicAdd(T *at, T x) { *at += x; }
template <typename T> static inline void atomicMin(T *at, T x) { *at = x < *at ? x : *at; }
template <typename T> static inline void atomicMax(T *at, T x) { *at = x > *at ? x : *at; }
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define WEFT_QUAD(name, kind) \\
  struct __attribute__((aligned(16), may_alias)) name { kind x, y, z, w; }; \\
  static inline name make_##name(kind x, kind y, kind z, kind w) { return {x, y, z, w}; }
#define WEFT_TWO(name, kind) \\
  struct __attribute__((aligned(8), may_alias)) name { kind x, y; }; \\
  static inline name make_##name(kind x, kind y) { return {x, y}; }
WEFT_TWO(float2, float)
WEFT_TWO(int2, int)
WEFT_TWO(uint2, unsigned)
WEFT_QUAD(float4, float)
WEFT_QUAD(int4, int)
WEFT_QUAD(uint4, unsigned)
"""
WARP_PRODUCT = """
extern "C" void fake_warp_product(int kind, float *c, const uint32_t *a, const uint32_t *b);
#define WEFT_MMA(terms, type, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1) do { \\
  float c_[4] = {c0, c1, c2, c3}; const uint32_t a_[4] = {a0, a1, a2, a3}, b_[2] = {b0, b1}; \\
  fake_warp_product(type[0], c_, a_, b_); \\
  c0 = c_[0], c1 = c_[1], c2 = c_[2], c3 = c_[3]; } while (0)
"""
"""The product of a warp in the place of the instruction."""
ASYNC = """
extern "C" {
void *fake_dynamic(void);
void fake_copy(int size, int read, void *to, const void *from); void fake_commit(void); void fake_wait(int);
void fake_group_product(int, int, int, void *, const uint8_t *, const uint8_t *, uint64_t);
void fake_group_product_of_registers(int, int, int, float *, const uint32_t *, const uint8_t *, uint64_t);
}
struct fake_matrix { const uint8_t *begin; uint64_t apart; };
#define WEFT_DYNAMIC(name) unsigned char *const name = (unsigned char *)fake_dynamic();
#define WEFT_COPY(kind, n, to, from, size) fake_copy(n, size, to, from)
#define WEFT_COMMIT fake_commit()
#define WEFT_WAIT(n) fake_wait(n)
#define WEFT_SHOW
#define WEFT_MATRIX(p, apart) fake_matrix{(const uint8_t *)(p), (uint64_t)(apart)}
#define WEFT_GROUP_BEGIN
#define WEFT_GROUP_COMMIT
#define WEFT_GROUP_WAIT(n)
"""
GROUPS = "".join(
    [
        f"""#define WEFT_GROUP_PRODUCT_{t}_{n}(across, c, a, b) do {{ const fake_matrix a_ = a, b_ = b; \\
  fake_group_product('{str(t)[0]}', across[0] == '1', {n}, c, a_.begin, b_.begin, b_.apart); }} while (0)
#define WEFT_GROUP_PRODUCT_{t}_{n}_registers(across, c, a0, a1, a2, a3, b) do {{ \\
  const fake_matrix b_ = b; const uint32_t a_[4] = {{a0, a1, a2, a3}}; \\
  fake_group_product_of_registers('{str(t)[0]}', across[0] == '1', {n}, c, a_, b_.begin, b_.apart); }} while (0)
#define WEFT_GROUP_KEEP_{n}(c)
"""
        for n in GROUP_COLUMNS
        for t in GROUP_INSTRUCTIONS
    ]
)
"""Copies and products of groups of warps, in the place of the instructions."""
OWN_HELPERS = {
    **FRAGMENT_HELPERS,
    "wait_for_grids": "static inline uint32_t weft_wait_for_grids() { return 0; }",
    "exp_f32": "static inline float weft_exp_f32(float x) { return __builtin_expf(x); }",
    "exp_f64": "static inline double weft_exp_f64(double x) { return __builtin_exp(x); }",
    "exp2_f32": "static inline float weft_exp2_f32(float x) { return __builtin_exp2f(x); }",
    "exp2_flushed_f32": "static inline float weft_exp2_flushed_f32(float x) { return x < -126 ? 0 : __builtin_exp2f(x); }",
    "exp_flushed_f32": "static inline float weft_exp_flushed_f32(float x) { return __builtin_expf(x); }",
    "exp_flushed_f64": "static inline double weft_exp_flushed_f64(double x) { return __builtin_exp(x); }",
    "max_number_f32": "static inline float weft_max_number_f32(float x, float y) { return __builtin_fmaxf(x, y); }",
    "max_number_f64": "static inline double weft_max_number_f64(double x, double y) { return __builtin_fmax(x, y); }",
    "round_tf32_f32": """static inline float weft_round_tf32_f32(float x) {
  if (x != x) return __builtin_nanf("");
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  bits = (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}""",
    "exp2_f64": "static inline double weft_exp2_f64(double x) { return __builtin_exp2(x); }",
}
"""The helpers that the family of C does not have: those that are instructions, and functions of the machine's library."""
_KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\)\n(fn_\w+)\((.*)\) \{')


def driver_file() -> Path:
    """The driver as a shared object."""
    return grid_library(*SOURCES)


def pretended_cubin(text: str) -> bytes:
    """The path of kernels in CUDA C++, compiled for the processor, as the driver takes it for a cubin."""
    return str(compiled(text, driver_file())).encode() + b"\0"


def host_text(text: str) -> str:
    """The text of kernels with all that they need on the processor, and the functions by which the driver calls them."""
    facts, kernels = read_facts(text)
    entries = [_entry(name, params) for name, params in _KERNEL.findall(kernels)]
    products = [ASYNC, GROUPS, WARP_PRODUCT, GATHER]
    return "\n".join(
        [
            HEAD,
            WORDS,
            *products,
            helpers(facts.helpers, {**OWN_HELPERS, **UPDATE_HELPERS, **COPY_HELPERS, **GROUP_HELPERS}),
            kernels,
            *entries,
        ]
    )


def _entry(name: str, params: str) -> str:
    types = [re.sub(r"__restrict__ |\w+$", "", p) for p in params.split(", ")]
    arguments = [f"*({t} *)p[{n}]" for n, t in enumerate(types)]
    return f'{entry(name, arguments)}\nextern "C" const int count_{name} = {len(types)};'


class FakeDriver:
    """The driver, as tests ask and prepare it."""

    def __init__(self) -> None:
        self.library: Any = ctypes.CDLL(str(driver_file()))
        self.library.fake_log.restype = ctypes.c_char_p
        self.reset()

    def reset(self, devices: int = 1, memory: int = 1 << 30) -> None:
        """Gives the machine so many devices, with so much memory; -1: a driver that finds nothing to drive."""
        self.library.fake_reset(devices, ctypes.c_size_t(memory))

    def fail(self, name: str, status: int, after: int = 0) -> None:
        """Has a function fail, after some calls that don't."""
        self.library.fake_fail(name.encode(), status, after)

    def calls(self) -> list[str]:
        """Returns what was called since the last time this was asked."""
        told: bytes = self.library.fake_log()
        made = told.decode().splitlines()
        self.library.fake_forget()
        return made

    def live(self) -> dict[str, int]:
        """Returns how many things there are that nobody has given back."""
        return {name: self.library.fake_live(n) for n, name in enumerate(LIVE)}


def forget_driver() -> None:
    """Has the runtime look for the driver again."""
    cuda_library.library.cache_clear()
    cuda_library.find_devices.cache_clear()


def use_fake_driver(patch: pytest.MonkeyPatch) -> FakeDriver:
    """Has the runtime use the driver; whoever asks calls `forget_driver` in the end."""
    patch.setattr(cuda_library, "LIBRARY", str(driver_file()))
    forget_driver()
    return FakeDriver()


def use_host_compiler(patch: pytest.MonkeyPatch) -> None:
    """Has kernels compiled for the processor."""
    patch.setattr(backend, "whole_source", lambda source: host_text(source.text))
    patch.setattr(backend, "compile_cubin", lambda text, arch: Cubin(pretended_cubin(text), {}))
