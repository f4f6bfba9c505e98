"""The beginning of every source in CUDA C++: C's names of types, and how loops are unrolled."""

from __future__ import annotations

from typing import Final

HEAD: Final = """typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define WEFT_MAY_ALIAS
#define WEFT_GLOBAL
#define WEFT_SHUFFLE(x, lane) __shfl_sync(0xffffffffu, x, lane)
#define WEFT_PRAGMA(text) _Pragma(#text)
#define WEFT_UNROLL(n) WEFT_PRAGMA(unroll n)
"""
