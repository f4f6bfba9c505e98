/* Skips the part of a host program between two copies of the host's, where it only launches kernels: in the same state of the machine,
 * it asks the device for the very same launches. So the second time that they are a graph, that is launched, and the program goes on
 * behind them: most of what is left of a call is the device's.
 *
 * What such a part does depends on the stack, the locals, the buffers of the device, and the arguments that are collected: they are
 * compared. Whatever else an instruction reads or changes, the sizes of tensors, the host's memory, ends the recording. */
#include <stddef.h>
#include <string.h>

#include "machine.h"

#define MOST_MISSES 8 /* in a row, after which a context does not record any more: the launches differ in every call */

/* The machine at a moment; `values` are the stack and the locals. */
typedef struct moment {
  const uint8_t *at;
  int64_t *values;
  slot *slots;
  uint32_t *taken;
  int64_t height;
  int32_t taken_count;
} moment;

typedef struct memo {
  const weft_launch *program;
  const weft_device *device; /* of the call that recorded it */
  int64_t known;             /* the device's number of the launches; 0: none */
  int32_t misses, argument_count;
  moment before, after;
  weft_argument arguments[WEFT_MOST_ARGUMENTS];
} memo;

static int64_t *bottom(const machine *m) { return m->locals - m->program->stack; }

static int64_t value_count(const machine *m) { return m->program->stack + (int64_t)m->program->locals; }

static void note(const machine *m, moment *now, const uint8_t *at) {
  now->at = at;
  now->height = m->top - bottom(m);
  now->taken_count = m->taken_count;
  memcpy(now->values, bottom(m), 8 * (size_t)value_count(m));
  memcpy(now->slots, m->slots, sizeof(slot) * (size_t)m->program->slots);
  memcpy(now->taken, m->taken, 4 * (size_t)m->taken_count);
}

/* Whether a slot is as it was: what it has of the host's memory is of no account, since no launch sees it. */
static int is_same(const slot *a, const slot *b) {
  return a->space == b->space && (a->base == b->base || a->space == 0) && a->at == b->at && a->bytes == b->bytes &&
         a->is_constant == b->is_constant && a->is_taken == b->is_taken && a->is_lent == b->is_lent;
}

static int is_same_values(const int64_t *a, const int64_t *b, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (a[i] != b[i]) return 0;
  return 1;
}

/* Whether the same memory is taken, in the same order. */
static int is_same_memory(const moment *then, const uint32_t *taken, const slot *slots, int32_t count) {
  if (then->taken_count != count) return 0;
  for (int32_t i = 0; i < count; i++)
    if (then->taken[i] != taken[i] || !is_same(&then->slots[taken[i]], &slots[taken[i]])) return 0;
  return 1;
}

/* Whether the machine is in the state in which the launches were recorded. */
static int is_met_again(const machine *m, const memo *known, const uint8_t *start) {
  const moment *then = &known->before;
  int64_t stack = m->program->stack;
  if (known->known == 0 || known->program != m->program || then->at != start || known->device != m->devices[0]) return 0;
  if (then->height != m->top - bottom(m) || known->argument_count != m->argument_count) return 0;
  for (int32_t i = 0; i < m->argument_count; i++) {
    const weft_argument *a = &known->arguments[i], *b = &m->arguments[i];
    if (a->base != b->base || a->at != b->at || a->space != b->space || a->letter != b->letter) return 0;
  }
  if (!is_same_values(then->values, bottom(m), then->height)) return 0;
  if (!is_same_values(then->values + stack, m->locals, m->program->locals)) return 0;
  for (uint32_t i = 0; i < m->program->slots; i++)
    if (!is_same(&then->slots[i], &m->slots[i])) return 0;
  return is_same_memory(then, m->taken, m->slots, m->taken_count);
}

/* Room for what a machine of this program is made of, twice; NULL where there is no memory. */
static memo *made(const machine *m) {
  static const memo empty;
  int64_t values = 8 * value_count(m), slots = (int64_t)sizeof(slot) * m->program->slots, taken = 8 * (int64_t)m->program->slots;
  memo *made = (memo *)weft_alloc((int64_t)sizeof *made + 2 * (values + slots + taken));
  uint8_t *room = (uint8_t *)(made + 1);
  if (made == NULL) return NULL;
  *made = empty;
  made->program = m->program;
  for (int k = 0; k < 2; k++) {
    moment *now = k == 0 ? &made->before : &made->after;
    now->values = (int64_t *)(void *)room;
    now->slots = (slot *)(void *)(room + values);
    now->taken = (uint32_t *)(void *)(room + values + slots);
    room += values + slots + taken;
  }
  return made;
}

static void begin(machine *m, const uint8_t *start) {
  memo *known = (memo *)m->ctx->memo;
  if (known != NULL && known->program == m->program && known->misses >= MOST_MISSES) return;
  if (known == NULL || known->program != m->program) {
    if (known != NULL) weft_free(known);
    m->ctx->memo = known = made(m);
    if (known == NULL) return;
  }
  known->misses++;
  known->known = 0;
  known->device = m->devices[0];
  known->argument_count = m->argument_count;
  memcpy(known->arguments, m->arguments, sizeof(weft_argument) * (size_t)m->argument_count);
  note(m, &known->before, start);
  m->recording = known;
}

int weft_memo_skip(machine *m, const uint8_t *start, int32_t *status) {
  const memo *known = (const memo *)m->ctx->memo;
  const weft_device *d;
  m->is_met = 1;
  if (m->is_plan || m->program->device_count != 1 || (d = m->devices[0]) == NULL || d->again == NULL) return 0;
  if (known == NULL || !is_met_again(m, known, start) || !d->again(d->state, known->known, status)) return begin(m, start), 0;
  ((memo *)m->ctx->memo)->misses = 0;
  for (uint32_t i = 0; i < m->program->slots; i++)
    if (!is_same(&known->before.slots[i], &known->after.slots[i])) m->slots[i] = known->after.slots[i];
  memcpy(bottom(m), known->after.values, 8 * (size_t)value_count(m));
  m->top = bottom(m) + known->after.height;
  m->at = known->after.at;
  m->argument_count = 0;
  return 1;
}

/* Whether an instruction, whose operands come next, has to do with the device and the machine alone. */
static int is_of_launches(const machine *m, uint8_t op) {
  const uint8_t *at = m->at, *end = m->program->bytes + m->program->size;
  uint32_t first = 0, second = 0;
  (void)weft_launch_number(&at, end, &first);
  (void)weft_launch_number(&at, end, &second);
  switch (op) {
  case WEFT_OP_VIEW:
  case WEFT_OP_COPY: return m->slots[second].space > 0 && (op == WEFT_OP_VIEW || m->slots[first].space > 0);
  case WEFT_OP_ALLOC: return second > 0;
  case WEFT_OP_FREE: return m->taken_count > 0 && m->slots[m->taken[m->taken_count - 1]].space > 0;
  case WEFT_OP_BUFFER: return m->slots[first].space > 0;
  case WEFT_OP_VALUE:
  case WEFT_OP_LAUNCH: return 1;
  default: return op != WEFT_OP_END && op < WEFT_OP_BACK;
  }
}

int32_t weft_memo_watch(machine *m, uint8_t op, const uint8_t *start) {
  memo *known = m->recording;
  const weft_device *d = known->device;
  if (is_of_launches(m, op)) return WEFT_OK;
  m->recording = NULL;
  if ((op != WEFT_OP_COPY && op != WEFT_OP_END) || m->argument_count > 0) return WEFT_OK;
  if (!is_same_memory(&known->before, m->taken, m->slots, m->taken_count)) return WEFT_OK;
  note(m, &known->after, start);
  return d->submit(d->state, &known->known);
}
