/* Aligned memory. A block of 2 MiB or more is aligned to 2 MiB and asks for huge pages: streaming packed weights
 * through 4 KiB pages costs up to 40% of a core's memory bandwidth. */
#define _GNU_SOURCE
#include "weft.h"

#ifdef WEFT_FREESTANDING

void *weft_alloc(int64_t bytes) { return weft_port_alloc(bytes, WEFT_ALIGN); }

void weft_free(void *block) { weft_port_free(block); }

#else

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((int64_t)2 << 20)

static int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

void *weft_alloc(int64_t bytes) {
  int64_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : WEFT_ALIGN;
  void *block = NULL;
  if (bytes < 0 || bytes > INT64_MAX - HUGE_PAGE) return NULL;
  bytes = round_up(bytes > 0 ? bytes : 1, align);
  if (posix_memalign(&block, (size_t)align, (size_t)bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (align == HUGE_PAGE) (void)madvise(block, (size_t)bytes, MADV_HUGEPAGE); /* advice: failing costs speed only */
#endif
  return block;
}

void weft_free(void *block) { free(block); }

#endif
