/* Blocks of the device's memory, which are kept when they are freed, for the next call, which asks for the same sizes. */
#include "call.h"

#define GRAIN ((int64_t)256) /* blocks are a multiple of so many bytes */

int weft_cuda_keep(pool *p, block *b) {
  if (p->count == p->room) {
    int32_t room = p->room == 0 ? 16 : 2 * p->room;
    block **more = (block **)weft_alloc(room * (int64_t)sizeof *more);
    if (more == NULL) return 0;
    if (p->count > 0) memcpy(more, p->blocks, (size_t)p->count * sizeof *more);
    if (p->blocks != NULL) weft_free(p->blocks);
    p->blocks = more, p->room = room;
  }
  p->blocks[p->count++] = b;
  return 1;
}

void weft_cuda_leave(pool *p, block *b) {
  int32_t kept = 0;
  for (int32_t i = 0; i < p->count; i++)
    if (p->blocks[i] != b) p->blocks[kept++] = p->blocks[i];
  p->count = kept;
}

block *weft_cuda_find(const pool *p, const void *address) {
  for (int32_t i = 0; i < p->count; i++)
    if (p->blocks[i]->address == (uint64_t)(uintptr_t)address) return p->blocks[i];
  return NULL;
}

void weft_cuda_release(const weft_cuda *device, pool *p) {
  int32_t kept = 0;
  for (int32_t i = 0; i < p->count; i++) {
    block *b = p->blocks[i];
    if (b->is_taken) {
      p->blocks[kept++] = b;
      continue;
    }
    (void)device->driver.cuMemFree_v2(b->address); /* what fails is left: the device is gone then */
    weft_free(b);
  }
  p->count = kept;
}

/* Ends the blocks that nobody uses, of this call and of those that wait to be used; graphs know their addresses. */
static int32_t make_room(call *c) {
  weft_cuda *device = c->device;
  int32_t status = weft_cuda_submit(c);
  if (status == WEFT_OK) status = weft_cuda_wait(c);
  if (status != WEFT_OK) return status;
  weft_cuda_forget_graphs(c);
  weft_cuda_release(device, &c->pool);
  weft_lock();
  for (call *other = device->idle; other != NULL; other = other->next) {
    weft_cuda_forget_graphs(other);
    weft_cuda_release(device, &other->pool);
  }
  weft_unlock();
  return WEFT_OK;
}

static block *made(call *c, int64_t bytes) {
  block *b = (block *)weft_alloc((int64_t)sizeof *b);
  uint64_t address = 0;
  int32_t status;
  if (b == NULL) return NULL;
  status = c->device->driver.cuMemAlloc_v2(&address, (size_t)bytes);
  if (status == OUT_OF_MEMORY && make_room(c) == WEFT_OK) status = c->device->driver.cuMemAlloc_v2(&address, (size_t)bytes);
  *b = (block){address, bytes, 1};
  if (weft_cuda_checked("cuMemAlloc_v2", status) == WEFT_OK) {
    if (weft_cuda_keep(&c->pool, b)) return b;
    (void)c->device->driver.cuMemFree_v2(address);
  }
  weft_free(b);
  return NULL;
}

block *weft_cuda_take(call *c, int64_t bytes) {
  int64_t size = bytes > GRAIN ? (bytes + GRAIN - 1) / GRAIN * GRAIN : GRAIN;
  if (bytes < 0 || bytes > INT64_MAX - GRAIN) return NULL;
  for (int32_t i = 0; i < c->pool.count; i++) {
    block *b = c->pool.blocks[i];
    if (b->is_taken || b->bytes != size) continue;
    b->is_taken = 1;
    return b;
  }
  return made(c, size);
}

/* What is asked for is done in order, so that a block may be taken again at once. */
void weft_cuda_give(call *c, block *b) { (void)c, b->is_taken = 0; }
