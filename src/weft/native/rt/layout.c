/* Checks where the members are that generated code reads: no object is made where a compiler puts one elsewhere. */
#include "weft_abi.h"

#include <stddef.h>

#define AT(kind, member, offset) typedef char weft_##kind##_##member[offsetof(struct kind, member) == (offset) ? 1 : -1]

AT(weft_ctx, parallel_for, 0);
AT(weft_ctx, arena, 8);
AT(weft_ctx, arena_bytes, 16);
AT(weft_ctx, constants, 24);
AT(weft_ctx, alloc, 32);
AT(weft_ctx, free, 40);
AT(weft_ctx, threads, 48);
AT(weft_ctx, failed_assert, 52);
AT(weft_ctx, detail, 56);
AT(weft_ctx, arena_needed, 88);
AT(weft_ctx, outside, 96);
AT(weft_ctx, output, 104);
AT(weft_ctx, keep, 112);
AT(weft_ctx, host, 120);
AT(weft_tensor, shape, 8);
AT(weft_tensor, ndim, 16);
AT(weft_tensor, dtype, 20);
typedef char weft_tensor_is_24_bytes[sizeof(weft_tensor) == 24 ? 1 : -1];
