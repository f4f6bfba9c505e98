/* Errors in words, put together without stdio, which not every target has. */
#include <stddef.h>

#include "internal.h"

int32_t weft_same(const char *a, const char *b) {
  while (*a != 0 && *a == *b) a++, b++;
  return *a == *b;
}

void weft_say(weft_error *error, const char *text) {
  char *at = error->text, *end = error->text + sizeof error->text - 1;
  while (*at != 0) at++;
  while (*text != 0 && at < end) *at++ = *text++;
  *at = 0;
}

static void say_number(weft_error *error, int64_t number) {
  char digits[24], *at = digits + sizeof digits - 1;
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  *at = 0;
  do *--at = (char)('0' + left % 10);
  while ((left /= 10) > 0);
  if (number < 0) *--at = '-';
  weft_say(error, at);
}

int32_t weft_fail(weft_error *error, int32_t status, const char *format, const char *text, const int64_t *numbers) {
  char letter[2] = {0, 0};
  if (error == NULL) return status;
  error->status = status;
  error->text[0] = 0;
  for (; *format != 0; format++) {
    int is_field = format[0] == '{' && format[1] != 0 && format[2] == '}';
    if (is_field && format[1] >= '0' && format[1] <= '3') say_number(error, numbers[format[1] - '0']);
    else if (is_field && format[1] == 's') weft_say(error, text);
    else {
      letter[0] = *format;
      if ((*format == '{' || *format == '}') && format[1] == *format) format++; /* doubled: itself */
      weft_say(error, letter);
      continue;
    }
    format += 2;
  }
  return status;
}

int32_t weft_no_memory(weft_error *error) {
  return weft_fail(error, WEFT_NO_MEMORY, "there is no memory left for the model", NULL, NULL);
}

int32_t weft_damaged(weft_error *error) {
  return weft_fail(error, WEFT_DAMAGED, "the file was altered: its checksum is wrong", NULL, NULL);
}

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
    say_number(error, spec->ndim);
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
