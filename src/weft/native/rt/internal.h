/* What the files of the runtime share, and nobody else sees. */
#ifndef WEFT_INTERNAL_H
#define WEFT_INTERNAL_H

#include "weft_abi.h"

/* The part of a header that has the same place in all of them. */
typedef struct prefix {
  uint64_t size, header_sum, image_sum, constants_sum, image_at, image_bytes, readonly, plan, main, constants_at,
      constant_bytes;
  int64_t arena_bytes;
  uint32_t format, abi, inputs, outputs, dims, checks, features, notes, flags;
} prefix;

#define PREFIX_BYTES 136
#define PAIR_ROW 8    /* bytes of a row of two numbers in the tables of a header */
#define FLAG_FLUSH 1u /* of a prefix: denormals are taken for zero */

/* Little-endian numbers, on any machine: compilers make one load of these. */
static inline uint32_t weft_u32_at(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static inline uint64_t weft_u64_at(const uint8_t *at) { return weft_u32_at(at) | (uint64_t)weft_u32_at(at + 4) << 32; }

/* ctx->failed_assert where a tensor is at fault: its dtype or rank, its data that is NULL, or where its data is; detail has its
 * number, outputs after inputs. And where the context has no state, which its model needs. */
enum { WEFT_MISFIT = -2, WEFT_NO_DATA = -3, WEFT_MISALIGNED = -4, WEFT_NO_STATE = -5 };

/* Reads a prefix and checks it by itself; then, once the whole header (image_at bytes) is there, all that it says. */
int32_t weft_prefix_read(prefix *p, const uint8_t *bytes, weft_error *error);
int32_t weft_header_read(weft_model *model, const prefix *p, const uint8_t *header, int32_t flags, weft_error *error);

/* The checksum of data of at most WEFT_PIECE bytes; and that of more, piece by piece in order, from the number of bytes on. */
uint64_t weft_checksum_piece(const uint8_t *data, int64_t bytes);
uint64_t weft_checksum_add(uint64_t sum, uint64_t piece);

/* Errors in words, without stdio. An error may be NULL, but where weft_say and weft_say_number add to its text. weft_fail returns
 * the status; in its format {s} stands for the text, {0} to {3} for the numbers. */
int32_t weft_fail(weft_error *error, int32_t status, const char *format, const char *text, const int64_t *numbers);
void weft_say(weft_error *error, const char *text);
void weft_say_number(weft_error *error, int64_t number);
int32_t weft_no_memory(weft_error *error);
int32_t weft_damaged(weft_error *error);
int32_t weft_same(const char *a, const char *b); /* whether two texts are */

/* A state of a model, before and after a call: puts the tensors of all inputs and outputs, with the state's, in the place of the
 * caller's; then takes what the call left, and tells the caller where late outputs are. */
int32_t weft_state_begin(weft_state *state, const weft_tensor **in, weft_tensor **out);
void weft_state_end(weft_state *state, int32_t status, weft_tensor *out);

/* The bytes of the memory of input or output `number` of a call with a state: of one that grows, all that it may have; -1 for a
 * tensor of the caller. */
int64_t weft_state_room(const weft_state *state, int64_t number, int is_output);

/* The calling thread's stack of working memory: blocks are popped in the opposite order. NULL when there is no memory. */
void *weft_scratch_push(weft_ctx *ctx, int64_t bytes);
void weft_scratch_pop(weft_ctx *ctx, void *block);

#ifdef WEFT_FREESTANDING
#define weft_lock() ((void)0)
#define weft_unlock() ((void)0)
#define weft_threads(requested) ((void)(requested), 1)
#else
/* One lock for all the short critical sections of the process. It is safe across fork: no other thread can hold it in
 * the instant that a child is made. */
void weft_lock(void);
void weft_unlock(void);

/* A number that differs from one process to the next. */
uint64_t weft_chance(void);
#endif
#endif
