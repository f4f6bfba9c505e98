/* Calls of kernels whose arguments are in an array. */
#ifndef WEFT_CALL_H
#define WEFT_CALL_H

#include "weft_abi.h"

#define WEFT_FEW_ARGUMENTS 16 /* as nearly all kernels have: few pushes for each call */
#define WEFT_MOST_ARGUMENTS 128

#define WEFT_FOUR(a, i) a[i], a[(i) + 1], a[(i) + 2], a[(i) + 3]
#define WEFT_SIXTEEN(a, i) WEFT_FOUR(a, i), WEFT_FOUR(a, (i) + 4), WEFT_FOUR(a, (i) + 8), WEFT_FOUR(a, (i) + 12)
#define WEFT_FOUR_TYPES int64_t, int64_t, int64_t, int64_t
#define WEFT_SIXTEEN_TYPES WEFT_FOUR_TYPES, WEFT_FOUR_TYPES, WEFT_FOUR_TYPES, WEFT_FOUR_TYPES

typedef void (*weft_kernel)(void);
typedef int32_t (*weft_kernel_of_few)(weft_ctx *, WEFT_SIXTEEN_TYPES);
typedef int32_t (*weft_kernel_of_most)(weft_ctx *, WEFT_SIXTEEN_TYPES, WEFT_SIXTEEN_TYPES, WEFT_SIXTEEN_TYPES,
                                       WEFT_SIXTEEN_TYPES, WEFT_SIXTEEN_TYPES, WEFT_SIXTEEN_TYPES, WEFT_SIXTEEN_TYPES,
                                       WEFT_SIXTEEN_TYPES);

/* Calls int32_t kernel(weft_ctx *, void *buffer..., int64_t scalar...). There is room for WEFT_MOST_ARGUMENTS in `a`, whatever
 * `count` says: a kernel takes no notice of arguments beyond its own. */
static inline int32_t weft_call_kernel(weft_kernel kernel, weft_ctx *ctx, const int64_t *a, int32_t count) {
  if (count <= WEFT_FEW_ARGUMENTS) return ((weft_kernel_of_few)kernel)(ctx, WEFT_SIXTEEN(a, 0));
  return ((weft_kernel_of_most)kernel)(ctx, WEFT_SIXTEEN(a, 0), WEFT_SIXTEEN(a, 16), WEFT_SIXTEEN(a, 32), WEFT_SIXTEEN(a, 48),
                                       WEFT_SIXTEEN(a, 64), WEFT_SIXTEEN(a, 80), WEFT_SIXTEEN(a, 96), WEFT_SIXTEEN(a, 112));
}

#endif
