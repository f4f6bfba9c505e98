/* A memory that is not the host's, and the modules that work in it. */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include "weft_abi.h"

typedef struct weft_argument { /* letter b: a place in a buffer of a space; v: a scalar, whose value is `at` */
  uint8_t *base;
  int64_t at;
  int32_t space;
  uint8_t letter;
} weft_argument;

/* A memory space, and the modules that work in it; calls return a weft_status. Blocks that `alloc` returns are handles that only the
 * device looks into. A copy may be to or from the host's memory, space 0, or another device's. `constants` is the block that has the
 * model's constants in this memory. Where there is `begin`, a call uses the device that it returns, from its thread alone, until `end`
 * (NULL: no memory), and `launch` is that one's. Where there is `wait`, copies to the host are there after it, and after `end`. `submit`
 * tells a number by which all launches since the last copy can be made `again` (0: none), which returns whether it did. A call goes on
 * after what is on a stream of the driver's, where it is told to `follow` that. `discard` frees a block that others may still use. */
typedef struct weft_device {
  void *state;
  void *(*alloc)(void *state, int64_t bytes);
  void (*free)(void *state, void *block);
  int32_t (*copy)(void *state, weft_argument to, weft_argument from, int64_t bytes);
  int32_t (*launch)(void *state, int32_t callee, const int64_t grid[6], const weft_argument *arguments, int32_t count);
  void *constants;
  const struct weft_device *(*begin)(void *state);
  int32_t (*wait)(void *state), (*end)(void *state), (*submit)(void *state, int64_t *known);
  int (*again)(void *state, int64_t known, int32_t *status);
  int32_t (*follow)(void *state, void *stream);
  void (*discard)(void *state, void *block);
} weft_device;

#endif
