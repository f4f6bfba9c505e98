/* Regular expressions, compiled by frontends.regular_expressions. */
#ifndef WEFT_REGEX_H
#define WEFT_REGEX_H

#include "string_table.h"

typedef struct weft_places { /* a sparse set of places in the program */
  int32_t *list, *where, count;
} weft_places;

typedef struct weft_regex {
  const int32_t *code, *ranges;
  int32_t length, range_count;
  int32_t *stack, *memory; /* the memory is to be freed by who opened it */
  weft_places now, then;
} weft_regex;

/* Makes a program of so many words ready: a weft_status. */
int32_t weft_regex_open(weft_regex *m, const int32_t *program, int64_t words);

/* The end of the longest match, in the text from `begin` to `end`, that begins at `at`; NULL where none does. */
const char *weft_regex_longest(weft_regex *m, const char *begin, const char *end, const char *at);

#endif
