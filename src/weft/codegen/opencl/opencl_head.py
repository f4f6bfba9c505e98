"""The beginning of every source in OpenCL C: C's names of types, and how loops are unrolled."""

from __future__ import annotations

from typing import Final

HEAD: Final = """#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT32_MIN INT_MIN
#define INT64_MIN LONG_MIN
#define WEFT_MAY_ALIAS
#define WEFT_GLOBAL volatile global
#define WEFT_UNROLL(n) __attribute__((opencl_unroll_hint(n)))
"""
