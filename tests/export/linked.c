/* Runs a model that is linked in, by the functions of its header: linked < x > y */
#include <stdio.h>

#include "model.h"

#ifdef WEIGHTS
#define LOAD(options, model, error) mlp_load(WEIGHTS, options, model, error)
#else
#define LOAD(options, model, error) mlp_load(options, model, error)
#endif

int main(void) {
  static float x[3 * 24], y[3 * 10];
  weft_options options = {1, 0};
  weft_error error;
  weft_model *model;
  weft_ctx *ctx;
  int32_t status;
  if (fread(x, 1, sizeof x, stdin) != sizeof x) return 2;
  if (LOAD(&options, &model, &error) != WEFT_OK) return fprintf(stderr, "%s\n", error.text), 1;
  ctx = weft_acquire(model);
  status = mlp_run(ctx, 3, x, y);
  weft_release(ctx);
  weft_model_free(model);
  fwrite(y, 1, sizeof y, stdout);
  return status;
}
