/* Replays a host program of one device: replay_on_device FILE x... Prints the outputs, then launches, threads, and blocks left; or
 * the status, the check that failed, and its details. */
#define _GNU_SOURCE
#include <stdio.h>

#include "fake_device.h"

static int32_t negate(weft_ctx *ctx, const int32_t *p0, int32_t *t0, int64_t n) {
  (void)ctx;
  for (int64_t i = 0; i < n; i++) t0[i] = -p0[i];
  return WEFT_OK;
}

int main(int argc, char **argv) {
  static uint8_t bytes[1 << 16];
  static int32_t constants[16] = {2, 3, 5, 0, 7}, x[1000], y[1000];
  FILE *file = fopen(argv[1], "rb");
  int64_t size = file == NULL ? 0 : (int64_t)fread(bytes, 1, sizeof bytes, file), n = argc - 2, out_shape = 0;
  weft_kernel entries[2] = {NULL, (weft_kernel)negate};
  fake_device state = {0};
  weft_device device = device_of(&state);
  weft_launch launch = {0};
  weft_tensor in = {x, &n, 1, WEFT_I32}, out = {y, &out_shape, 1, WEFT_I32};
  weft_model *model = weft_model_new(weft_launch_plan, weft_launch_main, constants, 1);
  weft_ctx *ctx;
  weft_error error;
  int32_t status;
  launch.entries = entries, launch.devices = &device, launch.device_count = 1;
  if (model == NULL || weft_launch_open(&launch, bytes, size, &error) != WEFT_OK) return puts(error.text), 1;
  model->launch = &launch, model->constant_bytes = sizeof constants;
  for (int64_t i = 0; i < n; i++) x[i] = atoi(argv[i + 2]);
  ctx = weft_acquire(model);
  status = weft_plan(ctx, &in, &out);
  if (status == WEFT_OK) status = weft_run(ctx, &in, &out);
  if (status != WEFT_OK)
    printf("%d %d %d %d\n", status, ctx->failed_assert, (int)ctx->detail[0], (int)ctx->detail[1]);
  for (int64_t i = 0; status == WEFT_OK && i < out_shape; i++) printf("%d ", y[i]);
  printf("%d %d %d\n", (int)state.launches, (int)state.threads, (int)state.blocks);
  weft_release(ctx);
  weft_model_free(model);
  weft_launch_close(&launch);
  (void)fclose(file);
  device_forget(&state);
  return 0;
}
