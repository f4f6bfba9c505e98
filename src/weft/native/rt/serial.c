/* Parallel loops on one thread. */
#include "internal.h"

int32_t weft_serial_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n) {
  return n > 0 ? fn(ctx, args, 0, n) : WEFT_OK;
}
