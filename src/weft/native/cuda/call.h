/* What a running call has of a device, for the files of this folder. */
#ifndef WEFT_CUDA_CALL_H
#define WEFT_CUDA_CALL_H

#include <stddef.h>
#include <string.h>

#include "cuda.h"
#include "internal.h"
#include "weft_call.h"

#define DEVICE_FAILED (-1) /* the status of what the driver refused: weft_cuda_take_failure tells more */
#define OUT_OF_MEMORY 2    /* a status of the driver */
#define MOST_GRAPHS 16
#define MOST_DELIVERIES 64

/* A block of the device's memory; what `alloc` returns is its address. */
typedef struct block {
  uint64_t address;
  int64_t bytes;
  int32_t is_taken;
} block;

/* The blocks that calls have given back, in an order that stays: the same requests find the same blocks. */
typedef struct pool {
  block **blocks;
  int32_t count, room;
} pool;

/* Launches and moves that were written down, as words; `exec` is their graph, once there is one. */
typedef struct segment {
  int64_t *words;
  int64_t length, room; /* words */
  int32_t commands;
} segment;

typedef struct graph {
  segment segment;
  void *exec;
  int64_t number; /* from 1 on, of all that a call has captured */
  int32_t is_refused; /* the driver captures something in it not */
} graph;

/* Memory of the host from which, and to which, the device copies by itself. */
typedef struct staging {
  uint8_t *data;
  int64_t bytes, taken;
  int32_t is_refused;
} staging;

/* Bytes that are in the staging memory when the stream is done, and belong elsewhere. */
typedef struct delivery {
  uint8_t *to;
  const uint8_t *from;
  int64_t bytes;
} delivery;

typedef struct call {
  weft_device table; /* the device as this call uses it */
  weft_cuda *device;
  struct call *next;
  void *stream, *event;
  pool pool;
  segment segment; /* what is not handed over yet */
  graph *graphs[MOST_GRAPHS]; /* the last used first */
  int64_t captured; /* graphs, ever */
  int32_t graph_count, delivery_count, is_behind;
  delivery deliveries[MOST_DELIVERIES];
  staging staging;
} call;

struct weft_cuda {
  weft_device table;
  weft_cuda_driver driver;
  void *context;
  weft_cuda_kernel *kernels;
  int32_t kernel_count, is_closed;
  pool held; /* blocks of nobody's pool: they were taken outside of calls, such as states */
  call *idle; /* the last used first: its memory and graphs are the likeliest to serve */
  weft_cuda_note note;
  void *note_to;
  weft_cuda_counts counts;
};

/* Calls a function of the driver: a weft_status, and the failure is noted. */
#define ASK(device, name, ...) weft_cuda_checked(#name, (device)->driver.name(__VA_ARGS__))
int32_t weft_cuda_checked(const char *function, int32_t status);
void weft_cuda_fail(weft_cuda_failure failure);

/* Blocks (pool.c). */
block *weft_cuda_take(call *c, int64_t bytes);
void weft_cuda_give(call *c, block *b);
int weft_cuda_keep(pool *p, block *b); /* adds a block of another call's; 0 where there is no memory */
void weft_cuda_leave(pool *p, block *b); /* takes it out again */
block *weft_cuda_find(const pool *p, const void *address); /* the block that begins there; NULL for none */
void weft_cuda_release(const weft_cuda *device, pool *p); /* ends all blocks that are not taken */

/* Copies (copies.c); waiting is for all that was handed over. */
int32_t weft_cuda_to_device(call *c, uint64_t to, const uint8_t *from, int64_t bytes);
int32_t weft_cuda_to_host(call *c, uint8_t *to, uint64_t from, int64_t bytes);
int32_t weft_cuda_wait(call *c);
int32_t weft_cuda_follow(call *c, void *stream); /* what comes next is done after what is on that stream now */
void weft_cuda_end_staging(call *c);

/* Launches (graphs.c): writes them down, and hands all over to the driver. */
int32_t weft_cuda_add_launch(call *c, int32_t kernel, const int64_t grid[6], const weft_argument *arguments, int32_t count);
int32_t weft_cuda_add_move(call *c, uint64_t to, uint64_t from, int64_t bytes);
int32_t weft_cuda_submit(call *c);
int32_t weft_cuda_submit_known(call *c, int64_t *known);
int weft_cuda_again(call *c, int64_t known, int32_t *status); /* 0: no such graph is there any more */
void weft_cuda_forget_graphs(call *c);

/* The place in the device's memory that an argument tells. */
static inline uint64_t weft_cuda_place(const weft_argument *a) {
  return (uint64_t)(uintptr_t)a->base + (uint64_t)a->at;
}

#endif
