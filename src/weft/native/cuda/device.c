/* The table of functions: those of a device outside of calls, and those that a call uses while it runs. */
#include "call.h"

#define NOT_WAITING_FOR_OTHERS 1 /* a flag of streams */
#define WITHOUT_TIME 2           /* a flag of events */

/* What a call uses. */
static void *address_of(const block *b) { return b == NULL ? NULL : (void *)(uintptr_t)b->address; }

static void *call_alloc(void *state, int64_t bytes) { return address_of(weft_cuda_take((call *)state, bytes)); }

static void call_free(void *state, void *made) {
  call *c = (call *)state;
  block *b = weft_cuda_find(&c->pool, made);
  if (b != NULL) weft_cuda_give(c, b);
}

static int32_t call_copy(void *state, weft_argument to, weft_argument from, int64_t bytes) {
  call *c = (call *)state;
  if (bytes == 0) return WEFT_OK;
  if (to.space == 0) return weft_cuda_to_host(c, to.base + to.at, weft_cuda_place(&from), bytes);
  if (from.space == 0) return weft_cuda_to_device(c, weft_cuda_place(&to), from.base + from.at, bytes);
  return weft_cuda_add_move(c, weft_cuda_place(&to), weft_cuda_place(&from), bytes);
}

static void note(const weft_cuda *device, int32_t kernel, const int64_t grid[6], const weft_argument *arguments, int32_t count) {
  weft_argument places[WEFT_MOST_ARGUMENTS];
  for (int32_t i = 0; i < count; i++) {
    places[i] = arguments[i];
    if (places[i].letter == 'b') places[i].at = (int64_t)weft_cuda_place(&arguments[i]);
  }
  device->note(device->note_to, kernel, grid, places, count);
}

static int32_t call_launch(void *state, int32_t kernel, const int64_t grid[6], const weft_argument *arguments, int32_t count) {
  call *c = (call *)state;
  for (int32_t i = 0; i < 6; i++)
    if (grid[i] <= 0) return WEFT_OK; /* a grid without a block starts none */
  if (kernel >= c->device->kernel_count) return WEFT_DAMAGED;
  if (c->device->note != NULL) note(c->device, kernel, grid, arguments, count);
  return weft_cuda_add_launch(c, kernel, grid, arguments, count);
}

static int32_t call_wait(void *state) { return weft_cuda_wait((call *)state); }
static int32_t call_follow(void *state, void *stream) { return weft_cuda_follow((call *)state, stream); }
static int32_t call_submit(void *state, int64_t *known) { return weft_cuda_submit_known((call *)state, known); }

/* Launches that are noted are to be told one by one; those that wait to be handed over come first. */
static int call_again(void *state, int64_t known, int32_t *status) {
  call *c = (call *)state;
  return c->device->note == NULL && c->segment.commands == 0 && weft_cuda_again(c, known, status);
}

static int32_t call_end(void *state) {
  call *c = (call *)state;
  int32_t status = weft_cuda_submit(c), waited = weft_cuda_wait(c);
  weft_lock();
  c->next = c->device->idle;
  c->device->idle = c;
  weft_unlock();
  return status != WEFT_OK ? status : waited;
}

static call *made(weft_cuda *device) {
  static const call empty;
  call *c = (call *)weft_alloc((int64_t)sizeof *c);
  if (c == NULL) return NULL;
  *c = empty;
  c->device = device;
  c->table = (weft_device){c, call_alloc, call_free, call_copy, call_launch, device->table.constants, NULL, call_wait, call_end,
                          call_submit, call_again, call_follow, NULL};
  if (ASK(device, cuStreamCreate, &c->stream, NOT_WAITING_FOR_OTHERS) == WEFT_OK) {
    if (ASK(device, cuEventCreate, &c->event, WITHOUT_TIME) == WEFT_OK) return c;
    (void)device->driver.cuStreamDestroy_v2(c->stream);
  }
  weft_free(c);
  return NULL;
}

/* Takes what a call needs, and makes the context current in this thread. */
static call *begin(weft_cuda *device) {
  call *c;
  if (device->is_closed || ASK(device, cuCtxSetCurrent, device->context) != WEFT_OK) return NULL;
  weft_lock();
  c = device->idle;
  if (c != NULL) device->idle = c->next;
  weft_unlock();
  return c != NULL ? c : made(device);
}

static const weft_device *device_begin(void *state) {
  const call *c = begin((weft_cuda *)state);
  return c == NULL ? NULL : &c->table;
}

/* Outside of calls: a block that is taken is in the device's own list until it is freed. */
static void *device_alloc(void *state, int64_t bytes) {
  weft_cuda *device = (weft_cuda *)state;
  call *c = begin(device);
  block *b;
  int is_held = 0;
  if (c == NULL) return NULL;
  b = weft_cuda_take(c, bytes);
  if (b != NULL) {
    weft_lock();
    is_held = weft_cuda_keep(&device->held, b);
    weft_unlock();
    if (is_held) weft_cuda_leave(&c->pool, b);
    else weft_cuda_give(c, b);
  }
  (void)call_end(c);
  return is_held ? address_of(b) : NULL;
}

/* Takes a block out of the device's list. */
static block *let_go(weft_cuda *device, const void *freed) {
  block *b;
  weft_lock();
  b = weft_cuda_find(&device->held, freed);
  if (b != NULL) weft_cuda_leave(&device->held, b);
  weft_unlock();
  return b;
}

static void device_free(void *state, void *freed) {
  weft_cuda *device = (weft_cuda *)state;
  block *b = let_go(device, freed);
  call *c;
  if (b == NULL) return;
  c = begin(device);
  b->is_taken = 0;
  if (c != NULL && weft_cuda_keep(&c->pool, b)) b = NULL;
  if (b != NULL && !device->is_closed) (void)device->driver.cuMemFree_v2(b->address);
  if (b != NULL) weft_free(b);
  if (c != NULL) (void)call_end(c);
}

/* The driver waits for all that uses a block before it frees it. */
static void device_discard(void *state, void *freed) {
  weft_cuda *device = (weft_cuda *)state;
  block *b = let_go(device, freed);
  if (b == NULL) return;
  if (!device->is_closed && ASK(device, cuCtxSetCurrent, device->context) == WEFT_OK)
    (void)device->driver.cuMemFree_v2(b->address);
  weft_free(b);
}

static int32_t device_copy(void *state, weft_argument to, weft_argument from, int64_t bytes) {
  call *c = begin((weft_cuda *)state);
  int32_t status, ended;
  if (c == NULL) return DEVICE_FAILED;
  status = call_copy(c, to, from, bytes);
  ended = call_end(c);
  return status != WEFT_OK ? status : ended;
}

weft_cuda *weft_cuda_open(const weft_cuda_driver *driver, void *context, const weft_cuda_kernel *kernels, int32_t count,
                          uint64_t constants) {
  static const weft_cuda empty;
  weft_cuda *device = (weft_cuda *)weft_alloc((int64_t)sizeof *device + count * (int64_t)sizeof *kernels);
  if (device == NULL) return NULL;
  *device = empty;
  device->driver = *driver, device->context = context;
  device->kernels = (weft_cuda_kernel *)(void *)(device + 1), device->kernel_count = count;
  for (int32_t i = 0; i < count; i++) device->kernels[i] = kernels[i];
  device->table =
      (weft_device){device, device_alloc, device_free, device_copy, NULL, (void *)(uintptr_t)constants, device_begin, NULL,
                    NULL, NULL, NULL, NULL, device_discard};
  return device;
}

void weft_cuda_close(weft_cuda *device) {
  if (device->is_closed) return;
  (void)device->driver.cuCtxSetCurrent(device->context);
  device->is_closed = 1;
  while (device->idle != NULL) {
    call *c = device->idle;
    device->idle = c->next;
    weft_cuda_forget_graphs(c);
    weft_cuda_end_staging(c);
    weft_cuda_release(device, &c->pool);
    if (c->pool.blocks != NULL) weft_free(c->pool.blocks);
    if (c->segment.words != NULL) weft_free(c->segment.words);
    (void)device->driver.cuEventDestroy_v2(c->event);
    (void)device->driver.cuStreamDestroy_v2(c->stream);
    weft_free(c);
  }
}

void weft_cuda_free(weft_cuda *device) {
  weft_cuda_close(device);
  for (int32_t i = 0; i < device->held.count; i++) weft_free(device->held.blocks[i]);
  if (device->held.blocks != NULL) weft_free(device->held.blocks);
  weft_free(device);
}

const weft_device *weft_cuda_table(const weft_cuda *device) { return &device->table; }

void weft_cuda_on_launch(weft_cuda *device, weft_cuda_note note_launch, void *to) {
  device->note_to = to;
  device->note = note_launch;
}

weft_cuda_counts weft_cuda_count(const weft_cuda *device) { return device->counts; }
