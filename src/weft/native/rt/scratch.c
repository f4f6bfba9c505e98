/* Working memory of kernels: a stack for each thread, which keeps its memory between calls, so that a call that has run
 * once allocates nothing. Blocks are freed in the opposite order of their allocation.
 *
 * The stack is a list of chunks, the newest first. A chunk is left when a block does not fit; once the stack is empty, only
 * the largest is kept. */
#define _GNU_SOURCE
#include "internal.h"

#ifdef WEFT_FREESTANDING

void *weft_scratch_push(weft_ctx *ctx, int64_t bytes) { return (void)ctx, weft_alloc(bytes); }

void weft_scratch_pop(weft_ctx *ctx, void *block) { (void)ctx, weft_free(block); }

#else

#include <pthread.h>

#define SMALLEST_CHUNK ((int64_t)1 << 20)

typedef struct chunk {
  struct chunk *below;
  int64_t size; /* bytes, these fields included */
  int64_t top;  /* bytes in use, likewise */
} chunk;

static __thread chunk *stack;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t aligned(int64_t bytes) { return (bytes + WEFT_ALIGN - 1) / WEFT_ALIGN * WEFT_ALIGN; }

static void drop_all(void *unused) {
  (void)unused;
  while (stack != NULL) {
    chunk *below = stack->below;
    weft_free(stack);
    stack = below;
  }
}

static void make_key(void) { (void)pthread_key_create(&at_exit, drop_all); }

static chunk *grow(int64_t needed) {
  int64_t size = stack != NULL && 2 * stack->size > SMALLEST_CHUNK ? 2 * stack->size : SMALLEST_CHUNK;
  chunk *made;
  if (needed > INT64_MAX / 4) return NULL;
  if (size < needed + WEFT_ALIGN) size = needed + WEFT_ALIGN;
  made = (chunk *)weft_alloc(size);
  if (made == NULL) return NULL;
  made->below = stack;
  made->size = size;
  made->top = WEFT_ALIGN;
  stack = made;
  (void)pthread_once(&once, make_key);
  (void)pthread_setspecific(at_exit, made); /* any value but NULL has drop_all called when the thread ends */
  return made;
}

void *weft_scratch_push(weft_ctx *ctx, int64_t bytes) {
  int64_t needed;
  chunk *c = stack;
  uint8_t *block;
  (void)ctx;
  if (bytes < 0 || bytes > INT64_MAX / 4) return NULL;
  needed = aligned(bytes > 0 ? bytes : 1);
  if (c == NULL || c->size - c->top < needed) c = grow(needed);
  if (c == NULL) return NULL;
  block = (uint8_t *)c + c->top;
  c->top += needed;
  return block;
}

/* Keeps the newest chunk, which is the largest, of a stack in which nothing is in use. */
static void keep_newest(void) {
  chunk *c;
  for (c = stack; c != NULL; c = c->below)
    if (c->top != WEFT_ALIGN) return;
  while (stack->below != NULL) {
    c = stack->below;
    stack->below = c->below;
    weft_free(c);
  }
}

void weft_scratch_pop(weft_ctx *ctx, void *block) {
  chunk *c = stack;
  (void)ctx;
  while (c != NULL && ((uint8_t *)block < (uint8_t *)c || (uint8_t *)block >= (uint8_t *)c + c->size)) c = c->below;
  if (c == NULL) return; /* not one of this thread's: nothing sensible can be done */
  c->top = (uint8_t *)block - (uint8_t *)c;
  keep_newest();
}

#endif
