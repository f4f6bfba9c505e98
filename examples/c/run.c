/* Runs any saved model: run MODEL [OPEN [TIMES]] < inputs > outputs, tensors as plain bytes one after another; OPEN is the size
 * of dimensions that the model leaves open. On one thread; says what a call took. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "weft.h"

static int failed(const char *text) { return fprintf(stderr, "error: %s\n", text), 1; }

/* The inputs or the outputs, with room for their shapes; NULL when there is no memory. */
static weft_tensor *tensors(const weft_model *model, int outputs, int64_t open) {
  int32_t count = outputs ? weft_outputs(model) : weft_inputs(model);
  weft_tensor *made = calloc((size_t)count + 1, sizeof *made);
  for (int32_t i = 0; made != NULL && i < count; i++) {
    const weft_spec *spec = outputs ? weft_output(model, i) : weft_input(model, i);
    made[i] = (weft_tensor){NULL, calloc((size_t)spec->ndim + 1, sizeof(int64_t)), spec->ndim, spec->dtype};
    if (made[i].shape == NULL) return NULL;
    for (int32_t d = 0; d < spec->ndim; d++) made[i].shape[d] = spec->dims[d].size < 0 ? open : spec->dims[d].size;
  }
  return made;
}

/* Room for an output; none for one whose sizes only the run tells: that one is in the context's memory. */
static void *room_for(const weft_tensor *output) {
  int64_t bytes = weft_tensor_bytes(output);
  return bytes < 0 ? NULL : weft_alloc(bytes);
}

static void let_go(weft_tensor *of, int32_t count) {
  for (int32_t i = 0; i < count; i++) weft_free(of[i].data), free(of[i].shape);
  free(of);
}

int main(int argc, char **argv) {
  weft_options options = {1, 0};
  weft_error error;
  weft_model *model;
  long open = argc > 2 ? atol(argv[2]) : 1, times = argc > 3 ? atol(argv[3]) : 1;
  if (argc < 2) return fprintf(stderr, "usage: %s MODEL [OPEN [TIMES]] < inputs > outputs\n", argv[0]), 2;
  if (weft_load(argv[1], &options, &model, &error) != WEFT_OK) return failed(error.text);
  weft_ctx *ctx = weft_acquire(model);
  weft_tensor *in = tensors(model, 0, open), *out = tensors(model, 1, open);
  if (ctx == NULL || in == NULL || out == NULL) return failed("there is no memory left");
  for (int32_t i = 0; i < weft_inputs(model); i++) {
    int64_t bytes = weft_tensor_bytes(&in[i]);
    in[i].data = weft_alloc(bytes);
    if (in[i].data == NULL) return failed("an input can't be so large");
    if (fread(in[i].data, 1, (size_t)bytes, stdin) != (size_t)bytes) return failed("there are too few inputs");
  }
  int32_t status = weft_plan(ctx, in, out); /* the outputs' shapes are known from here on, but for late sizes, which are -1 */
  void **own = calloc((size_t)weft_outputs(model) + 1, sizeof *own);
  if (own == NULL) return failed("there is no memory left");
  for (int32_t i = 0; status == WEFT_OK && i < weft_outputs(model); i++) out[i].data = own[i] = room_for(&out[i]);
  clock_t start = clock();
  for (long n = 0; status == WEFT_OK && n < times; n++) status = weft_run(ctx, in, out);
  fprintf(stderr, "%.3f ms\n", 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / (double)times);
  if (status != WEFT_OK) return weft_explain(ctx, status, &error), failed(error.text);
  for (int32_t i = 0; i < weft_outputs(model); i++) fwrite(out[i].data, 1, (size_t)weft_tensor_bytes(&out[i]), stdout);
  for (int32_t i = 0; i < weft_outputs(model); i++) out[i].data = own[i];
  free(own);
  let_go(in, weft_inputs(model));
  let_go(out, weft_outputs(model));
  weft_release(ctx);
  weft_model_free(model);
  return 0;
}
