/* Maps images: writable while being copied, then executable or readable, never both writable and executable. */
#ifndef WEFT_FREESTANDING
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weft.h"

int32_t weft_image_map(weft_image *image, const void *blob, int64_t bytes, int64_t readonly) {
  int64_t page = sysconf(_SC_PAGESIZE);
  uint8_t *base;
  if (bytes <= 0 || readonly < 0 || readonly > bytes || (readonly != bytes && readonly % page != 0)) return WEFT_BAD_IMAGE;
  base = (uint8_t *)mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == (uint8_t *)MAP_FAILED) return WEFT_NO_MEMORY;
  memcpy(base, blob, (size_t)bytes);
  image->base = base;
  image->bytes = bytes;
  if ((readonly > 0 && mprotect(base, (size_t)readonly, PROT_READ | PROT_EXEC) != 0) ||
      (readonly < bytes && mprotect(base + readonly, (size_t)(bytes - readonly), PROT_READ) != 0)) {
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
typedef int weft_image_is_not_empty; /* ISO C forbids an empty file */
