/* Weft's runtime: the ABI of generated code, and the C interface of those who call a compiled model.
 *
 * An image is one position-independent blob of code and read-only data, with no relocations and no undefined symbols.
 * Everything that generated code needs from outside it reaches through its `weft_ctx`. An image has two entries:
 *
 *   plan(ctx, in, out)   checks the inputs' shapes, writes the outputs' shapes into out[i].shape (the caller gives
 *                        room for out[i].ndim values) and the bytes of scratch memory into ctx->arena_needed
 *   main(ctx, in, out)   computes; out[i].data is the caller's, 64-byte aligned, and never part of the arena
 *
 * Define WEFT_FREESTANDING to build with no operating system: no threads, no loader, and memory from the two
 * functions weft_port_alloc and weft_port_free, which the program supplies.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI 1         /* counts incompatible changes of this file */
#define WEFT_ALIGN 64      /* bytes: arenas, constants, outputs and ctx->alloc are aligned to it */
#define WEFT_MAX_THREADS 256

enum weft_dtype {
  WEFT_BOOL, WEFT_I8, WEFT_I16, WEFT_I32, WEFT_I64, WEFT_U8, WEFT_U16, WEFT_U32, WEFT_U64,
  WEFT_F16, WEFT_BF16, WEFT_F32, WEFT_F64, WEFT_HANDLE
};

enum weft_status {
  WEFT_OK = 0,
  WEFT_FAILED_ASSERT = 1,  /* ctx->failed_assert says which, ctx->detail with what values */
  WEFT_NO_MEMORY = 2,
  WEFT_BAD_IMAGE = 3       /* the blob cannot be mapped */
};

typedef struct weft_tensor {   /* contiguous, row-major */
  void *data;
  int64_t *shape;
  int32_t ndim;
  int32_t dtype;
} weft_tensor;

typedef struct weft_ctx weft_ctx;
typedef int32_t (*weft_task)(weft_ctx *ctx, void *args, int64_t begin, int64_t end);
typedef int32_t (*weft_entry)(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);

/* What one running call owns. Generated code reads it by offset: nothing before `model` may move. */
struct weft_ctx {
  /*  0 */ int32_t (*parallel_for)(weft_ctx *ctx, weft_task fn, void *args, int64_t n);
  /*  8 */ uint8_t *arena;
  /* 16 */ int64_t arena_bytes;
  /* 24 */ const uint8_t *constants;
  /* 32 */ void *(*alloc)(weft_ctx *ctx, int64_t bytes);   /* NULL when there is no memory */
  /* 40 */ void (*free)(weft_ctx *ctx, void *block);
  /* 48 */ int32_t threads;
  /* 52 */ int32_t failed_assert;                          /* -1: none */
  /* 56 */ int64_t detail[4];
  /* 88 */ int64_t arena_needed;                           /* written by plan */
  struct weft_model *model;                                /* private from here on */
  weft_ctx *next;
};

/* Memory, aligned to WEFT_ALIGN; large blocks to 2 MiB, in huge pages where the system has them. Not zeroed. */
void *weft_alloc(int64_t bytes);
void weft_free(void *block);

/* A number that shows, but for one chance in 2^64, any change of the data; the same on every machine. Not for secrets. */
uint64_t weft_checksum(const void *data, int64_t bytes);

/* Prepares a context that belongs to no model, to call a bare kernel with. */
void weft_ctx_init(weft_ctx *ctx, const void *constants, int32_t threads);

/* Gives the context an arena of at least `bytes`. WEFT_OK or WEFT_NO_MEMORY. */
int32_t weft_ctx_reserve(weft_ctx *ctx, int64_t bytes);
void weft_ctx_free_arena(weft_ctx *ctx);

/* A model is immutable and may be called from several threads at once; each call borrows a context:
 *   ctx = weft_acquire(model); weft_plan(ctx, in, out); out[i].data = ...; weft_run(ctx, in, out); weft_release(ctx);
 * The constants stay the caller's and must outlive the model. `threads` 0 asks for all that weft_threads allows. */
typedef struct weft_model weft_model;
weft_model *weft_model_new(weft_entry plan, weft_entry main, const void *constants, int32_t threads);
void weft_model_free(weft_model *model);
weft_ctx *weft_acquire(weft_model *model);
int32_t weft_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);
int32_t weft_run(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);
void weft_release(weft_ctx *ctx);

/* Runs fn over [0, n): in the calling thread alone, or by the process's thread pool too. How [0, n) is cut up is not
 * specified: fn must compute each index the same way whatever range it is given with. The first failure is returned.
 * Inside a task, and while another thread has the pool, weft_parallel_for runs in the calling thread alone. */
int32_t weft_serial_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n);
int32_t weft_parallel_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n);

#ifndef WEFT_FREESTANDING

/* Processors that this process may use: its affinity mask, bounded by its control group's quota. */
int32_t weft_cpus(void);

/* The least quota, in whole processors (rounded up), on the way from a control group to the root of `mount`; 0 for
 * none. `membership` is the text of /proc/self/cgroup. */
int32_t weft_quota_cpus(const char *mount, const char *membership);

/* The number of threads to use when `requested` are asked for (0: as many as there are processors). */
int32_t weft_threads(int32_t requested);

/* Maps a copy of an image: [0, readonly) executable, [readonly, bytes) readable only; nothing stays writable.
 * `readonly` is a multiple of the page size, or equal to `bytes` when all of it is code. */
typedef struct weft_image {
  uint8_t *base;
  int64_t bytes;
} weft_image;
int32_t weft_image_map(weft_image *image, const void *blob, int64_t bytes, int64_t readonly);
void weft_image_unmap(weft_image *image);

#else

void *weft_port_alloc(int64_t bytes, int64_t align);
void weft_port_free(void *block);

#endif

#ifdef __cplusplus
}
#endif
#endif
