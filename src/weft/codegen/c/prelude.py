"""The beginning of every file of generated C."""

from __future__ import annotations

from typing import Final

HEAD: Final = """#include <stdbool.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_MAY_ALIAS __attribute__((may_alias))
#define WEFT_SLOT __attribute__((aligned(8)))
#else
#define WEFT_MAY_ALIAS
#define WEFT_SLOT
#endif
#if defined(__clang__)
#define WEFT_PRAGMA(text) _Pragma(#text)
#define WEFT_UNROLL(n) WEFT_PRAGMA(unroll n)
#elif defined(__GNUC__)
#define WEFT_PRAGMA(text) _Pragma(#text)
#define WEFT_UNROLL(n) WEFT_PRAGMA(GCC unroll n)
#else
#define WEFT_UNROLL(n)
#endif
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define WEFT_SHUFFLE(numbers, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define WEFT_SHUFFLE(numbers, a, b, ...) __builtin_shuffle(a, b, (numbers){__VA_ARGS__})
#endif
#ifndef WEFT_EXPORT
#define WEFT_EXPORT
#endif

typedef struct weft_ctx weft_ctx;
typedef int32_t weft_task(weft_ctx *ctx, void *args, int64_t begin, int64_t end);
struct weft_ctx {
  int32_t (*parallel_for)(weft_ctx *ctx, weft_task *task, void *args, int64_t n) WEFT_SLOT;
  void *arena WEFT_SLOT;
  int64_t arena_bytes WEFT_SLOT;
  const void *constants WEFT_SLOT;
  void *(*alloc)(weft_ctx *ctx, int64_t bytes) WEFT_SLOT;
  void (*release)(weft_ctx *ctx, void *memory) WEFT_SLOT;
  int32_t threads WEFT_SLOT;
  int32_t failed_assert;
  int64_t detail[4] WEFT_SLOT;
  int64_t arena_needed WEFT_SLOT;
  int32_t outside WEFT_SLOT;
  void *(*output)(weft_ctx *ctx, int64_t number, const int64_t *shape) WEFT_SLOT;
  void *(*keep)(weft_ctx *ctx, int64_t number, int64_t bytes) WEFT_SLOT;
  int32_t (*host)(weft_ctx *ctx, int32_t number, const int64_t *args) WEFT_SLOT;
};
typedef struct {
  void *data WEFT_SLOT;
  int64_t *shape WEFT_SLOT;
  int32_t ndim WEFT_SLOT, dtype;
} weft_tensor;
"""
"""The beginning of every file; the context is that of `codegen.abi`."""
