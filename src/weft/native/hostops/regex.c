/* Regular expressions that match whole strings, in time linear in their length: all ways through the program are followed at once
 * (K. Thompson, Regular Expression Search Algorithm, CACM 11(6), 1968). */
#include "string_table.h"

#ifndef WEFT_FREESTANDING

#include <stddef.h>


/* A program: i32 instructions, i32 ranges, then (operation, a, b) for each instruction, then (first, last) for each range of code
 * points, sorted within a set. */
enum { MATCH, JUMP /* to a */, SPLIT /* to a, and to b */, SET /* one code point of the ranges from a on, b of them */, ASSERT /* a */ };
enum { BEGIN, END, WORD_BOUNDARY, NO_WORD_BOUNDARY, LINE_BEGIN, LINE_END };

typedef struct threads { /* a sparse set of places in the program */
  int32_t *list, *where, count;
} threads;

typedef struct matcher {
  const int32_t *code, *ranges;
  int32_t length, range_count;
  int32_t *stack;
} matcher;

static int is_word(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

static int has(const threads *t, int32_t place) { return t->where[place] < t->count && t->list[t->where[place]] == place; }

static void add(threads *t, int32_t place) {
  if (has(t, place)) return;
  t->where[place] = t->count;
  t->list[t->count++] = place;
}

/* Adds a place, and all that it leads to without reading; `before` and `after` are the code points beside, or -1. */
static void follow(const matcher *m, threads *t, int32_t place, int64_t before, int64_t after) {
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

static int is_in(const matcher *m, int32_t first, int32_t count, uint32_t c) {
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

static int matches(const matcher *m, const weft_text *text, threads *now, threads *then) {
  const char *at = text->data, *end = text->data + text->bytes, *next = at, *behind;
  int64_t before = -1, c = at < end ? (int64_t)weft_utf8_read(at, end, &next) : -1;
  now->count = 0;
  follow(m, now, 0, before, c);
  while (c >= 0 && now->count > 0) {
    int64_t after = next < end ? (int64_t)weft_utf8_read(next, end, &behind) : -1;
    threads *swapped = now;
    then->count = 0;
    for (int32_t i = 0; i < now->count; i++) {
      const int32_t *at_place = m->code + 3 * now->list[i];
      if (at_place[0] == SET && is_in(m, at_place[1], at_place[2], (uint32_t)c)) follow(m, then, now->list[i] + 1, c, after);
    }
    now = then, then = swapped;
    before = c, c = after;
    if (next < end) next = behind;
  }
  for (int32_t i = 0; c < 0 && i < now->count; i++)
    if (m->code[3 * now->list[i]] == MATCH) return 1;
  return 0;
}

int32_t weft_string_match(weft_strings *s, const int64_t *ids, int64_t count, const int32_t *program, int64_t words, uint8_t *out) {
  matcher m;
  threads now, then;
  int32_t *memory;
  int64_t n = words < 2 ? 0 : program[0], ranges = words < 2 ? 0 : program[1];
  if (n < 1 || ranges < 0 || 2 + 3 * n + 2 * ranges > words) return WEFT_FAILED_ASSERT;
  memory = (int32_t *)weft_alloc((4 + 3) * n * (int64_t)sizeof *memory + 64);
  if (memory == NULL) return WEFT_NO_MEMORY;
  for (int64_t i = 0; i < 7 * n; i++) memory[i] = 0;
  m.code = program + 2;
  m.ranges = program + 2 + 3 * n;
  m.length = (int32_t)n;
  m.range_count = (int32_t)ranges;
  now.list = memory, now.where = memory + n, now.count = 0;
  then.list = memory + 2 * n, then.where = memory + 3 * n, then.count = 0;
  m.stack = memory + 4 * n; /* each place that is added leaves two more at most, and one is there to begin with */
  for (int64_t i = 0; i < count; i++) out[i] = (uint8_t)matches(&m, weft_string_at(s, ids[i]), &now, &then);
  weft_free(memory);
  return WEFT_OK;
}

#endif
