/* Memory whose size is known while a call runs: outputs of late sizes, and what generated code keeps and lets grow. */
#include <stddef.h>

#include "internal.h"

static const weft_kept none;

/* Makes room for numbers below `count`; 0 when there is no memory. */
static int number_up_to(weft_ctx *ctx, int64_t count) {
  weft_kept *more;
  if (count <= ctx->kept_count) return 1;
  if (count > INT32_MAX) return 0;
  more = (weft_kept *)weft_alloc(count * (int64_t)sizeof *more);
  if (more == NULL) return 0;
  for (int64_t i = 0; i < count; i++) more[i] = i < ctx->kept_count ? ctx->kept[i] : none;
  if (ctx->kept != NULL) weft_free(ctx->kept);
  ctx->kept = more;
  ctx->kept_count = count;
  return 1;
}

/* The memory of a number, of at least so many bytes. It doubles, so that many small steps copy each byte about once. */
static uint8_t *kept(weft_ctx *ctx, int64_t number, int64_t bytes) {
  weft_kept *k;
  uint8_t *more;
  if (bytes < 0 || bytes > INT64_MAX / 4 || !number_up_to(ctx, number + 1)) return NULL;
  k = &ctx->kept[number];
  if (k->data != NULL && bytes <= k->bytes) return k->data;
  if (bytes < 2 * k->bytes) bytes = 2 * k->bytes;
  more = (uint8_t *)weft_alloc(bytes);
  if (more == NULL) return NULL;
  for (int64_t i = 0; i < k->bytes; i++) more[i] = k->data[i]; /* compilers make a copy by words of this */
  if (k->data != NULL) weft_free(k->data);
  k->data = more;
  k->bytes = bytes;
  return more;
}

/* Outputs have the even numbers. */
void *weft_ctx_keep(weft_ctx *ctx, int64_t number, int64_t bytes) {
  return number < 0 || number >= INT32_MAX / 2 ? NULL : kept(ctx, 2 * number + 1, bytes);
}

void *weft_ctx_output(weft_ctx *ctx, int64_t number, const int64_t *shape) {
  weft_tensor *out = &ctx->out[number];
  int64_t bytes;
  for (int32_t d = 0; d < out->ndim; d++) out->shape[d] = shape[d];
  bytes = weft_tensor_bytes(out);
  if (bytes < 0) return NULL;
  out->data = ctx->give != NULL ? ctx->give(ctx->give_state, (int32_t)number, out) : kept(ctx, 2 * number, bytes);
  return bytes == 0 && out->data == NULL ? ctx : out->data; /* nothing is written where there are no elements */
}

void weft_on_output(weft_ctx *ctx, weft_give give, void *state) {
  ctx->give = give;
  ctx->give_state = state;
}

void weft_ctx_free_kept(weft_ctx *ctx) {
  for (int64_t i = 0; i < ctx->kept_count; i++)
    if (ctx->kept[i].data != NULL) weft_free(ctx->kept[i].data);
  if (ctx->kept != NULL) weft_free(ctx->kept);
  ctx->kept = NULL;
  ctx->kept_count = 0;
}
