/* Operators that are no loop nests, which generated code calls by their numbers; what each takes stands in loop/intrinsics.py.
 * They may use the C library: there are none where there is no operating system. */
#ifndef WEFT_HOSTOPS_H
#define WEFT_HOSTOPS_H

#include "weft_abi.h"

enum weft_host_operator { /* all begin with (pool, its bytes, elements, their number) */
  WEFT_STRINGS_TAKE,
  WEFT_STRINGS_GIVE,
  WEFT_STRING_CONCAT,
  WEFT_STRING_SPLIT,
  WEFT_STRING_CASE,
  WEFT_STRING_MATCH,
  WEFT_STRING_FORMAT,
  WEFT_STRING_PARSE, /* then WEFT_FRESH_SEED, of weft_abi.h */
  WEFT_STRING_TOKENS = WEFT_FRESH_SEED + 1,
  WEFT_STRING_HASH,
  WEFT_STRING_REPLACE
};

#endif
