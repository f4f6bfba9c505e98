/* Numbers as text, and back. A float is written in the fewest digits that read back as it, as Python and NumPy write it. */
#include "string_table.h"

#ifndef WEFT_FREESTANDING

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


enum { MOST_DIGITS = 17, MOST_CHARACTERS = 400, FIXED_ABOVE = -5, FIXED_BELOW = 16 };

/* What the C library writes between a number's parts: it depends on the locale of the process. */
static char decimal_point(void) {
  char text[8];
  (void)snprintf(text, sizeof text, "%.1f", 0.5);
  return text[1];
}

/* The digits of a finite float, one of them before the point, and its decimal exponent; returns the number of digits. */
static int shortest(double x, int is_single, char *digits, int *exponent) {
  char text[40];
  int count = 1, n = 0;
  for (; count <= MOST_DIGITS; count++) {
    (void)snprintf(text, sizeof text, "%.*e", count - 1, x);
    if (is_single ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x) break;
  }
  *exponent = atoi(strchr(text, 'e') + 1);
  for (const char *at = text; *at != 'e'; at++)
    if (*at >= '0' && *at <= '9') digits[n++] = *at;
  return n;
}

static int write_float(double x, int is_single, char *to) {
  char digits[MOST_DIGITS + 1] = "0", *at = to;
  int count, exponent;
  if (isnan(x)) return (int)strlen(strcpy(to, "nan"));
  if (signbit(x)) *at++ = '-';
  if (isinf(x)) return (int)(strlen(strcpy(at, "inf")) + (size_t)(at - to));
  count = shortest(fabs(x), is_single, digits, &exponent);
  if (exponent <= FIXED_ABOVE || exponent >= FIXED_BELOW) { /* 1.5e-05 */
    *at++ = digits[0];
    if (count > 1) *at++ = '.';
    for (int i = 1; i < count; i++) *at++ = digits[i];
    at += snprintf(at, 8, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    return (int)(at - to);
  }
  for (int i = 0; i <= exponent; i++) *at++ = i < count ? digits[i] : '0';
  if (exponent < 0) *at++ = '0';
  *at++ = '.';
  for (int i = exponent + 1; i < 0; i++) *at++ = '0';
  for (int i = exponent < 0 ? 0 : exponent + 1; i < count; i++) *at++ = digits[i];
  if (at[-1] == '.') *at++ = '0';
  return (int)(at - to);
}

int32_t weft_string_format(weft_strings *s, const void *numbers, int64_t count, int64_t dtype, int64_t *out) {
  char text[MOST_CHARACTERS];
  for (int64_t i = 0; i < count; i++) {
    int n;
    if (dtype == WEFT_F32) n = write_float((double)((const float *)numbers)[i], 1, text);
    else if (dtype == WEFT_F64) n = write_float(((const double *)numbers)[i], 0, text);
    else if (dtype == WEFT_U64) n = snprintf(text, sizeof text, "%llu", (unsigned long long)((const uint64_t *)numbers)[i]);
    else n = snprintf(text, sizeof text, "%lld", (long long)((const int64_t *)numbers)[i]);
    out[i] = weft_string_id(s, text, n);
    if (out[i] < 0) return WEFT_NO_MEMORY;
  }
  return WEFT_OK;
}

/* Reads a string as a number; 0 where it is none, or too large for an integer. White space around it is allowed. */
static int read_number(const weft_text *t, char point, int64_t dtype, void *out) {
  char text[MOST_CHARACTERS], *end = text;
  const char *from = t->data, *last = t->data + t->bytes;
  size_t length;
  int is_integer = dtype == WEFT_I64 || dtype == WEFT_U64;
  while (from < last && strchr(" \t\n\v\f\r", *from) != NULL && *from != 0) from++;
  while (from < last && strchr(" \t\n\v\f\r", last[-1]) != NULL && last[-1] != 0) last--;
  length = (size_t)(last - from);
  if (length == 0 || length >= sizeof text) return 0;
  memcpy(text, from, length);
  text[length] = 0;
  if (strlen(text) != length || strpbrk(text, "xXpP(,") != NULL) return 0; /* hexadecimal floats, nan(...) and commas */
  for (char *at = text; *at != 0; at++)
    if (*at == '.') *at = point;
  errno = 0;
  if (dtype == WEFT_I64) *(int64_t *)out = strtoll(text, &end, 10);
  else if (dtype == WEFT_U64) *(uint64_t *)out = text[0] == '-' ? 0 : strtoull(text, &end, 10);
  else if (dtype == WEFT_F32) *(float *)out = strtof(text, &end);
  else *(double *)out = strtod(text, &end);
  return end == text + length && !(is_integer && errno == ERANGE);
}

/* *bad becomes 1 + the number of an element that is no number of the type, 0 where there is none. */
int32_t weft_string_parse(weft_strings *s, const int64_t *ids, int64_t count, int64_t dtype, void *out, int64_t *bad) {
  const char point = decimal_point();
  const int64_t size = dtype == WEFT_F32 ? 4 : 8;
  *bad = 0;
  for (int64_t i = 0; i < count; i++) {
    char *to = (char *)out + i * size;
    if (read_number(weft_string_at(s, ids[i]), point, dtype, to)) continue;
    memset(to, 0, (size_t)size);
    if (*bad == 0) *bad = i + 1;
  }
  return WEFT_OK;
}

#endif
