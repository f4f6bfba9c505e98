/* Models and the contexts that their calls borrow. */
#include <stddef.h>

#include "internal.h"

void weft_ctx_init(weft_ctx *ctx, const void *constants, int32_t threads) {
  static const weft_ctx empty;
  *ctx = empty;
  ctx->parallel_for = threads > 1 ? weft_parallel_for : weft_serial_for;
  ctx->constants = (const uint8_t *)constants;
  ctx->alloc = weft_scratch_push;
  ctx->free = weft_scratch_pop;
  ctx->output = weft_ctx_output;
  ctx->keep = weft_ctx_keep;
  ctx->host = weft_host;
  ctx->threads = threads;
  ctx->failed_assert = -1;
  ctx->spin = 1;
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
  static const weft_model empty;
  weft_model *model = (weft_model *)weft_alloc((int64_t)sizeof *model);
  if (model == NULL) return NULL;
  *model = empty;
  model->plan = plan;
  model->main = main;
  model->constants = (const uint8_t *)constants;
  model->threads = weft_threads(threads);
  model->spin = 1;
  return model;
}

void weft_model_free(weft_model *model) {
  if (model == NULL) return;
  while (model->idle != NULL) {
    weft_ctx *ctx = model->idle;
    model->idle = ctx->next;
    weft_ctx_free_arena(ctx);
    weft_ctx_free_kept(ctx);
    if (ctx->memo != NULL) weft_free(ctx->memo);
#ifndef WEFT_FREESTANDING
    weft_strings_free(ctx);
#endif
    weft_free(ctx);
  }
  for (int k = 0; k < 2; k++) {
#ifndef WEFT_FREESTANDING
    weft_image_unmap(&model->maps[k]);
#endif
    if (model->owned[k] != NULL) weft_free(model->owned[k]);
  }
  if (model->specs != NULL) weft_free(model->specs);
  if (model->state_rows != NULL) weft_free(model->state_rows);
  weft_free(model);
}

weft_ctx *weft_acquire(weft_model *model) {
  weft_ctx *ctx;
  weft_lock();
  ctx = model->idle;
  if (ctx != NULL) model->idle = ctx->next;
  weft_unlock();
  if (ctx == NULL) {
    ctx = (weft_ctx *)weft_alloc((int64_t)sizeof *ctx);
    if (ctx == NULL) return NULL;
    weft_ctx_init(ctx, model->constants, model->threads);
    ctx->model = model;
    ctx->flush = model->flush;
    ctx->spin = model->spin;
  }
  ctx->planned = 0;
  ctx->give = NULL;
  ctx->places = NULL;
  ctx->stream_count = 0;
  return ctx;
}

void weft_release(weft_ctx *ctx) {
  if (ctx->state != NULL) (void)weft_use(ctx, NULL);
  weft_lock();
  ctx->next = ctx->model->idle;
  ctx->model->idle = ctx;
  weft_unlock();
}

/* Notes a tensor of the wrong dtype or rank; 0 when all are right. */
static int misfits(weft_ctx *ctx, int32_t first, const weft_tensor *tensors, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    const weft_spec *spec = &ctx->model->specs[first + i];
    if (tensors[i].dtype == spec->dtype && tensors[i].ndim == spec->ndim) continue;
    ctx->failed_assert = WEFT_MISFIT;
    ctx->detail[0] = first + i;
    return 1;
  }
  return 0;
}

/* Whether a tensor has a late size: its memory is asked for when it is known. */
static int is_late(const weft_spec *spec) {
  for (int32_t d = 0; d < spec->ndim; d++)
    if (spec->dims[d].size == WEFT_LATE) return 1;
  return 0;
}

/* Notes a tensor whose data can't be where it is said to be; 0 when there is none. */
static int misplaced(weft_ctx *ctx, int32_t first, const weft_tensor *tensors, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    int is_null = tensors[i].data == NULL;
    if (is_late(&ctx->model->specs[first + i])) continue;
    if (is_null ? weft_tensor_bytes(&tensors[i]) == 0
                : (uintptr_t)tensors[i].data % (uintptr_t)weft_dtype_bytes(ctx->model->specs[first + i].dtype) == 0)
      continue;
    ctx->failed_assert = is_null ? WEFT_NO_DATA : WEFT_MISALIGNED;
    ctx->detail[0] = first + i;
    return 1;
  }
  return 0;
}

/* Gives a call the tensors of its state, if the model has one, beside the caller's. */
static int32_t begin_state(weft_ctx *ctx, const weft_tensor **in, weft_tensor **out) {
  if (ctx->model->states == 0) return WEFT_OK;
  if (ctx->state != NULL) return weft_state_begin(ctx->state, in, out);
  ctx->failed_assert = WEFT_NO_STATE;
  return WEFT_BAD_INPUT;
}

int32_t weft_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  const weft_model *model = ctx->model;
  int32_t status;
  ctx->failed_assert = -1;
  ctx->arena_needed = 0;
  ctx->planned = 0;
  status = begin_state(ctx, &in, &out);
  if (status != WEFT_OK) return status;
  if (misfits(ctx, 0, in, model->inputs) || misfits(ctx, model->inputs, out, model->outputs)) return WEFT_BAD_INPUT;
  status = model->plan(ctx, in, out);
  ctx->planned = status == WEFT_OK;
  return status;
}

int32_t weft_run(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  const weft_model *model = ctx->model;
  weft_tensor *given = out;
  int32_t status;
  uint64_t before;
  ctx->failed_assert = -1;
  if (!ctx->planned) return WEFT_BAD_INPUT;
  status = begin_state(ctx, &in, &out);
  if (status != WEFT_OK) return status;
  if (ctx->arena_needed < 0) return WEFT_OK; /* a size of zero: all outputs are empty */
  if (misplaced(ctx, 0, in, model->inputs) || misplaced(ctx, model->inputs, out, model->outputs)) return WEFT_BAD_INPUT;
  status = weft_ctx_reserve(ctx, ctx->arena_needed);
  if (status != WEFT_OK) return status;
  ctx->out = out;
#ifndef WEFT_FREESTANDING
  weft_strings_forget(ctx);
#endif
  before = weft_denormals_begin(ctx->flush);
  status = model->main(ctx, in, out);
  weft_denormals_end(before);
  if (model->states > 0) {
    weft_state_end(ctx->state, status, given);
    ctx->planned = 0; /* the state may be longer now */
  }
  return status;
}
