/* Calls every function of weft.h as a program would: api MODEL, the affine-like model of the tests (x: f32[batch, 24] -> y). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);      \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

enum { ROWS = 5, WIDTH = 24, OUT = 10, THREADS = 4 };

static float x[ROWS * WIDTH], wanted[ROWS * OUT];

static int32_t call(weft_ctx *ctx, int64_t rows, float *y) {
  int64_t in_shape[] = {rows, WIDTH}, out_shape[2];
  weft_tensor in = {x, in_shape, 2, WEFT_F32}, out = {NULL, out_shape, 2, WEFT_F32};
  int32_t status = weft_plan(ctx, &in, &out);
  if (status != WEFT_OK) return status;
  CHECK(out_shape[0] == rows && out_shape[1] == OUT && weft_tensor_bytes(&out) == rows * OUT * 4);
  out.data = y;
  status = weft_run(ctx, &in, &out);
  return status == WEFT_OK ? weft_run(ctx, &in, &out) : status; /* again, as it was planned */
}

static void describe(const weft_model *model) {
  const weft_spec *input = weft_input(model, 0);
  const char *key, *text;
  CHECK(weft_inputs(model) == 1 && weft_outputs(model) == 1);
  CHECK(strcmp(input->name, "x") == 0 && input->dtype == WEFT_F32 && input->ndim == 2);
  CHECK(input->dims[0].size == -1 && strcmp(input->dims[0].name, "batch") == 0);
  CHECK(input->dims[1].size == WIDTH && strcmp(input->dims[1].name, "") == 0);
  CHECK(strcmp(weft_output(model, 0)->name, "y") == 0 && weft_output(model, 0)->dims[1].size == OUT);
  CHECK(weft_input(model, 1) == NULL && weft_input(model, -1) == NULL && weft_output(model, 1) == NULL);
  CHECK(strcmp(weft_note(model, "target"), "cpu") == 0 && weft_note(model, "no such") == NULL);
  CHECK(weft_note_at(model, 0, &key, &text) && strcmp(key, "target") == 0 && strcmp(text, "cpu") == 0);
  CHECK(!weft_note_at(model, 10000, &key, &text) && !weft_note_at(model, -1, &key, &text));
  CHECK(weft_arena_bytes(model) == -1); /* it depends on the batch */
  CHECK(strcmp(weft_dtype_name(WEFT_BF16), "bf16") == 0 && weft_dtype_bytes(WEFT_BF16) == 2);
  CHECK(strcmp(weft_dtype_name(99), "?") == 0 && weft_dtype_bytes(-1) == 0);
}

static void misuse(weft_ctx *ctx) {
  int64_t shape[] = {2, WIDTH, 1}, out_shape[2], huge[] = {INT64_MAX, 2}, negative[] = {-1};
  weft_tensor in = {x, shape, 2, WEFT_F64}, out = {wanted, out_shape, 2, WEFT_F32};
  weft_tensor large = {NULL, huge, 2, WEFT_F32}, less = {NULL, negative, 1, WEFT_F32}, scalar = {NULL, NULL, 0, WEFT_I64};
  weft_error error;
  CHECK(weft_run(ctx, &in, &out) == WEFT_BAD_INPUT);
  weft_explain(ctx, WEFT_BAD_INPUT, &error);
  CHECK(strcmp(error.text, "weft_run was called without weft_plan, or after it had failed") == 0);
  CHECK(weft_plan(ctx, &in, &out) == WEFT_BAD_INPUT);
  weft_explain(ctx, WEFT_BAD_INPUT, &error);
  CHECK(error.status == WEFT_BAD_INPUT);
  CHECK(strcmp(error.text, "input 'x' is to be of type f32 and of rank 2") == 0);
  in.dtype = WEFT_F32;
  in.ndim = 3;
  CHECK(weft_plan(ctx, &in, &out) == WEFT_BAD_INPUT);
  in.ndim = 2;
  out.ndim = 1;
  CHECK(weft_plan(ctx, &in, &out) == WEFT_BAD_INPUT);
  weft_explain(ctx, WEFT_BAD_INPUT, &error);
  CHECK(strcmp(error.text, "output 'y' is to be of type f32 and of rank 2") == 0);
  out.ndim = 2;
  shape[1] = 23;
  CHECK(weft_plan(ctx, &in, &out) == WEFT_FAILED_ASSERT);
  weft_explain(ctx, WEFT_FAILED_ASSERT, &error);
  CHECK(strcmp(error.text, "input x: dimension 1 is 23, but the model takes 24") == 0);
  CHECK(weft_run(ctx, &in, &out) == WEFT_BAD_INPUT); /* planning failed */
  weft_explain(ctx, WEFT_NO_MEMORY, &error);
  CHECK(strcmp(error.text, "there is no memory left to run the model in") == 0);
  weft_explain(ctx, WEFT_OK, &error);
  CHECK(error.status == WEFT_OK && error.text[0] == 0);
  weft_explain(ctx, WEFT_BAD_INPUT, NULL);
  CHECK(weft_tensor_bytes(&large) == -1 && weft_tensor_bytes(&less) == -1 && weft_tensor_bytes(&scalar) == 8);
}

/* Data that is not there, or in between: refused in words; where there are no elements, none is needed. */
static void misplaced(weft_ctx *ctx) {
  int64_t shape[] = {2, WIDTH}, out_shape[2];
  float y[3 * OUT];
  weft_tensor in = {x, shape, 2, WEFT_F32}, out = {NULL, out_shape, 2, WEFT_F32};
  weft_error error;
  CHECK(weft_plan(ctx, &in, &out) == WEFT_OK && weft_run(ctx, &in, &out) == WEFT_BAD_INPUT);
  weft_explain(ctx, WEFT_BAD_INPUT, &error);
  CHECK(strcmp(error.text, "output 'y' has no data: its pointer is NULL") == 0);
  weft_explain(ctx, WEFT_BAD_INPUT, NULL);
  out.data = (char *)y + 2;
  CHECK(weft_run(ctx, &in, &out) == WEFT_BAD_INPUT);
  weft_explain(ctx, WEFT_BAD_INPUT, &error);
  CHECK(strcmp(error.text, "output 'y' has data at an address that is no multiple of its elements' size") == 0);
  out.data = y;
  in.data = NULL;
  CHECK(weft_run(ctx, &in, &out) == WEFT_BAD_INPUT);
  weft_explain(ctx, WEFT_BAD_INPUT, &error);
  CHECK(strcmp(error.text, "input 'x' has no data: its pointer is NULL") == 0);
  shape[0] = 0;
  out.data = NULL;
  CHECK(weft_plan(ctx, &in, &out) == WEFT_OK && out_shape[0] == 0 && out_shape[1] == OUT);
  CHECK(weft_run(ctx, &in, &out) == WEFT_OK);
  shape[0] = -1;
  CHECK(weft_plan(ctx, &in, &out) == WEFT_FAILED_ASSERT);
  weft_explain(ctx, WEFT_FAILED_ASSERT, &error);
  CHECK(strcmp(error.text, "input x: dimension 0 is -1, which is no size") == 0);
}

static void *work(void *argument) {
  weft_model *model = (weft_model *)argument;
  static const int64_t sizes[] = {1, ROWS, 2, 4};
  for (int turn = 0; turn < 200; turn++) {
    float y[ROWS * OUT] = {0};
    weft_ctx *ctx = weft_acquire(model);
    CHECK(ctx != NULL && call(ctx, sizes[turn % 4], y) == WEFT_OK);
    CHECK(memcmp(y, wanted, (size_t)sizes[turn % 4] * OUT * 4) == 0);
    weft_release(ctx);
  }
  return NULL;
}

/* The whole file in memory, at any alignment; then the memory may go, where it was copied. */
static void from_memory(const char *path) {
  FILE *file = fopen(path, "rb");
  static uint8_t data[1 << 20];
  size_t bytes = fread(data, 1, sizeof data / 2, file);
  weft_error error;
  weft_model *model;
  CHECK(fclose(file) == 0 && bytes > 4096);
  for (size_t shift = 0; shift < 128; shift += 32)
    for (int32_t flags = 0; flags < 4; flags++) {
      weft_options options = {1, flags};
      uint8_t *copy = (uint8_t *)weft_alloc((int64_t)(bytes + shift));
      float y[ROWS * OUT];
      weft_ctx *ctx;
      memcpy(copy + shift, data, bytes);
      CHECK(weft_load_memory(copy + shift, (int64_t)bytes, &options, &model, &error) == WEFT_OK);
      if (flags & WEFT_COPY) memset(copy, 0xAB, bytes + shift);
      describe(model);
      ctx = weft_acquire(model);
      CHECK(call(ctx, ROWS, y) == WEFT_OK && memcmp(y, wanted, sizeof y) == 0);
      weft_release(ctx);
      weft_model_free(model);
      weft_free(copy);
    }
  CHECK(weft_load_memory(data, (int64_t)bytes - 1, NULL, &model, NULL) == WEFT_DAMAGED && model == NULL);
  CHECK(weft_load_memory(data, 0, NULL, &model, &error) == WEFT_NOT_A_MODEL);
  CHECK(strcmp(error.text, "the file is not a model saved by Weft") == 0);
}

int main(int argc, char **argv) {
  weft_options options = {2, 0};
  pthread_t threads[THREADS];
  weft_error error;
  weft_model *model = NULL;
  weft_ctx *ctx, *other;
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  CHECK(argc == 2 && weft_load("no such file", NULL, &model, &error) == WEFT_UNREADABLE && model == NULL);
  CHECK(error.status == WEFT_UNREADABLE && strcmp(error.text, "there is no such file") == 0);
  CHECK(weft_load(NULL, NULL, &model, &error) == WEFT_UNREADABLE && model == NULL);
  CHECK(strcmp(error.text, "no path was given: it is NULL") == 0);
  CHECK(weft_load_memory(NULL, 1 << 20, NULL, &model, &error) == WEFT_NOT_A_MODEL && model == NULL);
  CHECK(weft_load(argv[0], NULL, &model, &error) == WEFT_NOT_A_MODEL);
  CHECK(weft_load(argv[1], &options, &model, &error) == WEFT_OK && error.text[0] == 0);
  describe(model);
  ctx = weft_acquire(model);
  other = weft_acquire(model);
  CHECK(ctx != NULL && other != NULL && ctx != other);
  CHECK(call(ctx, ROWS, wanted) == WEFT_OK);
  misuse(other);
  misplaced(other);
  CHECK(call(other, 1, (float[OUT]){0}) == WEFT_OK); /* misuse does no lasting harm */
  weft_release(other);
  weft_release(ctx);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, model) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  weft_model_free(model);
  weft_model_free(NULL);
  from_memory(argv[1]);
  fwrite(wanted, 1, sizeof wanted, stdout);
  return 0;
}
