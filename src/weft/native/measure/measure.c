/* Clocks, and calls of kernels between them. */
#define _GNU_SOURCE
#ifndef WEFT_FREESTANDING

#include "measure.h"

#include <time.h>

int32_t weft_call_run(weft_call *call) { return weft_call_kernel(call->kernel, &call->ctx, call->arguments, call->count); }

int64_t weft_now_ns(int32_t clock) {
  struct timespec t;
  (void)clock_gettime(clock == WEFT_PROCESSOR_TIME ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int32_t weft_measure(weft_call *const *calls, int32_t count, int32_t number, int32_t clock, int32_t flush, int64_t *stamps,
                     int32_t *failed) {
  int32_t status = WEFT_OK;
  *failed = -1;
  uint64_t before = weft_denormals_begin(flush);
  stamps[0] = weft_now_ns(clock);
  for (int32_t i = 0; i < count && status == WEFT_OK; i++) {
    for (int32_t j = 0; j < number && status == WEFT_OK; j++) status = weft_call_run(calls[i]);
    stamps[i + 1] = weft_now_ns(clock);
    if (status != WEFT_OK) *failed = i;
  }
  weft_denormals_end(before);
  return status;
}

#endif
typedef int weft_measure_is_not_empty; /* ISO C forbids an empty file */
