/* A driver of CUDA whose device is the processor: it checks and records calls, and runs kernels that were compiled for the host.

   A "cubin" is the path of a shared object, in which the kernel `f` is the function `launch_f`, which takes the array of pointers
   to arguments. */
#define _GNU_SOURCE
#include "grid.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, NO_BINARY = 209, INVALID_CONTEXT = 201,
       INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };
enum { MOST_BLOCKS = 4096, LOG = 1 << 20, MOST_DYNAMIC = 227 << 10 };

typedef struct { uint8_t *data; size_t size; } Block;

static Block blocks[MOST_BLOCKS];
static int devices = 1, ready, contexts, streams, modules, lost, failing_status, failing_after;
static size_t memory = (size_t)1 << 30, used;
static char failing[64], *recorded;
static __thread void *current;

void fake_reset(int count, size_t bytes) {
  devices = count, memory = bytes, used = 0, ready = contexts = streams = modules = lost = failing_status = 0;
  memset(blocks, 0, sizeof blocks);
  free(recorded);
  recorded = calloc(1, LOG);
  current = NULL;
}
void fake_fail(const char *name, int status, int after) {
  snprintf(failing, sizeof failing, "%s", name);
  failing_status = status, failing_after = after;
}
const char *fake_log(void) { return recorded; }
void fake_forget(void) { recorded[0] = 0; }
int fake_live(int what) {
  int count = 0;
  for (int i = 0; i < MOST_BLOCKS; i++) count += blocks[i].data != NULL;
  return what == 0 ? count : what == 1 ? modules : what == 2 ? streams : contexts;
}

static int begin(const char *name, const char *format, ...) {
  size_t at = strlen(recorded);
  va_list given;
  va_start(given, format);
  if (at + 256 < LOG) {
    at += (size_t)sprintf(recorded + at, "%s", name);
    at += (size_t)vsprintf(recorded + at, format, given);
    sprintf(recorded + at, "\n");
  }
  va_end(given);
  if (lost) return lost;
  if (failing_status && strcmp(name, failing) == 0 && failing_after-- <= 0) {
    int status = failing_status;
    failing_status = 0;
    if (status == ILLEGAL_ADDRESS || status == LAUNCH_FAILED) lost = status;
    return status;
  }
  return ready ? 0 : NOT_INITIALIZED;
}
#define BEGIN(...) do { int status_ = begin(__func__, __VA_ARGS__); if (status_) return status_; } while (0)
#define IN_CONTEXT(...) do { BEGIN(__VA_ARGS__); if (current == NULL) return INVALID_CONTEXT; } while (0)

int cuInit(unsigned flags) {
  ready = devices >= 0;
  return flags ? INVALID_VALUE : devices < 0 ? NO_DEVICE : 0;
}
int cuGetErrorName(int status, const char **name) {
  *name = status == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : status == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : NULL;
  return *name ? 0 : INVALID_VALUE;
}
int cuDeviceGetCount(int *count) { return *count = devices, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, number < devices ? 0 : INVALID_VALUE; }
int cuDeviceGetName(char *name, int size, int device) { return snprintf(name, (size_t)size, "Pretended GPU %d", device), 0; }
int cuDeviceGetAttribute(int *value, int what, int device) {
  (void)device;
  *value = what == 75 ? 9 : 0;
  return what == 75 || what == 76 ? 0 : INVALID_VALUE;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  BEGIN(" %d", device);
  contexts++;
  return *context = &contexts, 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  BEGIN(" %d", device);
  return contexts-- > 0 ? 0 : INVALID_CONTEXT;
}
int cuCtxSetCurrent(void *context) { return current = context, context == &contexts ? 0 : INVALID_CONTEXT; }
int cuStreamCreate(void **stream, unsigned flags) {
  IN_CONTEXT(" %u", flags);
  streams++;
  return *stream = &streams, 0;
}
int cuStreamDestroy_v2(void *stream) {
  IN_CONTEXT("");
  streams--;
  return stream == &streams ? 0 : INVALID_HANDLE;
}
int cuStreamSynchronize(void *stream) {
  IN_CONTEXT("");
  return stream == &streams ? 0 : INVALID_HANDLE;
}
int cuModuleLoadData(void **module, const void *image) {
  IN_CONTEXT("");
  *module = dlopen((const char *)image, RTLD_NOW | RTLD_LOCAL);
  if (*module == NULL) return NO_BINARY;
  modules++;
  return 0;
}
int cuModuleUnload(void *module) {
  IN_CONTEXT("");
  modules--;
  return dlclose(module) == 0 ? 0 : INVALID_HANDLE;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  char symbol[512];
  IN_CONTEXT(" %s", name);
  snprintf(symbol, sizeof symbol, "launch_%s", name);
  return (*function = dlsym(module, symbol)) != NULL ? 0 : NOT_FOUND;
}
int cuModuleGetGlobal_v2(uint64_t *place, size_t *size, void *module, const char *name) {
  IN_CONTEXT(" %s", name);
  void *found = dlsym(module, name);
  return *place = (uint64_t)(uintptr_t)found, *size = 4, found ? 0 : NOT_FOUND;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
  IN_CONTEXT(" %zu", size);
  return memcpy(to, (const void *)(uintptr_t)from, size), 0;
}
/* The memory that a launch gives a block: 48 KiB, and more for the function that was allowed it last. */
static _Alignas(1024) uint8_t dynamic[MOST_DYNAMIC];
static void *allowed;
static int allowed_bytes;

int cuFuncSetAttribute(void *function, int what, int value) {
  IN_CONTEXT(" %d %d", what, value);
  allowed = function, allowed_bytes = value;
  return what == 8 && value <= MOST_DYNAMIC ? 0 : INVALID_VALUE;
}
void *fake_dynamic(void) { return dynamic; }

int cuMemAlloc_v2(uint64_t *made, size_t size) {
  IN_CONTEXT(" %zu", size);
  if (size == 0) return INVALID_VALUE;
  if (used + size > memory) return OUT_OF_MEMORY;
  for (int i = 0; i < MOST_BLOCKS; i++) {
    if (blocks[i].data != NULL) continue;
    blocks[i] = (Block){aligned_alloc(512, (size + 511) / 512 * 512), size};
    memset(blocks[i].data, 0xff, size); /* NaN, wherever memory is read before it is written */
    used += size;
    return *made = (uint64_t)(uintptr_t)blocks[i].data, 0;
  }
  return OUT_OF_MEMORY;
}
int cuMemFree_v2(uint64_t block) {
  IN_CONTEXT("");
  for (int i = 0; i < MOST_BLOCKS; i++) {
    if ((uintptr_t)blocks[i].data != block || block == 0) continue;
    free(blocks[i].data);
    used -= blocks[i].size;
    return blocks[i] = (Block){NULL, 0}, 0;
  }
  return INVALID_VALUE;
}
static int is_on_device(uint64_t at, size_t size) {
  for (int i = 0; i < MOST_BLOCKS; i++) {
    uintptr_t first = (uintptr_t)blocks[i].data;
    if (first && at >= first && at + size <= first + blocks[i].size) return 1;
  }
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
  IN_CONTEXT(" %zu", size);
  if (!is_on_device(to, size) || stream != &streams) return INVALID_VALUE;
  return memcpy((void *)(uintptr_t)to, from, size), 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
  IN_CONTEXT(" %zu", size);
  if (!is_on_device(from, size) || stream != &streams) return INVALID_VALUE;
  return memcpy(to, (void *)(uintptr_t)from, size), 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
  IN_CONTEXT(" %zu", size);
  if (!is_on_device(from, size) || !is_on_device(to, size) || stream != &streams) return INVALID_VALUE;
  return memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size), 0;
}

/* The product of a warp, from the tables of fragments in NVIDIA's "Parallel Thread Execution ISA": each thread leaves what it has,
   waits for the others, and computes its own four sums of 16 terms. */
static uint32_t left[MOST_THREADS][4], right[MOST_THREADS][2];

static float widened(uint32_t pair, int part, int is_bf16) {
  uint32_t half = pair >> 16 * part & 0xffff, sign = half >> 15 << 31, bits = half << 16;
  if (!is_bf16) {
    float size = 0x1p-24f * (float)(half & 0x3ff);
    int power = half >> 10 & 31;
    if (power) size = __builtin_ldexpf(1.0f + 0x1p-10f * (float)(half & 0x3ff), power - 15);
    memcpy(&bits, &size, sizeof bits);
    bits |= sign;
  }
  float made;
  memcpy(&made, &bits, sizeof made);
  return made;
}
/* The element of a fragment: A[row, k] with row below 16, and B[k, column] with column below 8. */
static float left_element(int warp, int row, int k, int is_bf16) {
  int lane = row % 8 * 4 + k % 8 / 2;
  return widened(left[warp * 32 + lane][k / 8 * 2 + row / 8], k % 2, is_bf16);
}
static float right_element(int warp, int k, int column, int is_bf16) {
  int lane = column * 4 + k % 8 / 2;
  return widened(right[warp * 32 + lane][k / 8], k % 2, is_bf16);
}
void fake_warp_product(int is_bf16, float *c, const uint32_t *a, const uint32_t *b) {
  int thread = grid_thread(), warp = thread / 32, lane = thread % 32;
  memcpy(left[thread], a, sizeof left[0]);
  memcpy(right[thread], b, sizeof right[0]);
  grid_barrier();
  for (int n = 0; n < 4; n++)
    for (int k = 0; k < 16; k++)
      c[n] += left_element(warp, lane / 4 + n / 2 * 8, k, is_bf16) * right_element(warp, k, lane % 4 * 2 + n % 2, is_bf16);
  grid_barrier();
}

/* Copies that run ahead: each thread's are kept until it waits for their group. */
enum { MOST_COPIES = 512 };
typedef struct { void *to; const void *from; int size, group; } Copy;
static Copy copies[MOST_THREADS][MOST_COPIES];
static int begun[MOST_THREADS], committed[MOST_THREADS];

void fake_copy(int size, void *to, const void *from) {
  int thread = grid_thread();
  if (begun[thread] == MOST_COPIES || ((uintptr_t)to | (uintptr_t)from) % (uintptr_t)size) abort();
  memset(to, 0xff, (size_t)size);
  copies[thread][begun[thread]++] = (Copy){to, from, size, committed[thread]};
}
void fake_commit(void) { committed[grid_thread()]++; }
void fake_wait(int left) {
  int thread = grid_thread(), kept = 0;
  for (int n = 0; n < begun[thread]; n++) {
    Copy *c = &copies[thread][n];
    if (c->group < committed[thread] - left) memcpy(c->to, c->from, (size_t)c->size);
    else copies[thread][kept++] = *c;
  }
  begun[thread] = kept;
}

/* The product of a group of warps: the sums of a thread are those of the tables in section 9.7.15.5.2, and factors lie in memory
   as section 9.7.15.5.1 has it for rows of 128 bytes whose pieces are swizzled. */
static float swizzled(const uint8_t *base, size_t at, int is_bf16) {
  uintptr_t place = (uintptr_t)base + at;
  place ^= place >> 3 & 112;
  return widened(*(const uint16_t *)place, 0, is_bf16);
}
void fake_group_product(int is_bf16, int across, int columns, float *c, const uint8_t *a, const uint8_t *b, size_t apart) {
  int thread = grid_thread() % 128, warp = thread / 32, lane = thread % 32;
  for (int n = 0; n < columns / 2; n++) {
    int row = warp * 16 + n / 2 % 2 * 8 + lane / 4, column = n / 4 * 8 + lane % 4 * 2 + n % 2;
    for (int k = 0; k < 16; k++) {
      size_t at = across ? (size_t)(column / 64) * apart + (size_t)(k / 8 * 1024 + k % 8 * 128 + column % 64 * 2)
                         : (size_t)(column / 8 * 1024 + column % 8 * 128 + k * 2);
      float left_one = swizzled(a, (size_t)(row / 8 * 1024 + row % 8 * 128 + k * 2), is_bf16);
      c[n] += left_one * swizzled(b, at, is_bf16);
    }
  }
}

/* Graphs and events: a graph counts its launches, and a millisecond passes between any two events. */
static int is_capturing, captured;

int cuStreamBeginCapture_v2(void *stream, int mode) {
  IN_CONTEXT(" %d", mode);
  captured = 0;
  return is_capturing = 1, stream == &streams ? 0 : INVALID_HANDLE;
}
int cuStreamEndCapture(void *stream, void **graph) {
  IN_CONTEXT("");
  is_capturing = 0, *graph = &captured;
  return stream == &streams ? 0 : INVALID_HANDLE;
}
int cuGraphInstantiateWithFlags(void **made, void *graph, uint64_t flags) {
  IN_CONTEXT("");
  return *made = graph, flags ? INVALID_VALUE : 0;
}
int cuGraphLaunch(void *graph, void *stream) {
  IN_CONTEXT(" %d", captured);
  return graph == &captured && stream == &streams ? 0 : INVALID_HANDLE;
}
int cuGraphExecDestroy(void *graph) { return graph == &captured ? 0 : INVALID_HANDLE; }
int cuGraphDestroy(void *graph) { return graph == &captured ? 0 : INVALID_HANDLE; }
int cuEventCreate(void **event, unsigned flags) { return *event = &streams, flags ? INVALID_VALUE : 0; }
int cuEventRecord(void *event, void *stream) { return event && stream == &streams ? 0 : INVALID_HANDLE; }
int cuEventSynchronize(void *event) { return event ? 0 : INVALID_HANDLE; }
int cuEventElapsedTime(float *made, void *begin, void *end) { return *made = 1.0f, begin && end ? 0 : INVALID_HANDLE; }
int cuEventDestroy_v2(void *event) { return event ? 0 : INVALID_HANDLE; }

int cuLaunchKernel(Kernel function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
  IN_CONTEXT(" %u %u %u %u %u %u", gx, gy, gz, bx, by, bz);
  if (gy > 65535 || gz > 65535 || bx * by * bz > MOST_THREADS || extra || stream != &streams) return INVALID_VALUE;
  if (shared > 48 << 10 && ((void *)function != allowed || shared > (unsigned)allowed_bytes)) return INVALID_VALUE;
  if (is_capturing) return captured++, 0;
  memset(dynamic, 0xff, sizeof dynamic);
  memset(begun, 0, sizeof begun);
  memset(committed, 0, sizeof committed);
  grid_run(function, arguments, (const unsigned[]){gx, gy, gz, bx, by, bz});
  return 0;
}
