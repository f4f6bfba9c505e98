/* What a compiler would emit, written by hand: kernels and models for the tests of the runtime. */
#include "weft_abi.h"

/* ---- kernels ---- */

int32_t scale(weft_ctx *ctx, const float *x, float *y, int64_t n, int64_t factor) {
  (void)ctx;
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * (float)factor;
  return 0;
}

int32_t sixteen(weft_ctx *ctx, int64_t *out, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f,
                int64_t g, int64_t h, int64_t i, int64_t j, int64_t k, int64_t l, int64_t m, int64_t n, int64_t o) {
  (void)ctx;
  *out = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m +
         14 * n + 15 * o;
  return 0;
}

int32_t describe(weft_ctx *ctx, int64_t *out) {
  out[0] = (int64_t)ctx->arena % 64;
  out[1] = ctx->arena_bytes;
  out[2] = (int64_t)ctx->constants;
  out[3] = ctx->threads;
  void *block = ctx->alloc(ctx, 1000);
  out[4] = block == 0 ? -1 : (int64_t)block % 64;
  ctx->free(ctx, block);
  ctx->arena[0] = ctx->arena[ctx->arena_bytes - 1] = 1;
  return 0;
}

static int32_t count_task(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {
  int64_t *counts = args;
  (void)ctx;
  for (int64_t i = begin; i < end; i++) counts[i] += i * i + 1;
  return 0;
}

int32_t count(weft_ctx *ctx, int64_t *counts, int64_t n) { return ctx->parallel_for(ctx, count_task, counts, n); }

typedef struct nest {
  int64_t *counts;
  int64_t width;
} nest;

static int32_t nested_task(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {
  nest *n = args;
  for (int64_t i = begin; i < end; i++) {
    int32_t status = ctx->parallel_for(ctx, count_task, n->counts + i * n->width, n->width);
    if (status != 0) return status;
  }
  return 0;
}

int32_t nested(weft_ctx *ctx, int64_t *counts, int64_t rows, int64_t width) {
  nest args = {counts, width};
  return ctx->parallel_for(ctx, nested_task, &args, rows);
}

int32_t repeated(weft_ctx *ctx, int64_t *counts, int64_t n, int64_t times) {
  for (int64_t i = 0; i < times; i++) {
    int32_t status = ctx->parallel_for(ctx, count_task, counts, n);
    if (status != 0) return status;
  }
  return 0;
}

/* Jobs of two tasks, each of which waits for the other: state[0] counts arrivals, state[1] who waited in vain. */
static int32_t meeting_task(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {
  int64_t *state = args;
  (void)ctx;
  for (int64_t i = begin; i < end; i++) {
    int64_t arrived = __atomic_add_fetch(&state[0], 1, __ATOMIC_SEQ_CST), all = (arrived + 1) / 2 * 2, turns = 0;
    while (__atomic_load_n(&state[0], __ATOMIC_SEQ_CST) < all && turns < 20000) turns++;
    if (turns == 20000) __atomic_fetch_add(&state[1], 1, __ATOMIC_SEQ_CST);
  }
  return WEFT_OK;
}

int32_t meetings(weft_ctx *ctx, int64_t *state, int64_t jobs) {
  for (int64_t j = 0; j < jobs; j++) {
    int32_t status = ctx->parallel_for(ctx, meeting_task, state, 2);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

static int32_t failing_task(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {
  int64_t bad = *(int64_t *)args;
  if (bad < begin || bad >= end) return 0;
  ctx->failed_assert = 7;
  ctx->detail[0] = bad;
  return 41;
}

int32_t failing(weft_ctx *ctx, int64_t *bad, int64_t n) { return ctx->parallel_for(ctx, failing_task, bad, n); }

/* A table in the read-only part, and a write to it that the processor must refuse. */
static const int32_t table[4] = {10, 20, 30, 40};

int32_t lookup(weft_ctx *ctx, int32_t *out, int64_t i) {
  (void)ctx;
  *out = ((const volatile int32_t *)table)[i];
  return 0;
}

int32_t overwrite(weft_ctx *ctx, int32_t *unused) {
  (void)ctx;
  (void)unused;
  *(volatile int32_t *)table = 1;
  return 0;
}

int32_t overwrite_code(weft_ctx *ctx, int32_t *unused) {
  (void)ctx;
  (void)unused;
  *(volatile uint8_t *)lookup = 1;
  return 0;
}

/* ---- y[N, 4] = x[N, 4] * w, total[] = sum of y, through the arena: w is the first constant, 4 floats at 64 ---- */

int32_t affine_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  if (in[0].shape[1] != 4) {
    ctx->failed_assert = 0;
    ctx->detail[0] = in[0].shape[1];
    return WEFT_FAILED_ASSERT;
  }
  if (in[0].shape[0] > 200000) {
    ctx->failed_assert = 1;
    ctx->detail[0] = in[0].shape[0];
    return WEFT_FAILED_ASSERT;
  }
  out[0].shape[0] = in[0].shape[0];
  out[0].shape[1] = 4;
  ctx->arena_needed = in[0].shape[0] * 4;
  return 0;
}

typedef struct affine {
  const float *x, *w;
  float *y, *sums;
} affine;

static int32_t affine_task(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {
  affine *a = args;
  (void)ctx;
  for (int64_t i = begin; i < end; i++) {
    a->sums[i] = 0;
    for (int j = 0; j < 4; j++) a->sums[i] += a->y[4 * i + j] = a->x[4 * i + j] * a->w[j];
  }
  return 0;
}

int32_t affine_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  int64_t rows = in[0].shape[0];
  affine a = {in[0].data, (const float *)(ctx->constants + 64), out[0].data, (float *)ctx->arena};
  float *total = out[1].data;
  if (ctx->parallel_for(ctx, affine_task, &a, rows) != 0) return 1;
  *total = 0;
  for (int64_t i = 0; i < rows; i++) {
    if (a.sums[i] != a.sums[i]) {
      ctx->failed_assert = 2;
      ctx->detail[0] = i;
      return WEFT_FAILED_ASSERT;
    }
    *total += a.sums[i];
  }
  return 0;
}

/* ---- out[N] = in[N], two bytes a value ---- */

int32_t copy2_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  (void)ctx;
  out[0].shape[0] = in[0].shape[0];
  return 0;
}

int32_t copy2_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  const uint16_t *x = in[0].data;
  uint16_t *y = out[0].data;
  (void)ctx;
  for (int64_t i = 0; i < in[0].shape[0]; i++) y[i] = x[i];
  return 0;
}

/* ---- a, b: f32[N] -> a + b; sizes are checked against each other ---- */

int32_t add_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  if (in[0].shape[0] != in[1].shape[0]) return WEFT_FAILED_ASSERT;
  out[0].shape[0] = in[0].shape[0];
  (void)ctx;
  return 0;
}

int32_t add_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  const float *a = in[0].data, *b = in[1].data;
  float *y = out[0].data;
  (void)ctx;
  for (int64_t i = 0; i < in[0].shape[0]; i++) y[i] = a[i] + b[i];
  return 0;
}

/* ---- waits for another thread to set the input; the output says whether that happened ---- */

int32_t wait_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  (void)ctx, (void)in, (void)out;
  return 0;
}

int32_t wait_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  const volatile int32_t *flag = in[0].data;
  int64_t turns = 0;
  (void)ctx;
  while (*flag == 0 && turns < 3000000000) turns++;
  *(int32_t *)out[0].data = *flag;
  return 0;
}

/* ---- asks for an arena, or an output, that no machine has ---- */

int32_t greedy_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  out[0].shape[0] = *(const int64_t *)in[0].data;
  ctx->arena_needed = *(const int64_t *)in[0].data < 0 || *(const int64_t *)in[0].data > 100 ? 0 : (int64_t)1 << 60;
  return 0;
}

int32_t greedy_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  (void)ctx, (void)in, (void)out;
  return 0;
}

/* ---- steps: i64[] -> done: i64[]; one parallel loop a step ---- */

int32_t steps_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  (void)ctx, (void)in, (void)out;
  return 0;
}

int32_t steps_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  int64_t steps = *(const int64_t *)in[0].data, counts[64];
  for (volatile int k = 0; k < 64; k++) counts[k] = 0; /* no call of memset */
  for (int64_t i = 0; i < steps; i++) {
    int32_t status = ctx->parallel_for(ctx, count_task, counts, 64);
    if (status != WEFT_OK) return status;
  }
  *(int64_t *)out[0].data = counts[0];
  return WEFT_OK;
}

/* ---- x: f32[N] -> y[i] = sum of x[0..i], so that what is read late must still be what it was ---- */

int32_t prefix_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  (void)ctx;
  out[0].shape[0] = in[0].shape[0];
  return 0;
}

int32_t prefix_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  const volatile float *x = in[0].data;
  float *y = out[0].data;
  (void)ctx;
  for (int64_t i = in[0].shape[0] - 1; i >= 0; i--) {
    y[i] = 0;
    for (int64_t j = 0; j <= i; j++) y[i] += x[j];
  }
  return (int64_t)y % WEFT_ALIGN == 0 ? WEFT_OK : WEFT_FAILED_ASSERT;
}

/* ---- jobs: i64[] -> vain: i64[]; how many of the jobs were done by one thread alone ---- */

int32_t meet_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  (void)ctx, (void)in, (void)out;
  return 0;
}

int32_t meet_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  int64_t state[2] = {0, 0};
  int32_t status = meetings(ctx, state, *(const int64_t *)in[0].data);
  *(int64_t *)out[0].data = state[1];
  return status;
}

/* ---- x: f32[2] -> y: f32[3], half of x by a thread each, and how many threads took part; fails where x[0] is negative ---- */

typedef struct halves {
  const volatile float *x;
  volatile float *y;
  int64_t there;
} halves;

static int32_t halves_task(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {
  halves *h = args;
  (void)ctx;
  __atomic_fetch_add(&h->there, 1, __ATOMIC_SEQ_CST);
  for (int64_t turns = 0; turns < 20000000 && __atomic_load_n(&h->there, __ATOMIC_SEQ_CST) < 2; turns++) continue;
  for (int64_t i = begin; i < end; i++) h->y[i] = h->x[i] * 0.5f;
  return WEFT_OK;
}

int32_t halves_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  (void)ctx, (void)in;
  out[0].shape[0] = 3;
  return 0;
}

int32_t halves_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) {
  halves h = {in[0].data, out[0].data, 0};
  int32_t status = ctx->parallel_for(ctx, halves_task, &h, 2);
  h.y[2] = (float)h.there;
  return h.x[0] < 0 ? 41 : status;
}
