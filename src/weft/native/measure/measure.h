/* Kernels called again and again, with a clock read between the calls: what tuning, profiles and peak rates are made of.
 *
 * The loops are here, not in who asks: a call may take a microsecond, and an interpreter, or a wire, takes longer than that.
 * Programs that run models need none of this. */
#ifndef WEFT_MEASURE_H
#define WEFT_MEASURE_H

#include "weft_call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* int32_t kernel(weft_ctx *, void *buffer..., int64_t scalar...) with its arguments; those beyond `count` are 0. */
typedef struct weft_call {
  weft_kernel kernel;
  int32_t count;
  weft_ctx ctx;
  int64_t arguments[WEFT_MOST_ARGUMENTS];
} weft_call;

int32_t weft_call_run(weft_call *call);

/* The time on the wall, or that the calling thread has had a processor: blind to what else the machine does, and to other threads. */
enum { WEFT_WALL_TIME, WEFT_PROCESSOR_TIME };

int64_t weft_now_ns(int32_t clock);

/* Runs `count` calls in turn, each `number` times in a row, as denormals are treated in models that `flush` them. The clock is read
 * before the first and after each, into count + 1 `stamps`. Stops at the first call that fails: returns its status, and in
 * `failed` which it was; -1 if none did. */
int32_t weft_measure(weft_call *const *calls, int32_t count, int32_t number, int32_t clock, int32_t flush, int64_t *stamps,
                     int32_t *failed);

#ifdef __cplusplus
}
#endif
#endif
