/* Regular expressions, in time linear in the length of what they match: all ways through the program are followed at once
 * (K. Thompson, Regular Expression Search Algorithm, CACM 11(6), 1968). */
#include "regex.h"

#ifndef WEFT_FREESTANDING

#include <stddef.h>


/* A program: i32 instructions, i32 ranges, then (operation, a, b) for each instruction, then (first, last) for each range of code
 * points, sorted within a set. */
enum { MATCH, JUMP /* to a */, SPLIT /* to a, and to b */, SET /* one code point of the ranges from a on, b of them */, ASSERT /* a */ };
enum { BEGIN, END, WORD_BOUNDARY, NO_WORD_BOUNDARY, LINE_BEGIN, LINE_END };

static int is_word(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

static int has(const weft_places *t, int32_t place) { return t->where[place] < t->count && t->list[t->where[place]] == place; }

static void add(weft_places *t, int32_t place) {
  if (has(t, place)) return;
  t->where[place] = t->count;
  t->list[t->count++] = place;
}

/* Adds a place, and all that it leads to without reading; `before` and `after` are the code points beside, or -1. */
static void follow(const weft_regex *m, weft_places *t, int32_t place, int64_t before, int64_t after) {
  int32_t open = 0;
  m->stack[open++] = place;
  while (open > 0) {
    const int32_t *at;
    int boundary, holds;
    place = m->stack[--open];
    if (place < 0 || place >= m->length || has(t, place)) continue;
    add(t, place);
    at = m->code + 3 * place;
    if (at[0] == JUMP || at[0] == SPLIT) m->stack[open++] = at[1];
    if (at[0] == SPLIT) m->stack[open++] = at[2];
    if (at[0] != ASSERT) continue;
    boundary = (before >= 0 && is_word((uint32_t)before)) != (after >= 0 && is_word((uint32_t)after));
    holds = at[1] == BEGIN ? before < 0 : at[1] == END ? after < 0 : at[1] == WORD_BOUNDARY ? boundary
            : at[1] == NO_WORD_BOUNDARY ? !boundary : at[1] == LINE_BEGIN ? before < 0 || before == '\n' : after < 0 || after == '\n';
    if (holds) m->stack[open++] = place + 1;
  }
}

static int is_in(const weft_regex *m, int32_t first, int32_t count, uint32_t c) {
  const int32_t *r = m->ranges;
  int32_t low = first, high = first + count;
  if (first < 0 || count < 0 || count > m->range_count - first) return 0;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if ((int64_t)c < r[2 * middle]) high = middle;
    else if ((int64_t)c > r[2 * middle + 1]) low = middle + 1;
    else return 1;
  }
  return 0;
}

/* The code point that ends at `at`, or -1 at the beginning. */
static int64_t point_before(const char *begin, const char *at, const char *end) {
  const char *from = at, *next;
  while (from > begin && at - from < 4 && ((uint8_t)*--from & 0xc0) == 0x80) continue;
  return at == begin ? -1 : (int64_t)weft_utf8_read(from, end, &next);
}

const char *weft_regex_longest(weft_regex *m, const char *begin, const char *end, const char *at) {
  const char *next = at, *behind, *found = NULL;
  weft_places *now = &m->now, *then = &m->then;
  int64_t before = point_before(begin, at, end), c = at < end ? (int64_t)weft_utf8_read(at, end, &next) : -1;
  now->count = 0;
  follow(m, now, 0, before, c);
  while (now->count > 0) {
    int64_t after = next < end ? (int64_t)weft_utf8_read(next, end, &behind) : -1;
    weft_places *swapped = now;
    then->count = 0;
    for (int32_t i = 0; i < now->count; i++) {
      const int32_t *step = m->code + 3 * now->list[i];
      if (step[0] == MATCH) found = at;
      if (c >= 0 && step[0] == SET && is_in(m, step[1], step[2], (uint32_t)c)) follow(m, then, now->list[i] + 1, c, after);
    }
    now = then, then = swapped;
    before = c, c = after, at = next;
    if (next < end) next = behind;
  }
  return found;
}

int32_t weft_regex_open(weft_regex *m, const int32_t *program, int64_t words) {
  int64_t n = words < 2 ? 0 : program[0], ranges = words < 2 ? 0 : program[1];
  if (n < 1 || ranges < 0 || 2 + 3 * n + 2 * ranges > words) return WEFT_FAILED_ASSERT;
  m->memory = (int32_t *)weft_alloc((4 + 3) * n * (int64_t)sizeof *m->memory + 64);
  if (m->memory == NULL) return WEFT_NO_MEMORY;
  for (int64_t i = 0; i < 7 * n; i++) m->memory[i] = 0;
  m->code = program + 2;
  m->ranges = program + 2 + 3 * n;
  m->length = (int32_t)n;
  m->range_count = (int32_t)ranges;
  m->now.list = m->memory, m->now.where = m->memory + n, m->now.count = 0;
  m->then.list = m->memory + 2 * n, m->then.where = m->memory + 3 * n, m->then.count = 0;
  m->stack = m->memory + 4 * n; /* each place that is added leaves two more at most, and one is there to begin with */
  return WEFT_OK;
}

int32_t weft_string_match(weft_strings *s, const int64_t *ids, int64_t count, const int32_t *program, int64_t words, uint8_t *out) {
  weft_regex m;
  int32_t status = weft_regex_open(&m, program, words);
  if (status != WEFT_OK) return status;
  for (int64_t i = 0; i < count; i++) {
    const weft_text *t = weft_string_at(s, ids[i]);
    out[i] = (uint8_t)(weft_regex_longest(&m, t->data, t->data + t->bytes, t->data) == t->data + t->bytes);
  }
  weft_free(m.memory);
  return WEFT_OK;
}

#endif
