/* The one function by which generated code calls an operator that is no loop nest. */
#include "string_table.h"

#ifndef WEFT_FREESTANDING

#include <stddef.h>

#include "hostops.h"

#define POINTER(type, k) ((type *)(intptr_t)args[k])

/* Strings of a caller become ids: the elements are the addresses of weft_texts, and "" where that is NULL. */
static int32_t take(weft_strings *s, const weft_text *const *texts, int64_t count, int64_t *out) {
  for (int64_t i = 0; i < count; i++) {
    out[i] = texts[i] == NULL ? 0 : weft_string_id(s, texts[i]->data, texts[i]->bytes);
    if (out[i] < 0) return WEFT_NO_MEMORY;
  }
  return WEFT_OK;
}

static int32_t give(const weft_strings *s, const int64_t *ids, int64_t count, const weft_text **out) {
  for (int64_t i = 0; i < count; i++) out[i] = weft_string_at(s, ids[i]);
  return WEFT_OK;
}

int32_t weft_host(weft_ctx *ctx, int32_t operator, const int64_t *args) {
  weft_strings *s;
  const int64_t *ids;
  int64_t count;
  if (operator == WEFT_FRESH_SEED) return *POINTER(int64_t, 0) = weft_fresh_seed(), WEFT_OK;
  s = weft_strings_of(ctx, POINTER(const uint8_t, 0), args[1]);
  if (s == NULL) return WEFT_NO_MEMORY;
  ids = POINTER(const int64_t, 2);
  count = args[3];
  switch (operator) {
    case WEFT_STRINGS_TAKE: return take(s, POINTER(const weft_text *const, 2), count, POINTER(int64_t, 4));
    case WEFT_STRINGS_GIVE: return give(s, ids, count, POINTER(const weft_text *, 4));
    case WEFT_STRING_CONCAT: return weft_string_concat(s, ids, POINTER(const int64_t, 4), count, POINTER(int64_t, 5));
    case WEFT_STRING_SPLIT: return weft_string_split(s, ids, count, args[4], args[5], args[6], POINTER(int64_t, 7));
    case WEFT_STRING_CASE: return weft_string_case(s, ids, count, args[4], POINTER(int64_t, 5));
    case WEFT_STRING_MATCH: return weft_string_match(s, ids, count, POINTER(const int32_t, 4), args[5], POINTER(uint8_t, 6));
    case WEFT_STRING_FORMAT: return weft_string_format(s, ids, count, args[4], POINTER(int64_t, 5));
    case WEFT_STRING_PARSE: return weft_string_parse(s, ids, count, args[4], POINTER(void, 5), POINTER(int64_t, 6));
    case WEFT_STRING_TOKENS:
      return weft_string_tokens(s, ids, count, POINTER(const int32_t, 4), args[5], args + 6, POINTER(int64_t, 12));
    case WEFT_STRING_HASH: return weft_string_hash(s, ids, count, args + 4, POINTER(uint64_t, 7));
    case WEFT_STRING_REPLACE:
      return weft_string_replace(s, ids, count, POINTER(const int32_t, 4), args[5], args + 6, POINTER(int64_t, 8));
    default: return WEFT_FAILED_ASSERT;
  }
}

#endif
