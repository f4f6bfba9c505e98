/* Why a run stopped, in words. */
#include <stddef.h>

#include "internal.h"

/* What is wrong with a tensor. */
static void explain_tensor(const weft_ctx *ctx, int32_t status, weft_error *error) {
  const weft_spec *spec;
  if (error == NULL) return;
  if (ctx->failed_assert == WEFT_NO_STATE) {
    (void)weft_fail(error, status, "the model has state, and the context has none: call weft_use() first", NULL, NULL);
    return;
  }
  spec = &ctx->model->specs[ctx->detail[0]];
  (void)weft_fail(error, status, ctx->detail[0] < ctx->model->inputs ? "input '{s}' " : "output '{s}' ", spec->name, NULL);
  if (ctx->failed_assert == WEFT_NO_DATA) weft_say(error, "has no data: its pointer is NULL");
  else if (ctx->failed_assert == WEFT_MISALIGNED)
    weft_say(error, "has data at an address that is no multiple of its elements' size");
  else {
    weft_say(error, "is to be of type ");
    weft_say(error, weft_dtype_name(spec->dtype));
    weft_say(error, " and of rank ");
    weft_say_number(error, spec->ndim);
  }
}

void weft_explain(const weft_ctx *ctx, int32_t status, weft_error *error) {
  const weft_model *m = ctx->model;
  const char *format = "the model stopped with status {0}";
  int64_t values[4] = {status, 0, 0, 0};
  uint32_t number;
  if (status == WEFT_OK) format = "";
  else if (status == WEFT_NO_MEMORY) format = "there is no memory left to run the model in";
  else if (status == WEFT_SPOILT)
    format = "a call failed while it wrote the state: reset it, or go on with a copy from before";
  else if (status == WEFT_BUSY) format = "another context or thread uses the state";
  else if (status == WEFT_BAD_INPUT && ctx->failed_assert <= WEFT_MISFIT) {
    explain_tensor(ctx, status, error);
    return;
  } else if (status == WEFT_BAD_INPUT)
    format = "weft_run was called without weft_plan, or after it had failed";
  else {
    for (int32_t i = 0; i < m->checks; i++) {
      const char *text = weft_check_at(m, i, &number);
      if (number != (uint32_t)ctx->failed_assert) continue;
      format = text;
      for (int k = 0; k < 4; k++) values[k] = ctx->detail[k];
    }
  }
  (void)weft_fail(error, status, format, "", values);
}
