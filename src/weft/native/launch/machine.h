/* What the interpreter of host programs is made of, for the files of this folder. */
#ifndef WEFT_MACHINE_H
#define WEFT_MACHINE_H

#include "internal.h"
#include "launch.h"

typedef struct slot { /* a buffer; one that is not bound has no bytes */
  uint8_t *base;
  int64_t at, bytes;
  int32_t space, is_constant, is_taken, is_lent; /* lent: memory of the caller's, which is not freed */
} slot;

typedef struct machine {
  const weft_launch *program;
  weft_ctx *ctx;
  const weft_tensor *in;
  weft_tensor *out;
  const uint8_t *at;
  int64_t *top; /* of the stack: the next free place */
  int64_t *locals, turns, caller_inputs; /* those that are no states */
  slot *slots;
  uint32_t *taken; /* slots whose memory is to be given back, in the order in which it was taken */
  const weft_device **devices; /* as this call uses them; NULL: it has not yet */
  int32_t taken_count, argument_count, is_plan, is_behind; /* something is to be copied to the host that may not be there yet */
  struct memo *recording; /* NULL: the steps of this call are not being recorded */
  int32_t is_met;         /* the first launch since something was copied is behind */
  weft_argument arguments[WEFT_MOST_ARGUMENTS];
} machine;

/* Skips launches that a call before has made in the same state of the machine, if the device knows them: then 1, and the machine is
 * where it was behind them, with the status of the device. Else they are recorded. `start`: of the launch that comes now. */
int weft_memo_skip(machine *m, const uint8_t *start, int32_t *status);

/* Looks at an instruction, which comes next, while launches are recorded; returns a status. */
int32_t weft_memo_watch(machine *m, uint8_t op, const uint8_t *start);

#endif
