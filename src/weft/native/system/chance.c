/* A number that differs from one process to the next: where the sequence of seeds begins that nobody gave a seed. */
#ifndef WEFT_FREESTANDING
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include "internal.h"

uint64_t weft_chance(void) {
  struct timespec now = {0, 0};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 40;
}

#endif
typedef int weft_chance_is_not_empty; /* ISO C forbids an empty file */
