/* Runs any saved model: run MODEL [OPEN [TIMES]] < inputs > outputs, tensors as plain bytes one after another; OPEN is the size
 * of dimensions that the model leaves open. On one thread; says what a call took. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "weft.h"

enum { MOST = 256 }; /* tensors */

static int failed(const weft_error *error) { return fprintf(stderr, "error: %s\n", error->text), 1; }

int main(int argc, char **argv) {
  static int64_t shapes[2][MOST][WEFT_MAX_RANK];
  weft_tensor in[MOST], out[MOST];
  weft_options options = {1, 0};
  weft_error error;
  weft_model *model;
  long open = argc > 2 ? atol(argv[2]) : 1, times = argc > 3 ? atol(argv[3]) : 1;
  if (argc < 2) return fprintf(stderr, "usage: %s MODEL [OPEN [TIMES]] < inputs > outputs\n", argv[0]), 2;
  if (weft_load(argv[1], &options, &model, &error) != WEFT_OK) return failed(&error);
  weft_ctx *ctx = weft_acquire(model);
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < MOST && i < (side ? weft_outputs(model) : weft_inputs(model)); i++) {
      const weft_spec *spec = side ? weft_output(model, i) : weft_input(model, i);
      weft_tensor *tensor = side ? &out[i] : &in[i];
      *tensor = (weft_tensor){NULL, shapes[side][i], spec->ndim, spec->dtype};
      for (int d = 0; d < spec->ndim; d++) tensor->shape[d] = spec->dims[d].size < 0 ? open : spec->dims[d].size;
    }
  for (int i = 0; i < weft_inputs(model); i++) {
    size_t bytes = (size_t)weft_tensor_bytes(&in[i]);
    in[i].data = weft_alloc((int64_t)bytes);
    if (fread(in[i].data, 1, bytes, stdin) != bytes) return fprintf(stderr, "error: there are too few inputs\n"), 1;
  }
  int32_t status = weft_plan(ctx, in, out); /* the outputs' shapes are known from here on */
  for (int i = 0; status == WEFT_OK && i < weft_outputs(model); i++) out[i].data = weft_alloc(weft_tensor_bytes(&out[i]));
  clock_t start = clock();
  for (long n = 0; status == WEFT_OK && n < times; n++) status = weft_run(ctx, in, out);
  fprintf(stderr, "%.3f ms\n", 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / (double)times);
  if (status != WEFT_OK) return weft_explain(ctx, status, &error), failed(&error);
  for (int i = 0; i < weft_outputs(model); i++) fwrite(out[i].data, 1, (size_t)weft_tensor_bytes(&out[i]), stdout);
  for (int i = 0; i < weft_inputs(model); i++) weft_free(in[i].data);
  for (int i = 0; i < weft_outputs(model); i++) weft_free(out[i].data);
  weft_release(ctx);
  weft_model_free(model);
  return 0;
}
