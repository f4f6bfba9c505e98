/* Hashes of strings: the fingerprint of FarmHash of 64 bits (Pike and Alakuijala, 2014), and SipHash-2-4 by a key (Aumasson and
 * Bernstein, 2012). */
#include "string_table.h"

#ifndef WEFT_FREESTANDING

#include <string.h>

static const uint64_t K0 = 0xc3a5c85c97cb3127u, K1 = 0xb492b66fbe98f273u, K2 = 0x9ae16a3b2f90404fu;

typedef struct pair {
  uint64_t a, b;
} pair;

static uint64_t word(const char *at, size_t bytes) { /* little-endian */
  uint64_t found = 0;
  for (size_t i = bytes; i-- > 0;) found = found << 8 | (uint8_t)at[i];
  return found;
}

static uint64_t w8(const char *at) { return word(at, 8); }

static uint64_t turned(uint64_t x, int by) { return x >> by | x << (64 - by); }

static uint64_t mixed(uint64_t x) { return x ^ x >> 47; }

static uint64_t joined(uint64_t u, uint64_t v, uint64_t by) {
  uint64_t a = mixed((u ^ v) * by);
  return mixed((v ^ a) * by) * by;
}

static uint64_t of_short(const char *s, uint64_t n) { /* of 16 bytes at most */
  uint64_t by = K2 + 2 * n;
  if (n >= 8) {
    uint64_t a = w8(s) + K2, b = w8(s + n - 8);
    return joined(turned(b, 37) * by + a, (turned(a, 25) + b) * by, by);
  }
  if (n >= 4) return joined(n + (word(s, 4) << 3), word(s + n - 4, 4), by);
  if (n == 0) return K2;
  return mixed(((uint8_t)s[0] + ((uint64_t)(uint8_t)s[n >> 1] << 8)) * K2 ^ (n + ((uint64_t)(uint8_t)s[n - 1] << 2)) * K0) * K2;
}

static uint64_t of_middle(const char *s, uint64_t n) { /* of 17 to 64 bytes */
  uint64_t by = K2 + 2 * n, a = w8(s) * (n <= 32 ? K1 : K2), b = w8(s + 8), c = w8(s + n - 8) * by, d = w8(s + n - 16) * K2;
  uint64_t y = turned(a + b, 43) + turned(c, 30) + d, z = joined(y, a + turned(b + K2, 18) + c, by), e, f, g, h;
  if (n <= 32) return z;
  e = w8(s + 16) * by, f = w8(s + 24), g = (y + w8(s + n - 32)) * by, h = (z + w8(s + n - 24)) * by;
  return joined(turned(e + f, 43) + turned(g, 30) + h, e + turned(f + a, 18) + g, by);
}

static pair weak(const char *s, uint64_t a, uint64_t b) {
  uint64_t c;
  pair made;
  a += w8(s);
  b = turned(b + a + w8(s + 24), 21);
  c = a;
  a += w8(s + 8) + w8(s + 16);
  made.a = a + w8(s + 24), made.b = b + turned(a, 44) + c;
  return made;
}

static uint64_t of_long(const char *s, uint64_t n) {
  const char *last = s + n - 64, *end = s + (n - 1) / 64 * 64;
  uint64_t x = 81, y = 81 * K1 + 113, z = mixed(y * K2 + 113) * K2, by = K1, nine = 1, swapped;
  pair v = {0, 0}, w = {0, 0};
  x = x * K2 + w8(s);
  for (;;) {
    if (s == end) by = K1 + ((z & 0xff) << 1), nine = 9, s = last, w.a += (n - 1) & 63, v.a += w.a, w.a += v.a;
    x = turned(x + y + v.a + w8(s + 8), 37) * by;
    y = turned(y + v.b + w8(s + 48), 42) * by;
    x ^= w.b * nine;
    y += v.a * nine + w8(s + 40);
    z = turned(z + w.a, 33) * by;
    v = weak(s, v.b * by, x + w.a);
    w = weak(s + 32, z + w.b, y + w8(s + 16));
    swapped = z, z = x, x = swapped;
    if (nine == 9) return joined(joined(v.a, w.a, by) + mixed(y) * K0 + z, joined(v.b, w.b, by) + x, by);
    s += 64;
  }
}

static void sip_round(uint64_t v[4]) {
  v[0] += v[1], v[1] = turned(v[1], 51) ^ v[0], v[0] = turned(v[0], 32);
  v[2] += v[3], v[3] = turned(v[3], 48) ^ v[2];
  v[0] += v[3], v[3] = turned(v[3], 43) ^ v[0];
  v[2] += v[1], v[1] = turned(v[1], 47) ^ v[2], v[2] = turned(v[2], 32);
}

static uint64_t by_key(const char *s, uint64_t n, uint64_t first, uint64_t second) {
  uint64_t v[4] = {first ^ 0x736f6d6570736575u, second ^ 0x646f72616e646f6du, first ^ 0x6c7967656e657261u, second ^ 0x7465646279746573u};
  for (uint64_t at = 0; at <= n; at += 8) {
    uint64_t m = n - at >= 8 ? w8(s + at) : word(s + at, (size_t)(n - at)) | n << 56;
    v[3] ^= m;
    sip_round(v), sip_round(v);
    v[0] ^= m;
  }
  v[2] ^= 0xff;
  for (int i = 0; i < 4; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int32_t weft_string_hash(const weft_strings *s, const int64_t *ids, int64_t count, const int64_t *how, uint64_t *out) {
  for (int64_t i = 0; i < count; i++) {
    const weft_text *t = weft_string_at(s, ids[i]);
    uint64_t n = (uint64_t)t->bytes;
    if (how[0] != 0) out[i] = by_key(t->data, n, (uint64_t)how[1], (uint64_t)how[2]);
    else out[i] = n <= 16 ? of_short(t->data, n) : n <= 64 ? of_middle(t->data, n) : of_long(t->data, n);
  }
  return WEFT_OK;
}

#endif
typedef int weft_hashes_is_not_empty; /* ISO C forbids an empty file */
