/* Models and the contexts that their calls borrow. */
#include <stddef.h>

#include "internal.h"

#define CHECK_OFFSET(field, offset) typedef char offset_of_##field[offsetof(weft_ctx, field) == (offset) ? 1 : -1]
CHECK_OFFSET(parallel_for, 0);
CHECK_OFFSET(arena, 8);
CHECK_OFFSET(arena_bytes, 16);
CHECK_OFFSET(constants, 24);
CHECK_OFFSET(alloc, 32);
CHECK_OFFSET(free, 40);
CHECK_OFFSET(threads, 48);
CHECK_OFFSET(failed_assert, 52);
CHECK_OFFSET(detail, 56);
CHECK_OFFSET(arena_needed, 88);

struct weft_model {
  weft_entry plan;
  weft_entry main;
  const void *constants;
  int32_t threads;
  weft_ctx *idle; /* contexts no call is using, the last used first: its arena is the likeliest to be in cache */
};

static void *ctx_alloc(weft_ctx *ctx, int64_t bytes) {
  (void)ctx;
  return weft_scratch_push(bytes);
}

static void ctx_free(weft_ctx *ctx, void *block) {
  (void)ctx;
  weft_scratch_pop(block);
}

void weft_ctx_init(weft_ctx *ctx, const void *constants, int32_t threads) {
  static const weft_ctx empty;
  *ctx = empty;
  ctx->parallel_for = threads > 1 ? weft_parallel_for : weft_serial_for;
  ctx->constants = (const uint8_t *)constants;
  ctx->alloc = ctx_alloc;
  ctx->free = ctx_free;
  ctx->threads = threads;
  ctx->failed_assert = -1;
}

int32_t weft_ctx_reserve(weft_ctx *ctx, int64_t bytes) {
  if (bytes <= ctx->arena_bytes) return WEFT_OK;
  weft_ctx_free_arena(ctx);
  ctx->arena = (uint8_t *)weft_alloc(bytes);
  if (ctx->arena == NULL) return WEFT_NO_MEMORY;
  ctx->arena_bytes = bytes;
  return WEFT_OK;
}

void weft_ctx_free_arena(weft_ctx *ctx) {
  if (ctx->arena != NULL) weft_free(ctx->arena);
  ctx->arena = NULL;
  ctx->arena_bytes = 0;
}

weft_model *weft_model_new(weft_entry plan, weft_entry main, const void *constants, int32_t threads) {
  weft_model *model = (weft_model *)weft_alloc((int64_t)sizeof *model);
  if (model == NULL) return NULL;
  model->plan = plan;
  model->main = main;
  model->constants = constants;
  model->threads = weft_threads(threads);
  model->idle = NULL;
  return model;
}

void weft_model_free(weft_model *model) {
  while (model->idle != NULL) {
    weft_ctx *ctx = model->idle;
    model->idle = ctx->next;
    weft_ctx_free_arena(ctx);
    weft_free(ctx);
  }
  weft_free(model);
}

weft_ctx *weft_acquire(weft_model *model) {
  weft_ctx *ctx;
  weft_lock();
  ctx = model->idle;
  if (ctx != NULL) model->idle = ctx->next;
  weft_unlock();
  if (ctx != NULL) return ctx;
  ctx = (weft_ctx *)weft_alloc((int64_t)sizeof *ctx);
  if (ctx == NULL) return NULL;
  weft_ctx_init(ctx, model->constants, model->threads);
  ctx->model = model;
  return ctx;
}

void weft_release(weft_ctx *ctx) {
  weft_lock();
  ctx->next = ctx->model->idle;
  ctx->model->idle = ctx;
  weft_unlock();
}

int32_t weft_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  ctx->failed_assert = -1;
  ctx->arena_needed = 0;
  return ctx->model->plan(ctx, in, out);
}

int32_t weft_run(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  int32_t status = weft_ctx_reserve(ctx, ctx->arena_needed);
  return status != WEFT_OK ? status : ctx->model->main(ctx, in, out);
}
