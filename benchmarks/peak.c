// What an x86 machine with AVX-512 can do: arithmetic rates and read bandwidth per level of memory, on 1 and 2 cores.
//   gcc -O2 -march=native -pthread peak.c -o peak && ./peak
// Every figure is the best of several repetitions, in CPU time of the thread, so that a busy machine disturbs it little.
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHAINS = 12, STEPS = 400000, MAX_CORES = 2, ARITHMETIC_REPEATS = 200, BANDWIDTH_REPEATS = 10 };

static volatile float float_sink;
static volatile int int_sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Twelve independent chains cover four cycles of latency on two or three ports. The barrier keeps the loop a loop.
#define EACH_CHAIN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define BARRIER() __asm__ volatile("" ::: "memory")
#define RATE(operations) ((double)(operations) * CHAINS * STEPS / seconds / 1e9)

static double fma_zmm(size_t unused) {
  (void)unused;
  __m512 a = _mm512_set1_ps(1.0000001f);
#define DECLARE(i) __m512 c##i = _mm512_set1_ps(i);
#define STEP(i) c##i = _mm512_fmadd_ps(a, c##i, b);
#define SUM(i) sum = _mm512_add_ps(sum, c##i);
  __m512 b = _mm512_set1_ps(1e-9f), sum = _mm512_setzero_ps();
  EACH_CHAIN(DECLARE)
  double start = now();
  for (long k = 0; k < STEPS; k++) {
    EACH_CHAIN(STEP)
    BARRIER();
  }
  double seconds = now() - start;
  EACH_CHAIN(SUM)
  float_sink = _mm512_reduce_add_ps(sum);
  return RATE(2 * 16);
#undef STEP
}

static double bf16_zmm(size_t unused) {
  (void)unused;
  __m512bh a = (__m512bh)_mm512_set1_epi16(0x3f80), b = (__m512bh)_mm512_set1_epi16(0x0080);
#define STEP(i) c##i = _mm512_dpbf16_ps(c##i, a, b);
  __m512 sum = _mm512_setzero_ps();
  EACH_CHAIN(DECLARE)
  double start = now();
  for (long k = 0; k < STEPS; k++) {
    EACH_CHAIN(STEP)
    BARRIER();
  }
  double seconds = now() - start;
  EACH_CHAIN(SUM)
  float_sink = _mm512_reduce_add_ps(sum);
  return RATE(2 * 32);
#undef DECLARE
#undef STEP
#undef SUM
}

static double fma_ymm(size_t unused) {
  (void)unused;
  __m256 a = _mm256_set1_ps(1.0000001f), b = _mm256_set1_ps(1e-9f), sum = _mm256_setzero_ps();
#define DECLARE(i) __m256 c##i = _mm256_set1_ps(i);
#define STEP(i) c##i = _mm256_fmadd_ps(a, c##i, b);
#define SUM(i) sum = _mm256_add_ps(sum, c##i);
  EACH_CHAIN(DECLARE)
  double start = now();
  for (long k = 0; k < STEPS; k++) {
    EACH_CHAIN(STEP)
    BARRIER();
  }
  double seconds = now() - start;
  EACH_CHAIN(SUM)
  float_sink = sum[0];
  return RATE(2 * 8);
#undef DECLARE
#undef STEP
#undef SUM
}

static double vnni_zmm(size_t unused) {
  (void)unused;
  __m512i a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(1), sum = _mm512_setzero_si512();
#define DECLARE(i) __m512i c##i = _mm512_set1_epi32(i);
#define STEP(i) c##i = _mm512_dpbusd_epi32(c##i, a, b);
#define SUM(i) sum = _mm512_add_epi32(sum, c##i);
  EACH_CHAIN(DECLARE)
  double start = now();
  for (long k = 0; k < STEPS; k++) {
    EACH_CHAIN(STEP)
    BARRIER();
  }
  double seconds = now() - start;
  EACH_CHAIN(SUM)
  int_sink = _mm512_reduce_add_epi32(sum);
  return RATE(2 * 64);
#undef DECLARE
#undef STEP
#undef SUM
}

// 2 x 2 products of tiles that stay in their registers; 0 where the compiler or the system gives none.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
#include <sys/syscall.h>
#include <unistd.h>

static int configure_tiles(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18, TILES = 8 };
  struct {
    unsigned char palette, start, reserved[14];
    unsigned short bytes[16];
    unsigned char rows[16];
  } shape = {.palette = 1};
  if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA)) return 0;
  for (int i = 0; i < TILES; i++) shape.bytes[i] = 64, shape.rows[i] = 16;
  __asm__ volatile("" ::"r"(&shape) : "memory"); // gcc takes the instruction to read eight bytes
  _tile_loadconfig(&shape);
  return 1;
}

#define TILE_STEPS (STEPS / 20)
#define TILE_RATE(NAME, PRODUCT, TERMS)                                     \
  static double NAME(size_t unused) {                                       \
    (void)unused;                                                           \
    if (!configure_tiles()) return 0;                                       \
    double start = now();                                                   \
    for (long k = 0; k < TILE_STEPS; k++) {                                 \
      PRODUCT(0, 4, 6); PRODUCT(1, 4, 7); PRODUCT(2, 5, 6); PRODUCT(3, 5, 7); \
      BARRIER();                                                            \
    }                                                                       \
    double seconds = now() - start;                                         \
    _tile_release();                                                        \
    return 2.0 * 4 * 16 * 16 * (TERMS) * TILE_STEPS / seconds / 1e9;        \
  }
TILE_RATE(bf16_amx, _tile_dpbf16ps, 32)
TILE_RATE(int8_amx, _tile_dpbusd, 64)
#else
static double bf16_amx(size_t unused) { return (void)unused, 0; }
static double int8_amx(size_t unused) { return (void)unused, 0; }
#endif

static void read_once(const char *bytes, size_t size, __m512i sums[4]) {
  __m512i s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  for (size_t i = 0; i < size; i += 256) {
    s0 = _mm512_or_si512(s0, _mm512_load_si512(bytes + i));
    s1 = _mm512_or_si512(s1, _mm512_load_si512(bytes + i + 64));
    s2 = _mm512_or_si512(s2, _mm512_load_si512(bytes + i + 128));
    s3 = _mm512_or_si512(s3, _mm512_load_si512(bytes + i + 192));
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

static double read_bandwidth(size_t size) {
  static __thread char *buffer;
  static __thread size_t capacity;
  if (capacity < size) {
    free(buffer);
    buffer = aligned_alloc(4096, size);
    if (!buffer) exit(1);
    memset(buffer, 1, size);
    capacity = size;
  }
  long passes = size < 100000000 ? (long)(100000000 / size) : 1;
  __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  double best = 0;
  for (int repeat = 0; repeat < 5; repeat++) {
    double start = now();
    for (long k = 0; k < passes; k++) {
      read_once(buffer, size, sums);
      BARRIER();
    }
    double rate = (double)passes * (double)size / (now() - start) / 1e9;
    if (rate > best) best = rate;
  }
  int_sink = _mm512_reduce_or_epi32(_mm512_or_si512(_mm512_or_si512(sums[0], sums[1]), _mm512_or_si512(sums[2], sums[3])));
  return best;
}

typedef struct {
  double (*measure)(size_t);
  size_t size;
  int core, repeats;
  double best;
} job;

static pthread_barrier_t together;

static void *work(void *argument) {
  job *j = argument;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(j->core, &cpus);
  pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
  for (int i = 0; i < j->repeats; i++) {
    pthread_barrier_wait(&together);
    double rate = j->measure(j->size);
    if (rate > j->best) j->best = rate;
  }
  return NULL;
}

static double on_cores(int cores, double (*measure)(size_t), size_t size, int repeats) {
  pthread_t threads[MAX_CORES];
  job jobs[MAX_CORES];
  double sum = 0;
  pthread_barrier_init(&together, NULL, (unsigned)cores);
  for (int i = 0; i < cores; i++) {
    jobs[i] = (job){measure, size, i, repeats, 0};
    pthread_create(&threads[i], NULL, work, &jobs[i]);
  }
  for (int i = 0; i < cores; i++) {
    pthread_join(threads[i], NULL);
    sum += jobs[i].best;
  }
  pthread_barrier_destroy(&together);
  return sum;
}

int main(void) {
  const struct {
    const char *name;
    double (*measure)(size_t);
  } arithmetic[] = {
      {"fp32 fma zmm GFLOP/s", fma_zmm},
      {"fp32 fma ymm GFLOP/s", fma_ymm},
      {"bf16 dpbf16 zmm GFLOP/s", bf16_zmm},
      {"int8 vnni zmm GOP/s", vnni_zmm},
      {"bf16 amx GFLOP/s", bf16_amx},
      {"int8 amx GOP/s", int8_amx},
  };
  const size_t kib[] = {16, 24, 256, 768, 4 << 10, 8 << 10, 16 << 10, 512 << 10};
  for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++) {
    double one = on_cores(1, arithmetic[i].measure, 0, ARITHMETIC_REPEATS);
    printf("%s: 1c %.1f 2c %.1f\n", arithmetic[i].name, one, on_cores(2, arithmetic[i].measure, 0, ARITHMETIC_REPEATS));
  }
  for (size_t i = 0; i < sizeof kib / sizeof *kib; i++) {
    double one = on_cores(1, read_bandwidth, kib[i] << 10, BANDWIDTH_REPEATS);
    printf("read bw %zu KiB: 1c %.1f 2c %.1f GB/s\n", kib[i], one, on_cores(2, read_bandwidth, kib[i] << 10, BANDWIDTH_REPEATS));
  }
  return 0;
}
