/* Copies between the host's memory and the device's, by way of memory that the device reads and writes by itself ("pinned"): they
 * go on while the processor does, and a call waits once, when it needs what it asked for. */
#include "call.h"

#define PIECE ((int64_t)1 << 20)        /* bytes that are copied at once: one piece is on its way while the next is made ready */
#define MOST_STAGED ((int64_t)32 << 20) /* bytes of staging memory */

/* Takes what was copied to where it belongs. */
static void deliver(call *c) {
  for (int32_t i = 0; i < c->delivery_count; i++)
    memcpy(c->deliveries[i].to, c->deliveries[i].from, (size_t)c->deliveries[i].bytes);
  c->delivery_count = 0;
}

int32_t weft_cuda_wait(call *c) {
  int32_t status = c->is_behind ? ASK(c->device, cuStreamSynchronize, c->stream) : WEFT_OK;
  if (status == WEFT_OK) deliver(c);
  c->is_behind = c->delivery_count = 0;
  c->staging.taken = 0;
  return status;
}

int32_t weft_cuda_follow(call *c, void *stream) {
  int32_t status = ASK(c->device, cuEventRecord, c->event, stream);
  return status == WEFT_OK ? ASK(c->device, cuStreamWaitEvent, c->stream, c->event, 0) : status;
}

void weft_cuda_end_staging(call *c) {
  if (c->staging.data != NULL) (void)c->device->driver.cuMemFreeHost(c->staging.data);
  c->staging.data = NULL;
  c->staging.bytes = c->staging.taken = 0;
}

/* Makes the memory larger, of which nothing is in use. */
static void grow(call *c, int64_t bytes) {
  staging *s = &c->staging;
  void *made = NULL;
  int64_t wanted = PIECE;
  while (wanted < bytes) wanted *= 2;
  weft_cuda_end_staging(c);
  if (c->device->driver.cuMemHostAlloc(&made, (size_t)wanted, 0) == 0) s->data = (uint8_t *)made, s->bytes = wanted;
  else s->is_refused = 1; /* copies go without */
}

/* Returns a status, and so many bytes of staging memory: NULL where there is none. */
static int32_t stage(call *c, int64_t bytes, uint8_t **staged) {
  staging *s = &c->staging;
  int64_t wanted = s->taken + bytes;
  *staged = NULL;
  if (s->is_refused) return WEFT_OK;
  if (wanted > s->bytes) {
    int32_t status = weft_cuda_wait(c);
    if (status != WEFT_OK) return status;
    if (s->bytes < MOST_STAGED) grow(c, wanted < MOST_STAGED ? wanted : MOST_STAGED);
    if (s->data == NULL) return WEFT_OK;
  }
  *staged = s->data + s->taken;
  s->taken += (bytes + WEFT_ALIGN - 1) / WEFT_ALIGN * WEFT_ALIGN;
  return WEFT_OK;
}

int32_t weft_cuda_to_device(call *c, uint64_t to, const uint8_t *from, int64_t bytes) {
  int32_t status = weft_cuda_submit(c);
  if (status == WEFT_OK && c->delivery_count > 0) status = weft_cuda_wait(c); /* it may be what is copied */
  for (int64_t at = 0; at < bytes && status == WEFT_OK; at += PIECE) {
    int64_t n = bytes - at < PIECE ? bytes - at : PIECE;
    uint8_t *staged;
    status = stage(c, n, &staged);
    if (status != WEFT_OK) break;
    c->is_behind = 1;
    if (staged != NULL) memcpy(staged, from + at, (size_t)n);
    status = ASK(c->device, cuMemcpyHtoDAsync_v2, to + (uint64_t)at, staged != NULL ? staged : from + at, (size_t)n, c->stream);
    if (staged == NULL && status == WEFT_OK) status = weft_cuda_wait(c); /* the caller may change it now */
  }
  return status;
}

int32_t weft_cuda_to_host(call *c, uint8_t *to, uint64_t from, int64_t bytes) {
  int32_t status = weft_cuda_submit(c);
  for (int64_t at = 0; at < bytes && status == WEFT_OK; at += PIECE) {
    int64_t n = bytes - at < PIECE ? bytes - at : PIECE;
    uint8_t *staged;
    if (c->delivery_count == MOST_DELIVERIES) status = weft_cuda_wait(c);
    if (status == WEFT_OK) status = stage(c, n, &staged);
    if (status != WEFT_OK) break;
    c->is_behind = 1;
    status = ASK(c->device, cuMemcpyDtoHAsync_v2, staged != NULL ? staged : to + at, from + (uint64_t)at, (size_t)n, c->stream);
    if (status != WEFT_OK) break;
    if (staged != NULL) c->deliveries[c->delivery_count++] = (delivery){to + at, staged, n};
    else status = weft_cuda_wait(c);
  }
  return status;
}
