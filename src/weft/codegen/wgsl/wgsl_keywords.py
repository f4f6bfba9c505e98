"""The words that WGSL, and the text of kernels, leave no room for as names of variables (WGSL, section 15.1, reserved words)."""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop
override requires return struct switch true var while NULL Self abstract active alignas alignof as asm asm_fragment async
attribute auto await become cast catch class co_await co_return co_yield coherent column_major common compile
compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype delete demote demote_to_helper do
dynamic_cast enum explicit export extends extern external fallthrough filter final finally friend from fxgroup get goto
groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules match mediump meta mod
module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null
nullptr of operator package packoffset partial pass patch pixelfragment precise precision premerge private protected pub
public readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof smooth snorm static
static_assert static_cast std subroutine super target template this thread_local throw trait try type typedef typeid typename
typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield array atomic bool
f16 f32 i32 u32 ptr vec2 vec3 vec4 mat2x2 mat3x3 mat4x4 sampler texture select all any abs ceil floor round trunc sqrt min
max exp2 bitcast extractBits firstLeadingBit storageBarrier workgroupBarrier atomicLoad atomicXor
atomicAdd atomicMin atomicMax atomicStore atomicCompareExchangeWeak given thread block
"""
KEYWORDS: Final = frozenset(_WORDS.split())
"""The keywords and reserved words of the language, its functions and types that kernels use, and the inputs of kernels."""
