/* Strings with others in the place of what matches an expression. */
#include "regex.h"

#ifndef WEFT_FREESTANDING

#include <stddef.h>
#include <string.h>

/* Writes a string with its matches replaced, all or the first, and returns its bytes; where *made is NULL, counts them only. A match of
 * nothing is none right behind another match. */
static int64_t replaced(weft_regex *m, const weft_text *t, const weft_text *by, int64_t all, char *made) {
  const char *at = t->data, *end = t->data + t->bytes, *last = NULL;
  int64_t bytes = 0, done = 0;
  while (at <= end) {
    const char *stop = done != 0 && all == 0 ? NULL : weft_regex_longest(m, t->data, end, at), *next = at + 1;
    if (stop != NULL && (stop > at || at != last)) {
      if (made != NULL && by->bytes > 0) memcpy(made + bytes, by->data, (size_t)by->bytes);
      bytes += by->bytes, done = 1, last = stop;
      if (stop > at) {
        at = stop;
        continue;
      }
    }
    if (at == end) break;
    (void)weft_utf8_read(at, end, &next);
    if (made != NULL) memcpy(made + bytes, at, (size_t)(next - at));
    bytes += next - at;
    at = next;
  }
  return bytes;
}

int32_t weft_string_replace(weft_strings *s, const int64_t *ids, int64_t count, const int32_t *program, int64_t words,
                            const int64_t *how, int64_t *out) {
  weft_regex m;
  int32_t status = weft_regex_open(&m, program, words);
  if (status != WEFT_OK) return status;
  for (int64_t i = 0; status == WEFT_OK && i < count; i++) {
    const weft_text *t = weft_string_at(s, ids[i]), *by = weft_string_at(s, how[0]);
    int64_t bytes = replaced(&m, t, by, how[1], NULL);
    char *made = weft_string_room(s, bytes);
    if (made != NULL) out[i] = weft_string_id(s, made, replaced(&m, t, by, how[1], made));
    if (made == NULL || out[i] < 0) status = WEFT_NO_MEMORY;
  }
  weft_free(m.memory);
  return status;
}

#endif
typedef int weft_replace_is_not_empty; /* ISO C forbids an empty file */
