/* State: what a model's calls leave for the next ones, such as a cache of keys and values. It owns the memory of the last inputs
 * and outputs of a model, which the caller's tensors don't have. */
#include <stddef.h>

#include "internal.h"
#include "weft_device.h"

#define ZEROS ((int64_t)1 << 20) /* bytes that are copied to a device at once */

/* One state: `taken` and `left` are the tensors of a call. Those that grow have room for the whole shape. */
typedef struct slot {
  uint8_t *memory[2]; /* the second where a call can't write to what it reads */
  int64_t bytes;
  const int64_t *whole;
  int64_t *taken, *left;
  int64_t initial, initial_rows; /* as in its row */
  int32_t ndim, dtype, axis, now;
} slot;

struct weft_state {
  weft_model *model;
  const weft_device *device; /* in whose memory the values are, of this space; NULL: in the host's */
  int32_t busy, spoilt, inputs, outputs, count, space;
  weft_tensor *in, *out; /* of all inputs and outputs */
  slot *slots;
};

static void clear(uint8_t *memory, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++) memory[i] = 0; /* compilers make a call of memset of this */
}

static void move(uint8_t *to, const uint8_t *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++) to[i] = from[i];
}

/* Copies between values, and between a value and the host's memory (space 0). */
static int32_t copy_bytes(const weft_state *state, weft_argument to, weft_argument from, int64_t bytes) {
  if (state->device != NULL) return state->device->copy(state->device->state, to, from, bytes);
  move(to.base + to.at, from.base + from.at, bytes);
  return WEFT_OK;
}

static weft_argument at_value(const weft_state *state, uint8_t *memory, int64_t at) {
  return (weft_argument){memory, at, state->space, 'b'};
}

static weft_argument at_host(uint8_t *memory, int64_t at) { return (weft_argument){memory, at, 0, 'b'}; }

static uint8_t *take_memory(const weft_state *state, int64_t bytes) {
  if (bytes < 0) return NULL;
  return (uint8_t *)(state->device == NULL ? weft_alloc(bytes + 1) : state->device->alloc(state->device->state, bytes));
}

static void give_memory(const weft_state *state, uint8_t *memory) {
  if (state->device == NULL) weft_free(memory);
  else state->device->free(state->device->state, memory);
}

/* Makes a value zero; on a device by copies of zeros. */
static int32_t clear_value(const weft_state *state, uint8_t *memory, int64_t bytes) {
  int64_t piece = bytes < ZEROS ? bytes : ZEROS;
  int32_t status = WEFT_OK;
  uint8_t *zeros;
  if (state->device == NULL) return clear(memory, bytes), WEFT_OK;
  if ((zeros = (uint8_t *)weft_alloc(piece)) == NULL) return WEFT_NO_MEMORY;
  clear(zeros, piece);
  for (int64_t at = 0; at < bytes && status == WEFT_OK; at += piece)
    status = copy_bytes(state, at_value(state, memory, at), at_host(zeros, 0), bytes - at < piece ? bytes - at : piece);
  weft_free(zeros);
  return status;
}

/* Copies the rows of a value to contiguous memory of the host's, or from there. */
static int32_t copy_rows(const weft_state *state, const slot *s, uint8_t *dense, int is_read) {
  int32_t status = WEFT_OK;
  int64_t blocks = 1, row = weft_dtype_bytes(s->dtype), rows = s->axis < 0 ? 1 : s->taken[s->axis];
  int64_t room = s->axis < 0 ? 1 : s->whole[s->axis];
  for (int32_t d = 0; d < s->ndim; d++) {
    if (d > s->axis) row *= s->whole[d];
    else if (d < s->axis) blocks *= s->whole[d];
  }
  for (int64_t b = 0; b < blocks && status == WEFT_OK; b++) {
    weft_argument strided = at_value(state, s->memory[s->now], b * room * row), packed = at_host(dense, b * rows * row);
    status = copy_bytes(state, is_read ? packed : strided, is_read ? strided : packed, rows * row);
  }
  return status;
}

/* Makes it as a new one is. */
static int32_t empty(weft_state *state) {
  int32_t status = WEFT_OK;
  for (int32_t k = 0; k < state->count && status == WEFT_OK; k++) {
    slot *s = &state->slots[k];
    if (s->axis >= 0) s->taken[s->axis] = s->initial_rows;
    else if (s->initial < 0) status = clear_value(state, s->memory[s->now], s->bytes);
    if (s->initial >= 0) /* the cast drops const: it is only read */
      status = copy_rows(state, s, (uint8_t *)(uintptr_t)(state->model->constants + s->initial), 0);
  }
  state->spoilt = status != WEFT_OK;
  return status;
}

weft_state *weft_state_make(weft_model *model, int32_t inputs, int32_t outputs, const weft_state_row *rows, int32_t count,
                            const int64_t *sizes) {
  int64_t dims = 0, bytes;
  weft_state *state;
  int64_t *shapes;
  for (int32_t k = 0; k < count; k++) dims += rows[k].ndim;
  bytes = (int64_t)sizeof *state + (int64_t)sizeof(weft_tensor) * (inputs + outputs + 2 * count) +
          (int64_t)sizeof(slot) * count + 24 * dims;
  state = (weft_state *)weft_alloc(bytes);
  if (state == NULL) return NULL;
  clear((uint8_t *)state, bytes);
  state->model = model;
  state->device = model->state_device;
  state->space = model->state_space;
  state->inputs = inputs;
  state->outputs = outputs;
  state->count = count;
  state->in = (weft_tensor *)(void *)(state + 1);
  state->out = state->in + inputs + count;
  state->slots = (slot *)(void *)(state->out + outputs + count);
  shapes = (int64_t *)(void *)(state->slots + count);
  for (int32_t k = 0; k < count; k++) {
    slot *s = &state->slots[k];
    weft_tensor whole = {NULL, shapes, rows[k].ndim, rows[k].dtype};
    move((uint8_t *)shapes, (const uint8_t *)sizes, 8 * (int64_t)rows[k].ndim);
    move((uint8_t *)(shapes + rows[k].ndim), (const uint8_t *)sizes, 8 * (int64_t)rows[k].ndim);
    s->whole = shapes;
    s->taken = shapes + rows[k].ndim;
    s->left = shapes + 2 * rows[k].ndim;
    s->ndim = rows[k].ndim;
    s->dtype = rows[k].dtype;
    s->axis = rows[k].axis;
    s->initial = rows[k].initial;
    s->initial_rows = rows[k].initial_rows;
    s->bytes = weft_tensor_bytes(&whole);
    for (int32_t m = 0; m < (rows[k].in_place ? 1 : 2); m++) {
      s->memory[m] = take_memory(state, s->bytes);
      if (s->memory[m] != NULL) continue;
      weft_state_free(state);
      return NULL;
    }
    shapes += 3 * rows[k].ndim;
    sizes += rows[k].ndim;
  }
  if (empty(state) == WEFT_OK) return state;
  weft_state_free(state);
  return NULL;
}

/* The size of a dimension of a state: a number, or that of its name; -1 where it is not given. */
static int64_t size_of(const weft_dim *dim, const weft_size *sizes, int32_t count) {
  if (dim->size >= 0) return dim->size;
  for (int32_t i = 0; i < count; i++)
    if (weft_same(sizes[i].name, dim->name)) return sizes[i].size;
  return -1;
}

int32_t weft_state_new(weft_model *model, const weft_size *sizes, int32_t count, weft_state **state, weft_error *error) {
  const weft_spec *specs = model->specs + model->inputs - model->states;
  int64_t dims = 0, *shape, at = 0;
  *state = NULL;
  for (int32_t k = 0; k < model->states; k++) dims += specs[k].ndim;
  shape = (int64_t *)weft_alloc(8 * dims + 8);
  if (shape == NULL) return weft_no_memory(error);
  for (int32_t k = 0; k < model->states; k++)
    for (int32_t d = 0; d < specs[k].ndim; d++, at++) {
      shape[at] = size_of(&specs[k].dims[d], sizes, count);
      if (shape[at] >= 0) continue;
      weft_free(shape);
      return weft_fail(error, WEFT_BAD_INPUT, "a state needs the size '{s}', which is not given", specs[k].dims[d].name, NULL);
    }
  *state = weft_state_make(model, model->inputs - model->states, model->outputs - model->states, model->state_rows,
                           model->states, shape);
  weft_free(shape);
  return *state == NULL ? weft_no_memory(error) : weft_fail(error, WEFT_OK, "", NULL, NULL);
}

void weft_state_free(weft_state *state) {
  if (state == NULL) return;
  for (int32_t k = 0; k < state->count; k++)
    for (int m = 0; m < 2; m++)
      if (state->slots[k].memory[m] != NULL) give_memory(state, state->slots[k].memory[m]);
  weft_free(state);
}

/* Takes a state for one thread; 0 where another has it. */
static int take(weft_state *state) {
  int was;
  weft_lock();
  was = state->busy;
  state->busy = 1;
  weft_unlock();
  return !was;
}

static void give_back(weft_state *state) {
  weft_lock();
  state->busy = 0;
  weft_unlock();
}

int32_t weft_use(weft_ctx *ctx, weft_state *state) {
  if (ctx->state == state) return WEFT_OK;
  if (state != NULL && state->model != ctx->model) return WEFT_BAD_INPUT;
  if (state != NULL && !take(state)) return WEFT_BUSY;
  if (ctx->state != NULL) give_back(ctx->state);
  ctx->state = state;
  ctx->planned = 0;
  return WEFT_OK;
}

int32_t weft_state_reset(weft_state *state) {
  int32_t status;
  if (!take(state)) return WEFT_BUSY;
  status = empty(state);
  give_back(state);
  return status;
}

int32_t weft_state_tensor(const weft_state *state, int32_t number, weft_tensor *tensor) {
  const slot *s;
  if (number < 0 || number >= state->count) return WEFT_BAD_INPUT;
  s = &state->slots[number];
  tensor->data = NULL;
  tensor->shape = s->taken;
  tensor->ndim = s->ndim;
  tensor->dtype = s->dtype;
  return WEFT_OK;
}

int32_t weft_state_axis(const weft_state *state, int32_t number) {
  return number < 0 || number >= state->count ? -1 : state->slots[number].axis;
}

int32_t weft_state_read(weft_state *state, int32_t number, void *data) {
  int32_t status;
  if (number < 0 || number >= state->count) return WEFT_BAD_INPUT;
  if (!take(state)) return WEFT_BUSY;
  status = copy_rows(state, &state->slots[number], (uint8_t *)data, 1);
  give_back(state);
  return status;
}

int32_t weft_state_write(weft_state *state, int32_t number, const void *data, int64_t rows) {
  int32_t status;
  slot *s;
  if (number < 0 || number >= state->count) return WEFT_BAD_INPUT;
  s = &state->slots[number];
  if (s->axis >= 0 && (rows < 0 || rows > s->whole[s->axis])) return WEFT_BAD_INPUT;
  if (!take(state)) return WEFT_BUSY;
  if (s->axis >= 0) s->taken[s->axis] = rows;
  status = copy_rows(state, s, (uint8_t *)(uintptr_t)data, 0); /* the cast drops const: it is only read */
  give_back(state);
  return status;
}

/* Makes a state of the same shapes and capacities, as a new one is. */
static weft_state *make_like(const weft_state *state) {
  int64_t dims = 0, at = 0, *sizes;
  weft_state_row *rows;
  weft_state *made;
  for (int32_t k = 0; k < state->count; k++) dims += state->slots[k].ndim;
  sizes = (int64_t *)weft_alloc(8 * dims + 8 + (int64_t)sizeof *rows * state->count);
  if (sizes == NULL) return NULL;
  rows = (weft_state_row *)(void *)(sizes + dims);
  for (int32_t k = 0; k < state->count; k++) {
    const slot *s = &state->slots[k];
    weft_state_row row = {s->ndim, s->dtype, s->axis, s->memory[1] == NULL, s->initial, s->initial_rows};
    rows[k] = row;
    for (int32_t d = 0; d < s->ndim; d++) sizes[at++] = s->whole[d];
  }
  made = weft_state_make(state->model, state->inputs, state->outputs, rows, state->count, sizes);
  weft_free(sizes);
  return made;
}

int32_t weft_state_copy(weft_state *state, weft_state **copy) {
  int32_t status = WEFT_OK;
  *copy = NULL;
  if (!take(state)) return WEFT_BUSY;
  if (state->spoilt) return give_back(state), WEFT_SPOILT;
  *copy = make_like(state);
  for (int32_t k = 0; *copy != NULL && k < state->count && status == WEFT_OK; k++) {
    const slot *from = &state->slots[k];
    slot *to = &(*copy)->slots[k];
    if (from->axis >= 0) to->taken[from->axis] = from->taken[from->axis];
    status = copy_bytes(state, at_value(state, to->memory[to->now], 0), at_value(state, from->memory[from->now], 0), from->bytes);
  }
  give_back(state);
  if (status == WEFT_OK) return *copy == NULL ? WEFT_NO_MEMORY : WEFT_OK;
  weft_state_free(*copy);
  *copy = NULL;
  return status;
}

int32_t weft_state_begin(weft_state *state, const weft_tensor **in, weft_tensor **out) {
  if (state->spoilt) return WEFT_SPOILT;
  for (int32_t i = 0; i < state->inputs; i++) state->in[i] = (*in)[i];
  for (int32_t i = 0; i < state->outputs; i++) state->out[i] = (*out)[i];
  for (int32_t k = 0; k < state->count; k++) {
    const slot *s = &state->slots[k];
    weft_tensor taken = {s->memory[s->now], s->taken, s->ndim, s->dtype};
    weft_tensor left = {s->memory[s->memory[1] == NULL ? s->now : 1 - s->now], s->left, s->ndim, s->dtype};
    state->in[state->inputs + k] = taken;
    state->out[state->outputs + k] = left;
  }
  *in = state->in;
  *out = state->out;
  return WEFT_OK;
}

int64_t weft_state_room(const weft_state *state, int64_t number, int is_output) {
  int64_t k = number - (is_output ? state->outputs : state->inputs);
  return k < 0 || k >= state->count ? -1 : state->slots[k].bytes;
}

void weft_state_end(weft_state *state, int32_t status, weft_tensor *out) {
  for (int32_t i = 0; i < state->outputs; i++) out[i].data = state->out[i].data; /* late outputs have theirs now */
  for (int32_t k = 0; k < state->count; k++) {
    slot *s = &state->slots[k];
    if (status != WEFT_OK) { /* new rows are behind those that count, and a second buffer is not read: these are as they were */
      state->spoilt |= s->axis < 0 && s->memory[1] == NULL;
      continue;
    }
    if (s->axis >= 0) s->taken[s->axis] = s->left[s->axis];
    if (s->memory[1] != NULL) s->now = 1 - s->now;
  }
}
