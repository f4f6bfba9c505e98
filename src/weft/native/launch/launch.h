/* A model's host program as bytes: checked when they are opened, then replayed for each call (docs/design/0041).
 *
 * `codegen/launch` in Weft writes them. The code is a stack machine's: values of 64 bits on a stack and in locals, buffers in slots.
 * A value can't become an address, and every access is inside of a buffer, so that no bytes, however made, let the interpreter touch
 * memory that it was not given. Kernels are trusted: they are code. */
#ifndef WEFT_LAUNCH_H
#define WEFT_LAUNCH_H

#include "weft_call.h"
#include "weft_device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_LAUNCH_MAGIC 0x504C4657u /* "WFLP" */
#define WEFT_LAUNCH_VERSION 3
#define WEFT_LAUNCH_OLDEST 2 /* is read, too: it has no TWIN */
#define WEFT_LAUNCH_HEAD 40 /* bytes: ten numbers of 32 bits */

/* Instructions: what they take off the stack (the last is the top) and put on it, and the operands behind them in the code. */
enum weft_op {
  WEFT_OP_END,       /*                            the function is done */
  WEFT_OP_CONST,     /* -> v          value        */
  WEFT_OP_GET,       /* -> v          local        */
  WEFT_OP_SET,       /* v             local        */
  WEFT_OP_ADD,       /* a b -> v      arithmetic of 64 bits that wraps; what is divided by zero is zero */
  WEFT_OP_SUB, WEFT_OP_MUL, WEFT_OP_FLOORDIV, WEFT_OP_FLOORMOD, WEFT_OP_TRUNCDIV, WEFT_OP_TRUNCMOD, WEFT_OP_MIN, WEFT_OP_MAX,
  WEFT_OP_AND, WEFT_OP_OR, WEFT_OP_XOR, WEFT_OP_SHL, WEFT_OP_SHR, WEFT_OP_LT, WEFT_OP_LE, WEFT_OP_EQ, WEFT_OP_NE,
  WEFT_OP_CAST,      /* v -> v        type         to its bits, with its sign */
  WEFT_OP_SKIP,      /*               bytes        goes on so many bytes further */
  WEFT_OP_SKIP_ZERO, /* v             bytes        does, where v is 0 */
  WEFT_OP_BACK,      /*               bytes        goes on so many bytes before what follows */
  WEFT_OP_BIND,      /*               slot word number  makes a slot the memory that an argument of the entry is in: of a tensor
                                                        of this number, or the constants in this space */
  WEFT_OP_SIZE,      /* -> v          word number dimension  of a tensor's shape */
  WEFT_OP_CONTEXT,   /* -> v          which        0: threads, 1: bytes of the arena */
  WEFT_OP_LOAD,      /* i -> v        slot type    element i */
  WEFT_OP_STORE,     /* i v           slot type    */
  WEFT_OP_VIEW,      /* at bytes      slot source  */
  WEFT_OP_ALLOC,     /* bytes         slot space   */
  WEFT_OP_FREE,      /*                            the memory that was taken last */
  WEFT_OP_COPY,      /* at at bytes   slot source  */
  WEFT_OP_BUFFER,    /* at bytes      slot         an argument for the next call, of which the callee takes so many bytes */
  WEFT_OP_VALUE,     /* v                          one, too */
  WEFT_OP_CALL,      /*               callee       */
  WEFT_OP_LAUNCH,    /* x y z x y z   callee       blocks, then the threads of each */
  WEFT_OP_FAIL,      /* v...          number count the check of this number has failed */
  WEFT_OP_OUTPUT,    /* size...       slot number rank   asks for the memory of an output, whose sizes are known now */
  WEFT_OP_KEEP,      /* bytes         slot number        asks for kept memory */
  WEFT_OP_TWIN,      /* bytes         slot space source  as ALLOC, but for a tensor that the caller has in this space: then it is
                                                        the source's memory, to and from which COPY copies nothing */
  WEFT_OPS
};

enum weft_word { WEFT_IN, WEFT_OUT, WEFT_IN_SHAPE, WEFT_OUT_SHAPE, WEFT_ARENA, WEFT_CONSTANTS, WEFT_OUTSIDE, WEFT_ARENA_NEEDED };

typedef struct weft_callee { /* letters: b a buffer, v a value */
  const uint8_t *letters;
  int32_t count, space;
} weft_callee;

typedef struct weft_launch {
  const uint8_t *bytes;       /* the caller's, until weft_launch_close */
  const weft_kernel *entries; /* of each callee; those that are in other spaces are not looked at */
  const weft_device *devices; /* of space 1 and up */
  int32_t device_count;
  int64_t most_turns;         /* a call that goes back more often fails; 0: as often as it wants */
  uint32_t inputs, outputs, locals, slots, callee_count, plan_at, main_at, size;
  int32_t stack, arguments;   /* the most values at once */
  weft_callee *callees;
} weft_launch;

/* Checks `size` bytes, with the fields before `inputs` set but for `bytes`: WEFT_OK, WEFT_DAMAGED, WEFT_OTHER_VERSION,
 * WEFT_OTHER_MACHINE where a device is missing, or WEFT_NO_MEMORY. They may not change while the program is open. */
int32_t weft_launch_open(weft_launch *program, const void *bytes, int64_t size, weft_error *error);
void weft_launch_close(weft_launch *program); /* one that was not opened may be closed, too, if callees is NULL */

/* The entries of a model whose `launch` is set. WEFT_DAMAGED: an access was outside of its buffer; ctx->detail[0] says where in the
 * bytes the instruction is. */
int32_t weft_launch_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);
int32_t weft_launch_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);

/* Reads a number (LEB128) at *at; 0 where it does not end before `end`, or is too large. With a sign, for WEFT_OP_CONST alone. */
int weft_launch_number(const uint8_t **at, const uint8_t *end, uint32_t *number);
int weft_launch_value(const uint8_t **at, const uint8_t *end, int64_t *value);
int32_t weft_launch_takes(uint8_t op); /* how many values an instruction takes off the stack */

#ifdef __cplusplus
}
#endif
#endif
