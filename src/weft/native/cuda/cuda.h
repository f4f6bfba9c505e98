/* A device with CUDA: the table of functions that host programs call (`weft_device`), without Python in between.
 *
 * What a call asks for is written down, and handed to the driver where something is copied, or when the call ends: all launches at
 * once. Launches that are the same as those of a call before, with the same arguments, are one CUDA graph from the second time on.
 * Each call that runs has a stream, memory, and graphs of its own, which the next one takes over. */
#ifndef WEFT_CUDA_H
#define WEFT_CUDA_H

#include "weft_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An attribute of a launch, and the grid of a launch with its attributes: `CUlaunchAttribute` and `CUlaunchConfig`. */
typedef struct weft_cuda_attribute {
  int32_t id, pad;
  int64_t value[8];
} weft_cuda_attribute;

typedef struct weft_cuda_launch {
  unsigned grid[6], shared; /* blocks and threads along x, y and z; bytes */
  void *stream;
  weft_cuda_attribute *attributes;
  unsigned count;
} weft_cuda_launch;

/* The functions of the driver that are called, with their parameters (NVIDIA, "CUDA Driver API", 13.0). Pointers are handles. */
#define WEFT_CUDA_FUNCTIONS(F) \
  F(cuCtxSetCurrent, (void *context)) \
  F(cuStreamCreate, (void **made, unsigned flags)) \
  F(cuStreamDestroy_v2, (void *stream)) \
  F(cuStreamSynchronize, (void *stream)) \
  F(cuStreamWaitEvent, (void *stream, void *event, unsigned flags)) \
  F(cuEventCreate, (void **made, unsigned flags)) \
  F(cuEventRecord, (void *event, void *stream)) \
  F(cuEventDestroy_v2, (void *event)) \
  F(cuMemAlloc_v2, (uint64_t *made, size_t bytes)) \
  F(cuMemFree_v2, (uint64_t address)) \
  F(cuMemHostAlloc, (void **made, size_t bytes, unsigned flags)) \
  F(cuMemFreeHost, (void *memory)) \
  F(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream)) \
  F(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream)) \
  F(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream)) \
  F(cuLaunchKernelEx, (const weft_cuda_launch *launch, void *kernel, void **arguments, void **extra)) \
  F(cuStreamBeginCapture_v2, (void *stream, int mode)) \
  F(cuStreamEndCapture, (void *stream, void **graph)) \
  F(cuGraphInstantiateWithFlags, (void **made, void *graph, uint64_t flags)) \
  F(cuGraphLaunch, (void *graph, void *stream)) \
  F(cuGraphExecDestroy, (void *graph)) \
  F(cuGraphDestroy, (void *graph))

typedef struct weft_cuda_driver {
#define WEFT_FIELD(name, parameters) int32_t (*name) parameters;
  WEFT_CUDA_FUNCTIONS(WEFT_FIELD)
#undef WEFT_FIELD
} weft_cuda_driver;

/* Called for each launch while launches are noted. A buffer is its address, in `at`, with any `base` but NULL. */
typedef void (*weft_cuda_note)(void *to, int32_t kernel, const int64_t grid[6], const weft_argument *arguments, int32_t count);

typedef struct weft_cuda weft_cuda;

/* A kernel: the driver's handle, and the bytes of shared memory that a launch gives each block beside what the kernel declares. One
 * that waits for the kernels before it by itself is launched early (programmatic dependent launch). */
typedef struct weft_cuda_kernel {
  void *handle;
  uint64_t shared;
  int32_t waits;
} weft_cuda_kernel;

/* How often calls have handed launches over: one by one, as graphs, and how many graphs there were made. */
typedef struct weft_cuda_counts {
  int64_t plain, replayed, captured;
} weft_cuda_counts;

/* What failed in this thread: a function of the driver, with its status; or a grid, where that is NULL, of so many blocks along an
 * axis. */
typedef struct weft_cuda_failure {
  const char *function;
  int32_t status, axis;
  int64_t blocks;
} weft_cuda_failure;

/* Makes a device of a context's kernels, and constants in its memory. NULL where there is no memory. */
weft_cuda *weft_cuda_open(const weft_cuda_driver *driver, void *context, const weft_cuda_kernel *kernels, int32_t count,
                          uint64_t constants);

/* Gives back all that there is on the device; its memory may be freed afterwards, and that is all. Then ends it. */
void weft_cuda_close(weft_cuda *device);
void weft_cuda_free(weft_cuda *device);

/* The functions, for as long as the device is there. */
const weft_device *weft_cuda_table(const weft_cuda *device);

/* Has launches noted, or with NULL no longer. */
void weft_cuda_on_launch(weft_cuda *device, weft_cuda_note note, void *to);

weft_cuda_counts weft_cuda_count(const weft_cuda *device);

/* Takes the first failure of this thread since the last time: 0 where there is none. */
int weft_cuda_take_failure(weft_cuda_failure *failure);

#ifdef __cplusplus
}
#endif
#endif
