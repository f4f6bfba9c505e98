/* Strings made of others: joined, split, and in another case. White space is what Unicode calls so, and the separators of ASCII. */
#include "string_table.h"

#ifndef WEFT_FREESTANDING

#include <stddef.h>
#include <string.h>

#include "case_table.h"

uint32_t weft_utf8_read(const char *at, const char *end, const char **next) {
  uint32_t lead = (uint8_t)*at, point;
  int more = lead < 0x80 ? 0 : lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : -1;
  *next = at + 1;
  if (more == 0) return lead;
  if (more < 0 || end - at <= more) return 0xfffd;
  point = lead & (0x3fu >> more);
  for (int i = 1; i <= more; i++) {
    if (((uint8_t)at[i] & 0xc0) != 0x80) return 0xfffd;
    point = point << 6 | ((uint8_t)at[i] & 0x3f);
  }
  if ((more == 2 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) || (more == 3 && (point < 0x10000 || point > 0x10ffff)))
    return 0xfffd;
  *next = at + 1 + more;
  return point;
}

int weft_utf8_write(uint32_t point, char *at) {
  int more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
  at[0] = (char)(leads[more] | point >> 6 * more);
  for (int i = 1; i <= more; i++) at[i] = (char)(0x80 | (point >> 6 * (more - i) & 0x3f));
  return more + 1;
}

int32_t weft_string_concat(weft_strings *s, const int64_t *a, const int64_t *b, int64_t count, int64_t *out) {
  for (int64_t i = 0; i < count; i++) {
    const weft_text *x = weft_string_at(s, a[i]), *y = weft_string_at(s, b[i]);
    char *made = weft_string_room(s, x->bytes + y->bytes);
    if (made == NULL) return WEFT_NO_MEMORY;
    if (x->bytes > 0) memcpy(made, x->data, (size_t)x->bytes);
    if (y->bytes > 0) memcpy(made + x->bytes, y->data, (size_t)y->bytes);
    out[i] = weft_string_id(s, made, x->bytes + y->bytes);
    if (out[i] < 0) return WEFT_NO_MEMORY;
  }
  return WEFT_OK;
}

static int is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static const char *skip_space(const char *at, const char *end) {
  const char *next = at;
  while (at < end && is_space(weft_utf8_read(at, end, &next))) at = next;
  return at;
}

static const char *skip_word(const char *at, const char *end) {
  const char *next = at;
  while (at < end && !is_space(weft_utf8_read(at, end, &next))) at = next;
  return at;
}

/* Where a delimiter is found next; the end where it is not. */
static const char *find(const char *at, const char *end, const weft_text *delimiter) {
  for (; end - at >= delimiter->bytes; at++) {
    at = (const char *)memchr(at, delimiter->data[0], (size_t)(end - at - delimiter->bytes) + 1);
    if (at == NULL) return end;
    if (memcmp(at, delimiter->data, (size_t)delimiter->bytes) == 0) return at;
  }
  return end;
}

/* The next part of a string from *at on, which goes on to *stop, and moves *at behind it; 0 where there is none. The last of
 * `left` parts is all the rest. */
static int next_part(const char **at, const char *end, const weft_text *delimiter, int64_t left, int *done, const char **begin,
                     const char **stop) {
  if (*done) return 0;
  if (delimiter->bytes == 0) {
    *begin = skip_space(*at, end);
    *stop = left == 0 ? end : skip_word(*begin, end);
    *at = *stop;
    return *begin < end;
  }
  *begin = *at;
  *stop = left == 0 ? end : find(*at, end, delimiter);
  *done = *stop == end;
  *at = *done ? end : *stop + delimiter->bytes;
  return 1;
}

/* Each string's parts, `width` at most, and behind them "": where width is -1, their number instead. Empty delimiters stand for white
 * space; most < 0: splits as often as there are delimiters. */
int32_t weft_string_split(weft_strings *s, const int64_t *ids, int64_t count, int64_t delimiter, int64_t most, int64_t width,
                          int64_t *out) {
  const weft_text *by = weft_string_at(s, delimiter);
  const int counts = width < 0;
  for (int64_t i = 0; i < count; i++) {
    const weft_text *t = weft_string_at(s, ids[i]);
    const char *at = t->data, *end = t->data + t->bytes, *begin, *stop;
    int64_t n = 0, *row = out + (counts ? i : i * width);
    int done = 0;
    while ((counts || n < width) && next_part(&at, end, by, most < 0 ? -1 : most - n, &done, &begin, &stop)) {
      if (!counts) row[n] = weft_string_id(s, begin, stop - begin);
      if (!counts && row[n] < 0) return WEFT_NO_MEMORY;
      n++;
    }
    if (counts) *row = n;
    while (n < width) row[n++] = 0;
  }
  return WEFT_OK;
}

/* The code point in the other case, by a table whose rows are in order. */
static uint32_t mapped(uint32_t point, const weft_case_row *rows, int32_t count) {
  int32_t low = 0, high = count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    const weft_case_row *r = &rows[middle];
    if ((int64_t)point < r->first) high = middle;
    else if ((int64_t)point > r->last) low = middle + 1;
    else return ((int32_t)point - r->first) % r->step == 0 ? (uint32_t)((int32_t)point + r->distance) : point;
  }
  return point;
}

uint32_t weft_lower(uint32_t point) { return mapped(point, WEFT_LOWER, (int32_t)(sizeof WEFT_LOWER / sizeof *WEFT_LOWER)); }
uint32_t weft_upper(uint32_t point) { return mapped(point, WEFT_UPPER, (int32_t)(sizeof WEFT_UPPER / sizeof *WEFT_UPPER)); }

int32_t weft_string_case(weft_strings *s, const int64_t *ids, int64_t count, int64_t upper, int64_t *out) {
  for (int64_t i = 0; i < count; i++) {
    const weft_text *t = weft_string_at(s, ids[i]);
    const char *at = t->data, *end = t->data + t->bytes, *next;
    char *made = weft_string_room(s, 3 * t->bytes); /* two bytes of a letter may become three */
    int64_t bytes = 0;
    if (made == NULL) return WEFT_NO_MEMORY;
    for (; at < end; at = next) {
      uint32_t point = weft_utf8_read(at, end, &next);
      int is_kept = upper >= 2 && point >= 0x80; /* where letters are those of ASCII alone */
      if (is_kept || (point == 0xfffd && next == at + 1)) /* no UTF-8: it stays as it is */
        for (const char *from = at; from < next; from++) made[bytes++] = *from;
      else bytes += weft_utf8_write(upper % 2 != 0 ? weft_upper(point) : weft_lower(point), made + bytes);
    }
    out[i] = weft_string_id(s, made, bytes);
    if (out[i] < 0) return WEFT_NO_MEMORY;
  }
  return WEFT_OK;
}

#endif
