/* Strings as tokens: what matches an expression, or what stands between matches of separators, one separator after another. */
#include "regex.h"

#ifndef WEFT_FREESTANDING

#include <stddef.h>

enum { MOST_SEPARATORS = 64 };

typedef struct tokens {
  weft_strings *s;
  weft_regex separators[MOST_SEPARATORS]; /* or the expression of tokens, alone */
  int32_t count, finds;                   /* whether it is that */
  int64_t least;                          /* characters of a token */
  int64_t width, n;                       /* of a row, -1 where tokens are counted only; tokens of it so far */
  int64_t *row;
} tokens;

static const char *next_point(const char *at, const char *end) {
  const char *next = at + 1;
  if (at < end) (void)weft_utf8_read(at, end, &next);
  return next;
}

static int has_least(const tokens *t, const char *begin, const char *end) {
  int64_t count = 0;
  for (; begin < end && count < t->least; count++) begin = next_point(begin, end);
  return count >= t->least;
}

static int put(tokens *t, int64_t id) {
  if (t->width >= 0 && t->n < t->width) t->row[t->n] = id;
  t->n++;
  return id >= 0;
}

/* Appends what the expressions from number k on make of a text; 0 when there is no memory. */
static int append(tokens *t, int32_t k, const char *begin, const char *end) {
  const char *from = begin, *at = begin;
  if (k > 0 && !has_least(t, begin, end)) return 1;
  if (k == t->count) return put(t, t->width < 0 ? 0 : weft_string_id(t->s, begin, end - begin));
  while (at <= end) {
    const char *stop = weft_regex_longest(&t->separators[k], begin, end, at);
    if (stop == NULL) {
      at = next_point(at, end);
      continue;
    }
    if (!append(t, t->finds ? t->count : k + 1, t->finds ? at : from, t->finds ? stop : at)) return 0;
    from = at = stop > at ? stop : next_point(at, end);
  }
  return t->finds || from > end || append(t, k + 1, from, end);
}

static int32_t open_all(tokens *t, const int32_t *programs, int64_t words) {
  for (int64_t at = 0; at < words; at += 1 + programs[at]) {
    int32_t status = WEFT_FAILED_ASSERT;
    if (t->count < MOST_SEPARATORS && programs[at] >= 0 && programs[at] < words - at)
      status = weft_regex_open(&t->separators[t->count], programs + at + 1, programs[at]);
    if (status != WEFT_OK) return status;
    t->count++;
  }
  return t->count > 0 ? WEFT_OK : WEFT_FAILED_ASSERT;
}

int32_t weft_string_tokens(weft_strings *s, const int64_t *ids, int64_t count, const int32_t *programs, int64_t words,
                           const int64_t *how, int64_t *out) {
  const int64_t width = how[5], first = how[3];
  tokens t;
  int32_t status;
  t.s = s, t.count = 0, t.finds = how[0] != 0, t.least = how[1], t.width = width;
  status = open_all(&t, programs, words);
  for (int64_t i = 0; status == WEFT_OK && i < count; i++) {
    const weft_text *text = weft_string_at(s, ids[i]);
    int has_room;
    t.row = out + (width < 0 ? 0 : i * width);
    t.n = 0;
    has_room = (first < 0 || put(&t, first)) && append(&t, 0, text->data, text->data + text->bytes) &&
               (first < 0 || put(&t, how[4]));
    if (!has_room) status = WEFT_NO_MEMORY;
    if (width < 0) out[i] = t.n;
    else while (t.n < width) t.row[t.n++] = how[2];
  }
  for (int32_t k = 0; k < t.count; k++) weft_free(t.separators[k].memory);
  return status;
}

#endif
typedef int weft_tokens_is_not_empty; /* ISO C forbids an empty file */
