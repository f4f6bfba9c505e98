/* Strings while a call runs: each is a number, its *id*, equal ids for equal strings, so that generated code moves and compares
 * integers. A context has the bytes.
 *
 * The strings that a model knows are its *pool*, one constant: i32 count, i32 begin[count + 1] of offsets into the bytes that follow.
 * They have the ids 0 to count - 1, in every call; the string with id 0 is "". A call's own strings are numbered from there on, as
 * they appear. What is asked about an id that there is not is answered for "". All operators of a model are given the same pool. */
#ifndef WEFT_STRINGS_H
#define WEFT_STRINGS_H

#include "weft_abi.h"

enum { WEFT_STRING_BLOCK = 512 /* strings whose descriptions lie together: these never move, callers point at them */ };

/* Pieces of bytes and blocks of descriptions, each of which knows the one before. */
typedef struct weft_piece {
  struct weft_piece *before;
  int64_t used, bytes;
} weft_piece;

struct weft_strings {
  const uint8_t *pool; /* that is entered; NULL for none */
  weft_text **blocks;
  int64_t pool_bytes, block_count, count, pool_count;
  int32_t *table; /* id + 1 by hash, 0 where it is free */
  int64_t room;   /* of the table, a power of two */
  weft_piece *bytes;
};

/* The context's strings, with the pool entered; NULL when there is no memory. */
weft_strings *weft_strings_of(weft_ctx *ctx, const uint8_t *pool, int64_t bytes);

/* The string of an id. */
const weft_text *weft_string_at(const weft_strings *s, int64_t id);

/* The id of a string, which is copied where it is new; -1 when there is no memory. */
int64_t weft_string_id(weft_strings *s, const char *data, int64_t bytes);

/* Room for a string that is being made, to be given to weft_string_id before the next is asked for; NULL when there is no memory. */
char *weft_string_room(weft_strings *s, int64_t bytes);

/* The code point that begins at `at`, and behind it *next; a byte that is no UTF-8 is U+FFFD. Writes one, and returns its bytes. */
uint32_t weft_utf8_read(const char *at, const char *end, const char **next);
int weft_utf8_write(uint32_t point, char *at);

/* The other case of a letter, if it is one code point; else itself. */
uint32_t weft_lower(uint32_t point);
uint32_t weft_upper(uint32_t point);

/* Operators on `count` elements; each returns a weft_status. */
int32_t weft_string_concat(weft_strings *s, const int64_t *a, const int64_t *b, int64_t count, int64_t *out);
int32_t weft_string_split(weft_strings *s, const int64_t *ids, int64_t count, int64_t delimiter, int64_t most, int64_t width,
                          int64_t *out);
int32_t weft_string_case(weft_strings *s, const int64_t *ids, int64_t count, int64_t upper, int64_t *out);
int32_t weft_string_match(weft_strings *s, const int64_t *ids, int64_t count, const int32_t *program, int64_t words, uint8_t *out);
/* Tokens by programs one after another, each behind its number of words. How: 1 where the program finds tokens, 0 where they separate
 * them; the least characters of a token; the ids of what fills rows, of what begins and of what ends each (-1: nothing); the width
 * of a row, where it is -1 the number of tokens is written instead. */
int32_t weft_string_tokens(weft_strings *s, const int64_t *ids, int64_t count, const int32_t *programs, int64_t words,
                           const int64_t *how, int64_t *out);
/* How: 0 for fingerprints, 1 for SipHash; the two halves of its key. */
int32_t weft_string_hash(const weft_strings *s, const int64_t *ids, int64_t count, const int64_t *how, uint64_t *out);
/* How: the id of what takes a match's place; 1 for all matches, 0 for the first. */
int32_t weft_string_replace(weft_strings *s, const int64_t *ids, int64_t count, const int32_t *program, int64_t words,
                            const int64_t *how, int64_t *out);
int32_t weft_string_format(weft_strings *s, const void *numbers, int64_t count, int64_t dtype, int64_t *out);
int32_t weft_string_parse(weft_strings *s, const int64_t *ids, int64_t count, int64_t dtype, void *out, int64_t *bad);

#endif
