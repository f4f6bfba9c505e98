/* A checksum as fast as memory can be read: cryptographic ones take as long for large weights as all the rest of loading.
 *
 * Eight sums run side by side, a 64-bit word each: sum = rotate((sum xor word) * odd number). Every step is a bijection of
 * the sum and of the word, so that a change of one word always shows; any other change goes unseen once in 2^64. */
#include <string.h>

#include "weft.h"

#define LANES 8
#define BLOCK (LANES * (int64_t)sizeof(uint64_t))
#define FACTOR UINT64_C(0x9E3779B97F4A7C15) /* 2^64 over the golden ratio, made odd */

static uint64_t mixed(uint64_t sum, uint64_t word) {
  uint64_t product = (sum ^ word) * FACTOR;
  return product << 29 | product >> 35;
}

static uint64_t little_endian(const uint8_t *bytes) {
  uint64_t word;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = 0;
  for (int k = 7; k >= 0; k--) word = word << 8 | bytes[k];
#else
  memcpy(&word, bytes, sizeof word);
#endif
  return word;
}

uint64_t weft_checksum(const void *data, int64_t bytes) {
  const uint8_t *at = (const uint8_t *)data;
  uint64_t sums[LANES] = {0}, total = (uint64_t)bytes;
  uint8_t last[BLOCK] = {0};
  int64_t left = bytes;
  for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
    for (int k = 0; k < LANES; k++) sums[k] = mixed(sums[k], little_endian(at + 8 * k));
  if (left > 0) memcpy(last, at, (size_t)left);
  for (int k = 0; k < LANES; k++) total = mixed(total, mixed(sums[k], little_endian(last + 8 * k)));
  return total;
}
