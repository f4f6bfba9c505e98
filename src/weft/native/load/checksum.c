/* A checksum as fast as memory can be read: cryptographic ones take as long for large weights as all the rest of loading.
 *
 * Eight sums run side by side, a 64-bit word each: sum = rotate((sum xor word) * odd number). Every step is a bijection of
 * the sum and of the word, so that a change of one word always shows; any other change goes unseen once in 2^64. Pieces of
 * a mebibyte are summed by themselves, so that several threads can share the work. */
#include <string.h>

#include "internal.h"

#define LANES 8
#define BLOCK (LANES * (int64_t)sizeof(uint64_t))
#define FACTOR UINT64_C(0x9E3779B97F4A7C15) /* 2^64 over the golden ratio, made odd */

static uint64_t mixed(uint64_t sum, uint64_t word) {
  uint64_t product = (sum ^ word) * FACTOR;
  return product << 29 | product >> 35;
}

uint64_t weft_checksum_piece(const uint8_t *at, int64_t bytes) {
  uint64_t sums[LANES] = {0}, total = (uint64_t)bytes;
  uint8_t last[BLOCK] = {0};
  int64_t left = bytes;
  for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
    for (int k = 0; k < LANES; k++) sums[k] = mixed(sums[k], weft_u64_at(at + 8 * k));
  if (left > 0) memcpy(last, at, (size_t)left);
  for (int k = 0; k < LANES; k++) total = mixed(total, mixed(sums[k], weft_u64_at(last + 8 * k)));
  return total;
}

uint64_t weft_checksum_add(uint64_t sum, uint64_t piece) { return mixed(sum, piece); }

uint64_t weft_checksum_more(uint64_t sum, const void *data, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += WEFT_PIECE) {
    int64_t left = bytes - at;
    sum = mixed(sum, weft_checksum_piece((const uint8_t *)data + at, left < WEFT_PIECE ? left : WEFT_PIECE));
  }
  return sum;
}

uint64_t weft_checksum(const void *data, int64_t bytes) { return weft_checksum_more((uint64_t)bytes, data, bytes); }
