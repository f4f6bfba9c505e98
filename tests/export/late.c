/* Outputs whose sizes only the run tells, from C: in the context's memory, in the caller's, and again. late MODEL */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"

#define CHECK(condition) \
  if (!(condition)) return fprintf(stderr, "line %d\n", __LINE__), 1

static int64_t asked[2];
static int64_t room[64];

/* Gives the caller's memory, and notes the shape that is asked for. */
static void *give(void *state, int32_t number, const weft_tensor *out) {
  memcpy(asked, out->shape, sizeof asked);
  return number == 0 && weft_tensor_bytes(out) <= (int64_t)sizeof room ? state : NULL;
}

static void *refuse(void *state, int32_t number, const weft_tensor *out) { return (void)state, (void)number, (void)out, NULL; }

int main(int argc, char **argv) {
  float x[6] = {1, 0, 2, 0, 0, 3};
  const int64_t wanted[6] = {0, 0, 1, 0, 2, 2};
  int64_t in_shape[2] = {2, 3}, shape[2] = {7, 7};
  weft_tensor in = {x, in_shape, 2, WEFT_F32}, out = {NULL, shape, 2, WEFT_I64};
  weft_model *model;
  weft_error error;
  CHECK(argc == 2 && weft_load(argv[1], NULL, &model, &error) == WEFT_OK);
  CHECK(weft_output(model, 0)->dims[0].size == 2 && weft_output(model, 0)->dims[1].size == WEFT_LATE);
  CHECK(strcmp(weft_output(model, 0)->dims[1].name, "found") == 0);
  weft_ctx *ctx = weft_acquire(model);
  CHECK(ctx != NULL && weft_plan(ctx, &in, &out) == WEFT_OK && shape[0] == 2 && shape[1] == -1);
  for (int turn = 0; turn < 2; turn++) { /* again without a plan: what is there is the last call's */
    CHECK(weft_run(ctx, &in, &out) == WEFT_OK && shape[0] == 2 && shape[1] == 3);
    CHECK(memcmp(out.data, wanted, sizeof wanted) == 0 && out.data != room);
  }
  weft_on_output(ctx, give, room);
  CHECK(weft_run(ctx, &in, &out) == WEFT_OK && out.data == room && asked[1] == 3 && memcmp(room, wanted, sizeof wanted) == 0);
  memset(x, 0, sizeof x);
  CHECK(weft_run(ctx, &in, &out) == WEFT_OK && shape[1] == 0 && asked[1] == 0);
  for (int i = 0; i < 6; i++) x[i] = 1;
  weft_on_output(ctx, refuse, NULL);
  CHECK(weft_run(ctx, &in, &out) == WEFT_NO_MEMORY);
  weft_release(ctx);
  ctx = weft_acquire(model); /* names no memory any more */
  CHECK(ctx != NULL && weft_plan(ctx, &in, &out) == WEFT_OK && weft_run(ctx, &in, &out) == WEFT_OK && shape[1] == 6);
  weft_release(ctx);
  weft_model_free(model);
  return 0;
}
