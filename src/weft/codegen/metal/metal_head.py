"""The beginning of every source in Metal Shading Language: its library, how floats are computed, and how loops are unrolled.

Apple's compilers reassociate sums, and assume that there is no NaN, unless options forbid it. Those of versions before 3.2
know no pragma for it: whoever compiles for them sets `-fno-fast-math`, or `MTLCompileOptions.fastMathEnabled` to false.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = """#include <metal_stdlib>
using namespace metal;
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
#ifndef INT32_MIN
#define INT32_MIN (-2147483647 - 1)
#endif
#ifndef INT64_MIN
#define INT64_MIN (-9223372036854775807l - 1)
#endif
#define WEFT_MAY_ALIAS
#define WEFT_GLOBAL device
#define WEFT_SHUFFLE(x, lane) simd_shuffle(x, ushort(lane))
#define WEFT_UNROLL(n) _Pragma("clang loop unroll(full)")
"""
