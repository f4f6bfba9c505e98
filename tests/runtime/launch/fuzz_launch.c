/* Opens and replays random mutations of a host program: fuzz_launch FILE COUNT. Prints how many were refused, stopped, and finished.
 * Bytes, inputs, outputs and constants are in blocks of exactly their size, so that a sanitizer sees every byte too far; whatever
 * memory a call takes is given back in order. Kernels touch nothing: they are trusted with what they are given. */
#define _GNU_SOURCE
#include <stdio.h>

#include "fake_device.h"

enum { ELEMENTS = 5, DEEPEST = 64, ARENA = 1 << 12 };

static uint64_t state = 0x2545F4914F6CDD1D;

static uint64_t draw(uint64_t below) { /* xorshift64* (Marsaglia; Vigna) */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * UINT64_C(0x2545F4914F6CDD1D) % below;
}

static void *taken[DEEPEST];
static int taken_count;

static void *host_alloc(weft_ctx *ctx, int64_t bytes) {
  void *made;
  (void)ctx;
  if (bytes < 0) abort();
  if (bytes > 1 << 24 || taken_count == DEEPEST || posix_memalign(&made, 64, bytes > 0 ? (size_t)bytes : 1) != 0) return NULL;
  memset(made, 0xA5, (size_t)bytes);
  return taken[taken_count++] = made;
}

static void host_free(weft_ctx *ctx, void *block) {
  (void)ctx;
  if (taken_count == 0 || taken[--taken_count] != block) abort(); /* not in the opposite order */
  free(block);
}

static int32_t nothing(weft_ctx *ctx) { return (void)ctx, WEFT_OK; }

static void *block_of(const void *from, int64_t bytes) {
  void *made = NULL;
  if (posix_memalign(&made, 64, bytes > 0 ? (size_t)bytes : 1) != 0) abort();
  if (from != NULL) memcpy(made, from, (size_t)bytes);
  else memset(made, 1, (size_t)bytes);
  return made;
}

/* Changes bytes of the code, or puts some in, or takes some out; the head is made to say the new size, as a rule. */
static int64_t mutate(uint8_t *data, int64_t size) {
  uint32_t main_at = 0, total;
  for (uint64_t left = 1 + draw(4); left > 0; left--) {
    int64_t at = draw(6) == 0 ? (int64_t)draw((uint64_t)size) : 40 + (int64_t)draw((uint64_t)size - 40);
    uint64_t kind = draw(8);
    if (kind == 0 && size > 48) {
      memmove(data + at, data + at + 1, (size_t)(size - at - 1));
      size--;
    } else if (kind == 1) {
      memmove(data + at + 1, data + at, (size_t)(size - at));
      data[at] = (uint8_t)draw(WEFT_OPS);
      size++;
    } else {
      data[at] = kind == 2 ? (uint8_t)draw(256) : kind == 3 ? (uint8_t)(data[at] ^ (1u << draw(8))) : (uint8_t)draw(8 + 40 * (kind & 1));
    }
  }
  if (draw(16) != 0) {
    memcpy(data, "WFLP\2\0\0", 8);
    total = (uint32_t)size;
    memcpy(data + 8, &total, 4);
  }
  if (draw(16) == 0) memcpy(&main_at, data + 36, 4), main_at += (uint32_t)draw(3) - 1, memcpy(data + 36, &main_at, 4);
  return size;
}

typedef struct counts {
  long refused, stopped, finished, skips;
} counts;

static void replay(const uint8_t *data, int64_t size, weft_model *model, counts *seen) {
  fake_device device_state = {0};
  weft_device device = device_of(&device_state);
  weft_kernel entries[8];
  weft_launch launch = {0};
  int64_t in_shape = ELEMENTS, out_shape = 0;
  weft_tensor in = {NULL, &in_shape, 1, WEFT_I64}, out = {NULL, &out_shape, 1, WEFT_I64};
  weft_error error;
  int32_t status, device_count = draw(8) != 0;
  for (int i = 0; i < 8; i++) entries[i] = (weft_kernel)nothing;
  launch.entries = entries, launch.devices = &device, launch.device_count = device_count, launch.most_turns = 200;
  status = weft_launch_open(&launch, data, size, draw(2) ? &error : NULL);
  if (status == WEFT_OK && (launch.callee_count > 8 || launch.inputs > 1 || launch.outputs > 1))
    weft_launch_close(&launch), status = WEFT_BAD_INPUT; /* its caller has not as many */
  if (status != WEFT_OK) {
    if (launch.callees != NULL) abort();
    seen->refused++;
    return;
  }
  weft_ctx *ctx = weft_acquire(model);
  if (ctx == NULL) abort();
  ctx->alloc = host_alloc, ctx->free = host_free;
  model->launch = &launch;
  in.data = block_of(NULL, 8 * ELEMENTS);
  status = weft_plan(ctx, &in, &out);
  if (status == WEFT_OK && out_shape >= -1 && out_shape <= 1000 && ctx->arena_needed <= ARENA) {
    void *given = out.data = out_shape < 0 ? NULL : block_of(NULL, 8 * out_shape);
    for (int n = 0; n < 3 && status == WEFT_OK; n++) status = weft_run(ctx, &in, &out); /* the second may skip launches */
    seen->skips += device_state.skips;
    free(given);
  }
  free(in.data);
  if (taken_count != 0 || device_state.blocks != 0) abort(); /* memory is left that nobody gives back */
  if (status == WEFT_OK) seen->finished++;
  else seen->stopped++;
  if (ctx->memo != NULL) weft_free(ctx->memo); /* of this program */
  ctx->memo = NULL;
  device_forget(&device_state);
  weft_release(ctx);
  weft_launch_close(&launch);
}

int main(int argc, char **argv) {
  static uint8_t whole[1 << 16], changed[(1 << 16) + 16];
  FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  int64_t bytes = file == NULL ? 0 : (int64_t)fread(whole, 1, sizeof whole, file);
  uint8_t *constants = (uint8_t *)block_of(NULL, 64);
  counts seen = {0};
  weft_model *model = weft_model_new(weft_launch_plan, weft_launch_main, constants, 1);
  if (bytes == 0 || model == NULL) return 2;
  (void)fclose(file);
  model->constant_bytes = 64;
  for (long left = atol(argv[2]); left > 0; left--) {
    int64_t size;
    uint8_t *data;
    memcpy(changed, whole, (size_t)bytes);
    size = left == 1 ? bytes : mutate(changed, bytes);
    if (draw(32) == 0) size = (int64_t)draw((uint64_t)size + 1);
    data = (uint8_t *)block_of(changed, size);
    replay(data, size, model, &seen);
    free(data);
  }
  weft_model_free(model);
  free(constants);
  printf("%ld %ld %ld %ld\n", seen.refused, seen.stopped, seen.finished, seen.skips);
  return 0;
}
