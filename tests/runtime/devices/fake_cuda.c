/* A driver of CUDA whose device is the processor: it checks and records calls, and runs kernels that were compiled for the host.

   A "cubin" is the path of a shared object, in which the kernel `f` is the function `launch_f`, which takes the array of pointers
   to arguments. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>

enum { MOST_BLOCKS = 4096, LOG = 1 << 20, MOST_DYNAMIC = 227 << 10 };

typedef struct { uint8_t *data; size_t size; } Block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Block blocks[MOST_BLOCKS], pinned[MOST_BLOCKS];
static int devices = 1, ready, contexts, modules, lost, failing_status, failing_after;
static size_t memory = (size_t)1 << 30, used;
static char failing[64], *recorded;
static __thread void *current;

void fake_reset(int count, size_t bytes) {
  devices = count, memory = bytes, used = 0, ready = contexts = modules = lost = failing_status = 0;
  memset(blocks, 0, sizeof blocks);
  memset(pinned, 0, sizeof pinned);
  fake_reset_streams();
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
  int count = 0, held = 0;
  for (int i = 0; i < MOST_BLOCKS; i++) count += blocks[i].data != NULL, held += pinned[i].data != NULL;
  return (int[]){count, modules, fake_live_streams(), contexts, held, fake_live_graphs()}[what];
}
int fake_lock(void) { return pthread_mutex_lock(&mutex); }
void fake_unlock(int *locked) { (void)locked, pthread_mutex_unlock(&mutex); }

int fake_begin(const char *name, const char *format, ...) {
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
int fake_has_context(void) { return current != NULL; }

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
int cuModuleLoadData(void **module, const void *image) {
  NOT_CAPTURED("");
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
  Function *found = calloc(1, sizeof *found); /* stays until the process ends: a module has few */
  snprintf(symbol, sizeof symbol, "launch_%s", name);
  found->run = (Kernel)dlsym(module, symbol);
  snprintf(symbol, sizeof symbol, "count_%s", name);
  const int *count = dlsym(module, symbol);
  if (found->run == NULL || count == NULL) return free(found), NOT_FOUND;
  found->arguments = *count;
  snprintf(symbol, sizeof symbol, "%s_waits", name);
  found->waits = dlsym(module, symbol) != NULL;
  return *function = found, 0;
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
/* The memory that a launch gives a block: 48 KiB, and more for a function that is allowed it. */
static _Alignas(1024) uint8_t dynamic[MOST_DYNAMIC];

int cuFuncSetAttribute(Function *function, int what, int value) {
  IN_CONTEXT(" %d %d", what, value);
  function->shared = (unsigned)value;
  return what == 8 && value <= MOST_DYNAMIC ? 0 : INVALID_VALUE;
}
void *fake_dynamic(void) { return dynamic; }

int cuMemAlloc_v2(uint64_t *made, size_t size) {
  NOT_CAPTURED(" %zu", size);
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
int cuMemGetInfo_v2(size_t *left, size_t *whole) {
  IN_CONTEXT("");
  return *left = memory - used, *whole = memory, 0;
}
int cuMemFree_v2(uint64_t block) {
  NOT_CAPTURED("");
  fake_run_all();
  for (int i = 0; i < MOST_BLOCKS; i++) {
    if ((uintptr_t)blocks[i].data != block || block == 0) continue;
    free(blocks[i].data);
    used -= blocks[i].size;
    return blocks[i] = (Block){NULL, 0}, 0;
  }
  return INVALID_VALUE;
}
static int is_inside(const Block *all, uint64_t at, size_t size) {
  for (int i = 0; i < MOST_BLOCKS; i++) {
    uintptr_t first = (uintptr_t)all[i].data;
    if (first && at >= first && at + size <= first + all[i].size) return 1;
  }
  return 0;
}
int fake_is_on_device(uint64_t at, size_t size) { return is_inside(blocks, at, size); }
int fake_is_pinned(const void *at, size_t size) { return is_inside(pinned, (uintptr_t)at, size); }

int cuMemHostAlloc(void **made, size_t size, unsigned flags) {
  NOT_CAPTURED(" %zu", size);
  if (size == 0 || flags) return INVALID_VALUE;
  for (int i = 0; i < MOST_BLOCKS; i++) {
    if (pinned[i].data != NULL) continue;
    pinned[i] = (Block){aligned_alloc(4096, (size + 4095) / 4096 * 4096), size};
    memset(pinned[i].data, 0xff, size);
    return *made = pinned[i].data, 0;
  }
  return OUT_OF_MEMORY;
}
int cuMemFreeHost(void *memory) {
  NOT_CAPTURED("");
  fake_run_all();
  for (int i = 0; i < MOST_BLOCKS; i++) {
    if (pinned[i].data != memory || memory == NULL) continue;
    free(pinned[i].data);
    return pinned[i] = (Block){NULL, 0}, 0;
  }
  return INVALID_VALUE;
}

/* The product of a warp, from the tables of fragments in NVIDIA's "Parallel Thread Execution ISA": each thread leaves what it has,
   waits for the others, and computes its own four sums of 16 terms, of 8 in tf32. */
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
static float of_tf32(uint32_t bits) {
  float number;
  bits &= 0xffffe000;
  memcpy(&number, &bits, sizeof number);
  return number;
}
static float term(int kind, int warp, int row, int k, int column) {
  if (kind != 't') return left_element(warp, row, k, kind == 'b') * right_element(warp, k, column, kind == 'b');
  uint32_t x = left[warp * 32 + row % 8 * 4 + k % 4][k / 4 * 2 + row / 8], y = right[warp * 32 + column * 4 + k % 4][k / 4];
  return of_tf32(x) * of_tf32(y);
}
void fake_warp_product(int kind, float *c, const uint32_t *a, const uint32_t *b) {
  int thread = grid_thread(), warp = thread / 32, lane = thread % 32;
  memcpy(left[thread], a, sizeof left[0]);
  memcpy(right[thread], b, sizeof right[0]);
  grid_barrier();
  for (int n = 0; n < 4; n++)
    for (int k = 0; k < (kind == 't' ? 8 : 16); k++) c[n] += term(kind, warp, lane / 4 + n / 2 * 8, k, lane % 4 * 2 + n % 2);
  grid_barrier();
}

/* Copies that run ahead: each thread's are kept until it waits for their group. */
enum { MOST_COPIES = 512 };
typedef struct { void *to; const void *from; int size, read, group; } Copy;
static Copy copies[MOST_THREADS][MOST_COPIES];
static int begun[MOST_THREADS], committed[MOST_THREADS];

void fake_copy(int size, int read, void *to, const void *from) {
  int thread = grid_thread();
  if (begun[thread] == MOST_COPIES || ((uintptr_t)to | (uintptr_t)from) % (uintptr_t)size) abort();
  memset(to, 0xff, (size_t)size);
  copies[thread][begun[thread]++] = (Copy){to, from, size, read, committed[thread]};
}
void fake_commit(void) { committed[grid_thread()]++; }
void fake_wait(int left) {
  int thread = grid_thread(), kept = 0;
  for (int n = 0; n < begun[thread]; n++) {
    Copy *c = &copies[thread][n];
    if (c->group < committed[thread] - left) memcpy(memset(c->to, 0, (size_t)c->size), c->from, (size_t)c->read);
    else copies[thread][kept++] = *c;
  }
  begun[thread] = kept;
}

/* The product of a group of warps: the sums of a thread are those of the tables in section 9.7.15.5.2, and factors lie in memory
   as section 9.7.15.5.1 has it for rows of 128 bytes whose pieces are swizzled. */
static const void *swizzled(const uint8_t *base, size_t at) {
  uintptr_t place = (uintptr_t)base + at;
  return (const void *)(place ^ (place >> 3 & 112));
}
void fake_begin_kernel(void) {
  memset(dynamic, 0xff, sizeof dynamic);
  memset(begun, 0, sizeof begun);
  memset(committed, 0, sizeof committed);
}
static size_t right_place(int across, int column, int k, int size, size_t apart) {
  return across ? (size_t)(column / 64) * apart + (size_t)(k / 8 * 1024 + k % 8 * 128 + column % 64 * 2)
                : (size_t)(column / 8 * 1024 + column % 8 * 128 + k * size);
}
/* The left factor is in registers of the warps, as that of `fake_warp_product`. */
void fake_group_product_of_registers(int kind, int across, int columns, float *c, const uint32_t *a, const uint8_t *b, size_t apart) {
  int thread = grid_thread(), warp = thread / 32, lane = thread % 32;
  memcpy(left[thread], a, sizeof left[0]);
  grid_barrier();
  for (int n = 0; n < columns / 2; n++) {
    int row = n / 2 % 2 * 8 + lane / 4, column = n / 4 * 8 + lane % 4 * 2 + n % 2;
    for (int k = 0; k < 16; k++) {
      const void *y = swizzled(b, right_place(across, column, k, 2, apart));
      c[n] += left_element(warp, row, k, kind == 'b') * widened(*(const uint16_t *)y, 0, kind == 'b');
    }
  }
  grid_barrier();
}
void fake_group_product(int kind, int across, int columns, void *c, const uint8_t *a, const uint8_t *b, size_t apart) {
  int thread = grid_thread() % 128, warp = thread / 32, lane = thread % 32, size = kind == 'i' ? 1 : kind == 'u' ? 4 : 2;
  for (int n = 0; n < columns / 2; n++) {
    int row = warp * 16 + n / 2 % 2 * 8 + lane / 4, column = n / 4 * 8 + lane % 4 * 2 + n % 2;
    for (int k = 0; k < 32 / size; k++) {
      const void *x = swizzled(a, (size_t)(row / 8 * 1024 + row % 8 * 128 + k * size));
      const void *y = swizzled(b, right_place(across, column, k, size, apart));
      if (kind == 'i') ((int32_t *)c)[n] += *(const int8_t *)x * *(const int8_t *)y;
      else if (kind == 'u') ((float *)c)[n] += of_tf32(*(const uint32_t *)x) * of_tf32(*(const uint32_t *)y);
      else ((float *)c)[n] += widened(*(const uint16_t *)x, 0, kind == 'b') * widened(*(const uint16_t *)y, 0, kind == 'b');
    }
  }
}
