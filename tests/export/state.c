/* States, from C: two conversations, a copy, a failed call, a full state, and numbers that there are not. state DECODER */
#include <stdio.h>
#include <string.h>

#include "weft.h"

#define CHECK(condition) \
  if (!(condition)) return fprintf(stderr, "line %d\n", __LINE__), 1

enum { ROOM = 5, WORDS = 40, ROW = 16, HEADS = 2 };

/* Gives the model `count` tokens, and returns the status of the call. */
static int32_t say(weft_ctx *ctx, const int64_t *tokens, int64_t count, float *logits) {
  int64_t in_shape[2] = {1, count}, out_shape[2];
  weft_tensor in = {(void *)(uintptr_t)tokens, in_shape, 2, WEFT_I64}, out = {logits, out_shape, 2, WEFT_F32};
  int32_t status = weft_plan(ctx, &in, &out);
  return status != WEFT_OK ? status : weft_run(ctx, &in, &out);
}

static int64_t rows_of(const weft_state *state, int32_t number) {
  weft_tensor now;
  return weft_state_tensor(state, number, &now) != WEFT_OK ? -1 : now.shape[2];
}

int main(int argc, char **argv) {
  const int64_t tokens[ROOM + 1] = {3, 1, 4, 1, 5, 9}, wrong = WORDS;
  static float first[WORDS], again[WORDS], key[HEADS * ROOM * ROW], key_again[HEADS * ROOM * ROW];
  weft_state *state, *other, *copy;
  weft_tensor now;
  weft_model *model;
  weft_error error;
  CHECK(argc == 2 && weft_load(argv[1], NULL, &model, &error) == WEFT_OK);
  CHECK(weft_inputs(model) == 1 && weft_outputs(model) == 1 && weft_states(model) == 2);
  CHECK(strcmp(weft_state_spec(model, 1)->name, "past_v0") == 0 && weft_state_spec(model, 1)->dims[2].size == ROOM);
  CHECK(weft_state_spec(model, -1) == NULL && weft_state_spec(model, 2) == NULL && weft_input(model, 1) == NULL);
  CHECK(weft_state_new(model, NULL, 0, &state, &error) == WEFT_OK);
  CHECK(weft_state_new(model, NULL, 0, &other, &error) == WEFT_OK);

  weft_ctx *ctx = weft_acquire(model), *second = weft_acquire(model);
  CHECK(ctx != NULL && second != NULL && say(ctx, tokens, 3, first) == WEFT_BAD_INPUT);
  weft_explain(ctx, WEFT_BAD_INPUT, &error);
  CHECK(strstr(error.text, "call weft_use() first") != NULL);
  CHECK(weft_use(ctx, state) == WEFT_OK && weft_use(ctx, state) == WEFT_OK && weft_use(second, state) == WEFT_BUSY);
  CHECK(weft_use(second, other) == WEFT_OK);
  CHECK(say(ctx, tokens, 3, first) == WEFT_OK && rows_of(state, 0) == 3 && rows_of(other, 0) == 0);
  for (int i = 0; i < 3; i++) CHECK(say(second, tokens + i, 1, again) == WEFT_OK && rows_of(other, 1) == i + 1);
  for (int i = 0; i < WORDS; i++) CHECK(first[i] - again[i] < 1e-4F && again[i] - first[i] < 1e-4F);

  CHECK(say(ctx, &wrong, 1, again) == WEFT_FAILED_ASSERT && rows_of(state, 0) == 3);
  CHECK(say(ctx, tokens + 3, 3, again) == WEFT_FAILED_ASSERT && rows_of(state, 0) == 3);
  weft_explain(ctx, WEFT_FAILED_ASSERT, &error);
  CHECK(strstr(error.text, "would be 6 long, and has room for 5: it is full") != NULL);

  CHECK(weft_state_copy(state, &copy) == WEFT_BUSY && copy == NULL && weft_state_reset(state) == WEFT_BUSY);
  CHECK(weft_state_read(state, 0, key) == WEFT_BUSY && weft_state_write(state, 0, key, 1) == WEFT_BUSY);
  CHECK(weft_use(ctx, NULL) == WEFT_OK && weft_state_copy(state, &copy) == WEFT_OK);
  CHECK(weft_use(ctx, state) == WEFT_OK && say(ctx, tokens + 3, 1, first) == WEFT_OK && rows_of(copy, 0) == 3);
  CHECK(weft_use(ctx, copy) == WEFT_OK && say(ctx, tokens + 3, 1, again) == WEFT_OK);
  CHECK(memcmp(first, again, sizeof first) == 0);
  weft_release(ctx);
  weft_release(second);

  CHECK(weft_state_read(state, 0, key) == WEFT_OK && weft_state_write(other, 0, key, 4) == WEFT_OK);
  CHECK(weft_state_read(other, 0, key_again) == WEFT_OK && memcmp(key, key_again, 4 * HEADS * 4 * ROW) == 0);
  CHECK(weft_state_write(other, 0, key, ROOM + 1) == WEFT_BAD_INPUT && weft_state_write(other, 0, key, -1) == WEFT_BAD_INPUT);
  CHECK(weft_state_axis(state, 0) == 2 && weft_state_axis(state, 2) == -1 && weft_state_axis(state, -1) == -1);
  for (int32_t number = -1; number <= 2; number += 3) {
    CHECK(weft_state_tensor(state, number, &now) == WEFT_BAD_INPUT && weft_state_read(state, number, key) == WEFT_BAD_INPUT);
    CHECK(weft_state_write(state, number, key, 1) == WEFT_BAD_INPUT);
  }
  CHECK(weft_state_reset(state) == WEFT_OK && rows_of(state, 0) == 0 && rows_of(state, 1) == 0);
  weft_state_free(copy);
  weft_state_free(other);
  weft_state_free(state);
  weft_state_free(NULL);
  weft_model_free(model);
  return 0;
}
