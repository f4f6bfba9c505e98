/* Memory: aligned blocks, and mapped images, which are writable while being filled, then executable or readable, never both
 * writable and executable. A block of 2 MiB or more is aligned to 2 MiB and asks for huge pages: streaming packed weights through
 * 4 KiB pages costs up to 40% of a core's memory bandwidth. */
#define _GNU_SOURCE
#include "internal.h"

#ifdef WEFT_FREESTANDING

void *weft_alloc(int64_t bytes) { return weft_port_alloc(bytes, WEFT_ALIGN); }

void weft_free(void *block) { weft_port_free(block); }

#else

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

int32_t weft_image_new(weft_image *image, int64_t bytes, int64_t readonly) {
  int64_t page = sysconf(_SC_PAGESIZE);
  uint8_t *base;
  if (bytes <= 0 || readonly < 0 || readonly > bytes || (readonly != bytes && readonly % page != 0)) return WEFT_BAD_IMAGE;
  base = (uint8_t *)mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == (uint8_t *)MAP_FAILED) return WEFT_NO_MEMORY;
  image->base = base;
  image->bytes = bytes;
  return WEFT_OK;
}

int32_t weft_image_seal(weft_image *image, int64_t readonly) {
  uint8_t *base = image->base;
  if ((readonly > 0 && mprotect(base, (size_t)readonly, PROT_READ | PROT_EXEC) != 0) ||
      (readonly < image->bytes && mprotect(base + readonly, (size_t)(image->bytes - readonly), PROT_READ) != 0)) {
    weft_image_unmap(image);
    return WEFT_BAD_IMAGE;
  }
  __builtin___clear_cache((char *)base, (char *)base + readonly);
  return WEFT_OK;
}

void weft_image_unmap(weft_image *image) {
  if (image->base != NULL) (void)munmap(image->base, (size_t)image->bytes);
  image->base = NULL;
  image->bytes = 0;
}

#endif
