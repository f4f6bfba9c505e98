/* A device whose memory only it can look into: its blocks are handles. It has one kernel, number 0, as tests.host_examples says. What
 * is copied to the host comes late: when the call waits for it, or ends. */
#include <stdlib.h>
#include <string.h>

#include "launch.h"

/* What the runtime asks of a program without an operating system, for which it is built here. */
void *weft_port_alloc(int64_t bytes, int64_t align) {
  void *made = NULL;
  return posix_memalign(&made, (size_t)align, bytes > 0 ? (size_t)bytes : 1) == 0 ? made : NULL;
}

void weft_port_free(void *made) { free(made); }

typedef struct block {
  int64_t bytes;
  uint8_t *data;
} block;

typedef struct delivery {
  uint8_t *to, *data;
  int64_t bytes;
} delivery;

typedef struct fake_device {
  int64_t blocks, launches, threads; /* blocks that are not given back; what was launched */
  int32_t calls, pending, skips;     /* calls that use it; launches that were made again */
  delivery deliveries[16];
  block *kept[4];                    /* given back, for those who ask for as many bytes */
  weft_device table;                 /* as a call uses it */
} fake_device;

static int32_t device_wait(void *state) {
  fake_device *device = (fake_device *)state;
  for (int32_t i = 0; i < device->pending; i++) {
    delivery d = device->deliveries[i];
    memcpy(d.to, d.data, (size_t)d.bytes);
    free(d.data);
  }
  device->pending = 0;
  return WEFT_OK;
}

static int32_t device_end(void *state) {
  ((fake_device *)state)->calls--;
  return device_wait(state);
}

static const weft_device *device_begin(void *state) {
  fake_device *device = (fake_device *)state;
  if (device->calls++ != 0) abort(); /* a call begins to use a device once */
  return &device->table;
}

static void *device_alloc(void *state, int64_t bytes) {
  block **kept = ((fake_device *)state)->kept, *made;
  for (int i = 3; i >= 0; i--) { /* the same requests get the same blocks */
    if (kept[i] == NULL || kept[i]->bytes != bytes) continue;
    made = kept[i], kept[i] = NULL;
    memset(made->data, 0, (size_t)bytes);
    return ((fake_device *)state)->blocks++, made;
  }
  made = bytes > 1 << 24 ? NULL : (block *)malloc(sizeof *made);
  if (made == NULL) return NULL;
  made->bytes = bytes;
  made->data = (uint8_t *)calloc(1, (size_t)bytes + 1);
  ((fake_device *)state)->blocks++;
  return made;
}

static void device_free(void *state, void *handle) {
  block **kept = ((fake_device *)state)->kept;
  ((fake_device *)state)->blocks--;
  for (int i = 0; i < 4; i++)
    if (kept[i] == NULL) {
      kept[i] = (block *)handle;
      return;
    }
  free(((block *)handle)->data);
  free(handle);
}

static void device_forget(fake_device *device) {
  for (int i = 0; i < 4; i++) {
    if (device->kept[i] != NULL) free(device->kept[i]->data);
    free(device->kept[i]);
    device->kept[i] = NULL;
  }
}

/* The memory behind a place, of which so many bytes are used; NULL if they are not all inside. */
static uint8_t *device_memory(weft_argument a, int64_t bytes) {
  const block *b = (const block *)(const void *)a.base;
  if (a.space == 0) return a.base + a.at;
  if (b == NULL || a.at < 0 || bytes < 0 || a.at > b->bytes || bytes > b->bytes - a.at) return NULL;
  return b->data + a.at;
}

static int32_t device_copy(void *state, weft_argument to, weft_argument from, int64_t bytes) {
  fake_device *device = (fake_device *)state;
  uint8_t *written, *read;
  if (bytes == 0) return WEFT_OK;
  written = device_memory(to, bytes), read = device_memory(from, bytes);
  if (written == NULL || read == NULL) abort(); /* the interpreter has checked */
  if (to.space > 0) return memmove(written, read, (size_t)bytes), WEFT_OK;
  if (device->pending == 16) (void)device_wait(state);
  device->deliveries[device->pending] = (delivery){written, (uint8_t *)malloc((size_t)bytes), bytes};
  memcpy(device->deliveries[device->pending++].data, read, (size_t)bytes);
  return WEFT_OK;
}

/* multiply(t0: i32[n], p1: i32[1], n) */
static int32_t device_launch(void *state, int32_t callee, const int64_t grid[6], const weft_argument *a, int32_t count) {
  fake_device *device = (fake_device *)state;
  int64_t n = count > 2 ? a[2].at : 0;
  uint8_t *values, *factor;
  device->launches++;
  device->threads += grid[0] * grid[1] * grid[2] * grid[3] * grid[4] * grid[5];
  if (callee != 0 || count != 3 || n < 0 || n > 1 << 20) return WEFT_BAD_INPUT;
  values = device_memory(a[0], 4 * n), factor = device_memory(a[1], 4);
  if (values == NULL || factor == NULL) return WEFT_BAD_INPUT; /* sizes that are lies: its own kernels are to be told the truth */
  for (int64_t i = 0; i < n; i++) {
    uint32_t x, y;
    memcpy(&x, values + 4 * i, 4);
    memcpy(&y, factor, 4);
    x *= y;
    memcpy(values + 4 * i, &x, 4);
  }
  return WEFT_OK;
}

/* Launches that it knows are not made again here: what is tried is the machine, which goes on behind them. */
static int32_t device_submit(void *state, int64_t *known) { return (void)state, *known = 1, WEFT_OK; }

static int device_again(void *state, int64_t known, int32_t *status) {
  ((fake_device *)state)->skips++;
  if (known != 1) abort();
  return *status = WEFT_OK, 1;
}

static weft_device device_of(fake_device *state) {
  weft_device used = {state, device_alloc, device_free, device_copy, device_launch, NULL, NULL, device_wait, device_end,
                      device_submit, device_again, NULL, NULL};
  weft_device made = {state, device_alloc, device_free, device_copy, NULL, NULL, device_begin, NULL, NULL, NULL, NULL, NULL, NULL};
  state->table = used;
  return made;
}
