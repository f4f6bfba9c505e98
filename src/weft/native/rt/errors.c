/* Errors in words, put together without stdio, which not every target has. */
#include <stddef.h>

#include "internal.h"

int32_t weft_same(const char *a, const char *b) {
  while (*a != 0 && *a == *b) a++, b++;
  return *a == *b;
}

void weft_say(weft_error *error, const char *text) {
  char *at = error->text, *end = error->text + sizeof error->text - 1;
  while (*at != 0) at++;
  while (*text != 0 && at < end) *at++ = *text++;
  *at = 0;
}

void weft_say_number(weft_error *error, int64_t number) {
  char digits[24], *at = digits + sizeof digits - 1;
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  *at = 0;
  do *--at = (char)('0' + left % 10);
  while ((left /= 10) > 0);
  if (number < 0) *--at = '-';
  weft_say(error, at);
}

int32_t weft_fail(weft_error *error, int32_t status, const char *format, const char *text, const int64_t *numbers) {
  char letter[2] = {0, 0};
  if (error == NULL) return status;
  error->status = status;
  error->text[0] = 0;
  for (; *format != 0; format++) {
    int is_field = format[0] == '{' && format[1] != 0 && format[2] == '}';
    if (is_field && format[1] >= '0' && format[1] <= '3') weft_say_number(error, numbers[format[1] - '0']);
    else if (is_field && format[1] == 's') weft_say(error, text);
    else {
      letter[0] = *format;
      if ((*format == '{' || *format == '}') && format[1] == *format) format++; /* doubled: itself */
      weft_say(error, letter);
      continue;
    }
    format += 2;
  }
  return status;
}

int32_t weft_no_memory(weft_error *error) {
  return weft_fail(error, WEFT_NO_MEMORY, "there is no memory left for the model", NULL, NULL);
}

int32_t weft_damaged(weft_error *error) {
  return weft_fail(error, WEFT_DAMAGED, "the file was altered: its checksum is wrong", NULL, NULL);
}
