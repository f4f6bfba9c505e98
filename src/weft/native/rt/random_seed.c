/* The seeds of calls that draw random numbers: one sequence of the process, SplitMix64 (Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", 2014), of which each call takes the next. */
#include "internal.h"

static struct {
  uint64_t state;
  int32_t is_begun;
} sequence;

static void begin(void) {
  if (sequence.is_begun) return;
  sequence.is_begun = 1;
#ifndef WEFT_FREESTANDING
  sequence.state = weft_chance();
#endif
}

void weft_set_random_seed(int64_t seed) {
  weft_lock();
  sequence.state = (uint64_t)seed;
  sequence.is_begun = 1;
  weft_unlock();
}

int64_t weft_random_seed(void) {
  int64_t state;
  weft_lock();
  begin();
  state = (int64_t)sequence.state;
  weft_unlock();
  return state;
}

int64_t weft_fresh_seed(void) {
  uint64_t z;
  weft_lock();
  begin();
  z = sequence.state += UINT64_C(0x9e3779b97f4a7c15);
  weft_unlock();
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (int64_t)(z ^ z >> 31);
}

#ifdef WEFT_FREESTANDING
int32_t weft_host(weft_ctx *ctx, int32_t operator, const int64_t *args) {
  (void)ctx;
  if (operator != WEFT_FRESH_SEED) return WEFT_FAILED_ASSERT;
  *(int64_t *)(intptr_t)args[0] = weft_fresh_seed();
  return WEFT_OK;
}
#endif
