/* Replays a host program that weft_launch_open has checked. What depends on data is checked here: where views, elements, copies and
 * the arguments of calls are in their buffers, and that memory is given back in order. */
#include <stddef.h>
#include <string.h>

#include "machine.h"
#include "scalars.h"

/* A device as this call uses it; NULL where there is no memory for that. */
static const weft_device *device_of(machine *m, int32_t space) {
  const weft_device *d = &m->program->devices[space - 1], **used = &m->devices[space - 1];
  if (*used == NULL) *used = d->begin == NULL ? d : d->begin(d->state);
  return *used;
}

/* Lets all that is to be copied to the host's memory arrive; at the end, no device is used any more. Returns the first failure. */
static int32_t wait(machine *m, int is_end) {
  int32_t status = WEFT_OK;
  for (int32_t i = 0; (is_end || m->is_behind) && i < m->program->device_count; i++) {
    const weft_device *d = m->devices[i];
    int32_t (*waits)(void *state) = d == NULL ? NULL : is_end ? d->end : d->wait;
    int32_t made = waits == NULL ? WEFT_OK : waits(d->state);
    if (status == WEFT_OK) status = made;
  }
  m->is_behind = 0;
  return status;
}

static uint32_t next_number(machine *m) {
  uint32_t n = 0;
  (void)weft_launch_number(&m->at, m->program->bytes + m->program->size, &n);
  return n;
}

static slot *next_slot(machine *m) { return &m->slots[next_number(m)]; }

/* Whether `bytes` from `at` on are inside of a buffer. */
static int holds(const slot *s, int64_t at, int64_t bytes) {
  return at >= 0 && bytes >= 0 && at <= s->bytes && bytes <= s->bytes - at;
}

static uint8_t *address(const slot *s, int64_t at) { return s->base == NULL ? NULL : s->base + s->at + at; }

static const slot unbound;

/* Makes a slot the memory of a tensor, which is more than the tensor where that is a state that grows, and in the states' space. */
static void bind_tensor(const machine *m, slot *s, const weft_tensor *t, uint32_t word, uint32_t number) {
  int64_t bytes = m->ctx->state == NULL ? -1 : weft_state_room(m->ctx->state, number, word == WEFT_OUT);
  s->base = (uint8_t *)t->data, s->bytes = bytes < 0 ? weft_tensor_bytes(t) : bytes;
  if (bytes >= 0) s->space = m->ctx->model->state_space;
  else if (m->ctx->places != NULL) {
    const weft_place *place = &m->ctx->places[word == WEFT_OUT ? m->caller_inputs + number : number];
    s->space = place->space, s->is_lent = place->is_direct;
  }
}

/* Makes a slot the memory of an argument of the entry: 0 where a tensor's sizes make no sense. `plan` sees no data, which need not
 * be there yet, and `main` can't change the sizes by which data is known to be there. */
static int bind(machine *m, slot *s, uint32_t word, uint32_t number) {
  const weft_tensor *t = word == WEFT_IN || word == WEFT_IN_SHAPE ? &m->in[number] : &m->out[number];
  int is_data = word == WEFT_IN || word == WEFT_OUT || word == WEFT_ARENA;
  *s = unbound;
  s->is_constant = word == WEFT_IN || word == WEFT_IN_SHAPE || word == WEFT_CONSTANTS ||
                   (!m->is_plan && (word == WEFT_OUT_SHAPE || word == WEFT_ARENA_NEEDED));
  if (m->is_plan && is_data) return 1;
  switch (word) {
  case WEFT_IN:
  case WEFT_OUT: bind_tensor(m, s, t, word, number); break;
  case WEFT_IN_SHAPE:
  case WEFT_OUT_SHAPE: s->base = (uint8_t *)t->shape, s->bytes = 8 * (int64_t)t->ndim; break;
  case WEFT_ARENA: s->base = m->ctx->arena, s->bytes = m->ctx->arena_bytes; break;
  case WEFT_CONSTANTS: /* never written to: is_constant */
    s->base = (uint8_t *)(uintptr_t)m->ctx->constants, s->bytes = m->ctx->model->constant_bytes;
    if (number > 0) s->base = (uint8_t *)m->program->devices[number - 1].constants, s->space = (int32_t)number;
    break;
  case WEFT_OUTSIDE: s->base = (uint8_t *)&m->ctx->outside, s->bytes = 4; break;
  default: s->base = (uint8_t *)&m->ctx->arena_needed, s->bytes = 8; break;
  }
  if (s->base == NULL && s->bytes > 0) s->bytes = 0;
  return s->bytes >= 0;
}

static int32_t take(machine *m, slot *s, int64_t bytes, int32_t space) {
  const weft_device *d = space > 0 ? device_of(m, space) : NULL;
  void *made;
  if (bytes < 0) return WEFT_DAMAGED;
  if (space > 0) made = d == NULL ? NULL : d->alloc(d->state, bytes);
  else made = m->ctx->alloc(m->ctx, bytes);
  if (made == NULL) return WEFT_NO_MEMORY;
  *s = (slot){(uint8_t *)made, 0, bytes, space, 0, 1, 0};
  m->taken[m->taken_count++] = (uint32_t)(s - m->slots);
  return WEFT_OK;
}

/* Takes memory in a space for a tensor, or the tensor's own. */
static int32_t take_twin(machine *m, slot *s, int64_t bytes, int32_t space, const slot *tensor) {
  int is_usable = space == 0 || tensor->is_lent; /* the host's is where kernels can read and write it, of a device some is not */
  if (!is_usable || tensor->space != space || tensor->base == NULL || tensor->bytes < bytes) return take(m, s, bytes, space);
  *s = *tensor;
  s->is_taken = s->is_lent = 1;
  m->taken[m->taken_count++] = (uint32_t)(s - m->slots);
  return WEFT_OK;
}

/* Gives back the memory that was taken last; no slot sees it any more. */
static void give_back(machine *m) {
  const slot freed = m->slots[m->taken[--m->taken_count]];
  const weft_device *d = freed.space > 0 ? device_of(m, freed.space) : NULL; /* which its memory is from */
  if (freed.is_lent) {
    m->slots[m->taken[m->taken_count]] = unbound;
    return;
  }
  for (uint32_t i = 0; i < m->program->slots; i++)
    if (m->slots[i].base == freed.base && m->slots[i].space == freed.space) m->slots[i] = unbound;
  if (d != NULL) d->free(d->state, freed.base);
  else m->ctx->free(m->ctx, freed.base);
}

/* No slot sees memory any more that may have been given back. */
static void forget(machine *m, const void *base) {
  for (uint32_t i = 0; i < m->program->slots; i++)
    if (m->slots[i].base == base && m->slots[i].space == 0) m->slots[i] = unbound;
}

/* Asks for memory of a size that is known now; v is after the sizes of an output, or has the bytes of kept memory. */
static int32_t ask(machine *m, uint8_t op, slot *s, int64_t *v) {
  uint32_t number = next_number(m), rank = op == WEFT_OP_OUTPUT ? next_number(m) : 0;
  void *made, *before;
  int64_t bytes = op == WEFT_OP_KEEP ? v[0] : 0;
  m->top -= rank;
  if (m->is_plan || m->argument_count > 0 || bytes < 0) return WEFT_DAMAGED;
  if (op == WEFT_OP_OUTPUT) {
    if ((uint32_t)m->out[number].ndim != rank) return WEFT_DAMAGED;
    before = m->out[number].data;
    made = m->ctx->output(m->ctx, number, m->top);
    bytes = weft_tensor_bytes(&m->out[number]);
  } else {
    before = m->ctx->keep(m->ctx, number, 0);
    made = m->ctx->keep(m->ctx, number, bytes);
  }
  if (made == NULL) return WEFT_NO_MEMORY;
  if (made != before || op == WEFT_OP_OUTPUT) forget(m, before);
  *s = (slot){(uint8_t *)made, 0, bytes, 0, 0, 0, 0};
  return WEFT_OK;
}

/* Whether one of them is the other's memory, lent by the caller. */
static int is_twin(const slot *a, const slot *b) {
  int is_lent = a->space == 0 ? a->is_lent || b->is_lent : a->is_lent && b->is_lent;
  return is_lent && a->base == b->base && a->space == b->space && a->at == b->at;
}

static int32_t copy(machine *m, const slot *to, const slot *from, int64_t to_at, int64_t from_at, int64_t bytes) {
  int32_t space = to->space > 0 ? to->space : from->space;
  if (is_twin(to, from) && to_at == from_at) return WEFT_OK;
  if (to->is_constant || !holds(to, to_at, bytes) || !holds(from, from_at, bytes)) return WEFT_DAMAGED;
  if (space > 0) {
    const weft_device *d = device_of(m, space);
    weft_argument a = {to->base, to->at + to_at, to->space, 'b'}, b = {from->base, from->at + from_at, from->space, 'b'};
    if (d == NULL) return WEFT_NO_MEMORY;
    m->is_behind |= to->space == 0 && d->wait != NULL;
    m->is_met &= to->space > 0 && from->space > 0; /* launches begin anew behind a copy of the host's */
    return d->copy(d->state, a, b, bytes);
  }
  int32_t status = wait(m, 0);
  if (status != WEFT_OK) return status;
  const uint8_t *read = address(from, from_at);
  uint8_t *written = address(to, to_at);
  if (bytes == 0) return WEFT_OK;
  if ((uintptr_t)read < (uintptr_t)written + (uint64_t)bytes && (uintptr_t)written < (uintptr_t)read + (uint64_t)bytes)
    return WEFT_DAMAGED; /* they overlap */
  memcpy(written, read, (size_t)bytes);
  return WEFT_OK;
}

static int32_t call(machine *m, uint32_t callee, const int64_t grid[6]) {
  const weft_callee *c = &m->program->callees[callee];
  int64_t values[WEFT_MOST_ARGUMENTS];
  int32_t count = m->argument_count;
  m->argument_count = 0;
  if (count != c->count) return WEFT_DAMAGED;
  for (int32_t i = 0; i < count; i++) {
    const weft_argument *a = &m->arguments[i];
    if (a->letter != c->letters[i] || (a->letter == 'b' && a->space != c->space)) return WEFT_DAMAGED;
    values[i] = a->base == NULL ? a->at : (int64_t)(uintptr_t)(a->base + a->at);
  }
  if (c->space > 0) {
    const weft_device *d = device_of(m, c->space);
    return d == NULL ? WEFT_NO_MEMORY : d->launch(d->state, (int32_t)callee, grid, m->arguments, count);
  }
  int32_t status = wait(m, 0);
  return status != WEFT_OK ? status : weft_call_kernel(m->program->entries[callee], m->ctx, values, count);
}

/* Adds an argument for the next call. */
static int add(machine *m, uint8_t letter, uint8_t *base, int64_t at, int32_t space) {
  if (m->argument_count >= m->program->arguments) return 0;
  m->arguments[m->argument_count++] = (weft_argument){base, at, space, letter};
  return 1;
}

/* Runs one instruction that deals with buffers; its values are at v. Returns a status. */
static int32_t access(machine *m, uint8_t op, int64_t *v) {
  static const int64_t one[6] = {1, 1, 1, 1, 1, 1};
  slot *s;
  uint32_t n;
  int right = 1;
  if (op == WEFT_OP_CALL) return call(m, next_number(m), one);
  if (op == WEFT_OP_LAUNCH) return call(m, next_number(m), v);
  if (op == WEFT_OP_VALUE) return add(m, 'v', NULL, v[0], -1) ? WEFT_OK : WEFT_DAMAGED;
  if (op == WEFT_OP_FREE) {
    int32_t status = WEFT_OK;
    if (m->taken_count == 0 || m->argument_count > 0) return WEFT_DAMAGED; /* an argument may be in that memory */
    if (m->slots[m->taken[m->taken_count - 1]].space == 0) status = wait(m, 0);
    give_back(m);
    return status;
  }
  s = next_slot(m);
  if (s->is_taken && (op == WEFT_OP_BIND || op == WEFT_OP_VIEW || op == WEFT_OP_ALLOC || op >= WEFT_OP_OUTPUT)) return WEFT_DAMAGED;
  if (m->is_behind && (op == WEFT_OP_OUTPUT || op == WEFT_OP_KEEP || op == WEFT_OP_LOAD || op == WEFT_OP_STORE)) {
    int32_t status = wait(m, 0);
    if (status != WEFT_OK) return status;
  }
  if (op == WEFT_OP_OUTPUT || op == WEFT_OP_KEEP) return ask(m, op, s, v);
  if (op == WEFT_OP_ALLOC || op == WEFT_OP_TWIN) {
    int32_t space = (int32_t)next_number(m);
    return op == WEFT_OP_ALLOC ? take(m, s, v[0], space) : take_twin(m, s, v[0], space, next_slot(m));
  }
  if (op == WEFT_OP_COPY) return copy(m, s, next_slot(m), v[0], v[1], v[2]);
  if (op == WEFT_OP_BUFFER) {
    right = holds(s, v[0], v[1]) && add(m, 'b', s->base, s->at + v[0], s->space);
  } else if (op == WEFT_OP_BIND) {
    n = next_number(m);
    right = bind(m, s, n, next_number(m));
  } else if (op == WEFT_OP_VIEW) {
    const slot *source = next_slot(m);
    right = holds(source, v[0], v[1]);
    if (right) *s = (slot){source->base, source->at + v[0], v[1], source->space, source->is_constant, 0, 0};
  } else {
    int64_t bytes = weft_dtype_bytes((int32_t)(n = next_number(m)));
    right = s->space == 0 && v[0] >= 0 && v[0] < s->bytes / bytes && (op == WEFT_OP_LOAD || !s->is_constant);
    if (!right) return WEFT_DAMAGED;
    if (op == WEFT_OP_LOAD) v[0] = element(address(s, v[0] * bytes), n);
    else put(address(s, v[0] * bytes), n, v[1]);
  }
  return right ? WEFT_OK : WEFT_DAMAGED;
}

/* Notes a check that has failed, with the values that explain it. */
static int32_t fail(machine *m) {
  m->ctx->failed_assert = (int32_t)next_number(m);
  uint32_t count = next_number(m);
  for (uint32_t i = 0; i < count; i++) m->ctx->detail[i] = m->top[(int64_t)i - count];
  return WEFT_FAILED_ASSERT;
}

static int64_t size_of(machine *m, int32_t *status) {
  uint32_t word = next_number(m), number = next_number(m), dimension = next_number(m);
  const weft_tensor *t = word == WEFT_IN ? &m->in[number] : &m->out[number];
  if (dimension < (uint32_t)t->ndim) return t->shape[dimension];
  *status = WEFT_DAMAGED;
  return 0;
}

/* Runs instructions until the function ends. */
static int32_t run(machine *m) {
  const weft_launch *p = m->program;
  for (int32_t status = WEFT_OK; ;) {
    const uint8_t *start = m->at;
    uint8_t op = *m->at++;
    if (m->recording != NULL && (status = weft_memo_watch(m, op, start)) != WEFT_OK) return status;
    if (op >= WEFT_OP_ADD && op <= WEFT_OP_NE) {
      m->top--;
      m->top[-1] = combined(op, m->top[-1], m->top[0]);
      continue;
    }
    switch (op) {
    case WEFT_OP_END: return WEFT_OK;
    case WEFT_OP_CONST: (void)weft_launch_value(&m->at, p->bytes + p->size, m->top++); break;
    case WEFT_OP_GET: *m->top++ = m->locals[next_number(m)]; break;
    case WEFT_OP_SET: m->locals[next_number(m)] = *--m->top; break;
    case WEFT_OP_CAST: {
      uint8_t cut[8];
      uint32_t dtype = next_number(m);
      if (dtype == WEFT_BOOL) m->top[-1] = m->top[-1] != 0;
      else put(cut, dtype, m->top[-1]), m->top[-1] = element(cut, dtype);
      break;
    }
    case WEFT_OP_SKIP: m->at += next_number(m); break;
    case WEFT_OP_SKIP_ZERO: {
      uint32_t bytes = next_number(m);
      if (*--m->top == 0) m->at += bytes;
      break;
    }
    case WEFT_OP_BACK: {
      uint32_t bytes = next_number(m);
      m->at -= bytes;
      if (p->most_turns > 0 && ++m->turns > p->most_turns) status = WEFT_DAMAGED;
      break;
    }
    case WEFT_OP_SIZE: *m->top++ = size_of(m, &status); break;
    case WEFT_OP_CONTEXT: *m->top++ = next_number(m) == 0 ? m->ctx->threads : m->ctx->arena_bytes; break;
    case WEFT_OP_FAIL: return fail(m);
    default:
      if (op == WEFT_OP_LAUNCH && !m->is_met && weft_memo_skip(m, start, &status)) break;
      m->top -= weft_launch_takes(op);
      status = access(m, op, m->top);
      m->top += op == WEFT_OP_LOAD;
    }
    if (status != WEFT_OK) {
      if (status == WEFT_DAMAGED) m->ctx->detail[0] = start - p->bytes;
      return status;
    }
  }
}

/* Has the device go on after what others do with the caller's tensors. */
static int32_t follow(machine *m) {
  int32_t status = WEFT_OK;
  for (int32_t i = 0; i < m->ctx->stream_count && status == WEFT_OK; i++) {
    const weft_device *d = device_of(m, 1);
    if (d == NULL) return WEFT_NO_MEMORY;
    if (d->follow != NULL) status = d->follow(d->state, m->ctx->streams[i]);
  }
  return status;
}

static int32_t enter(weft_ctx *ctx, int32_t is_plan, const weft_tensor *in, weft_tensor *out) {
  const weft_launch *p = ctx->model->launch;
  int64_t values = p->stack + (int64_t)p->locals, slots = (int64_t)p->slots * (int64_t)sizeof(slot);
  int64_t devices = p->device_count * (int64_t)sizeof(weft_device *);
  uint8_t *frame = (uint8_t *)ctx->alloc(ctx, values * 8 + slots + devices + (int64_t)p->slots * 4);
  machine m;
  int32_t status, ended;
  if (frame == NULL) return WEFT_NO_MEMORY;
  memset(frame, 0, (size_t)(values * 8 + slots + devices));
  m.program = p, m.ctx = ctx, m.in = in, m.out = out, m.is_plan = is_plan;
  m.at = p->bytes + (is_plan ? p->plan_at : p->main_at);
  m.top = (int64_t *)(void *)frame, m.locals = m.top + p->stack, m.turns = 0;
  m.slots = (slot *)(void *)(frame + values * 8);
  m.devices = (const weft_device **)(void *)(frame + values * 8 + slots);
  m.taken = (uint32_t *)(void *)(frame + values * 8 + slots + devices);
  m.taken_count = m.argument_count = m.is_behind = m.is_met = 0;
  m.recording = NULL;
  m.caller_inputs = (int64_t)p->inputs - ctx->model->states;
  status = is_plan ? WEFT_OK : follow(&m);
  if (status == WEFT_OK) status = run(&m);
  if (m.taken_count > 0) (void)wait(&m, 0);
  while (m.taken_count > 0) give_back(&m);
  ended = wait(&m, 1);
  ctx->free(ctx, frame);
  return status != WEFT_OK ? status : ended;
}

int32_t weft_launch_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) { return enter(ctx, 1, in, out); }

int32_t weft_launch_main(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out) { return enter(ctx, 0, in, out); }
