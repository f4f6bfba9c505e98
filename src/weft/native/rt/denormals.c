/* How the processor treats denormal numbers, with which it computes up to a hundred times as slowly as with others: kept, as IEEE
 * 754 has it, or taken and made as zero. It is a state of each thread, which a call sets for its own time, and so do the threads
 * that help it: what a model computes never depends on the state that its caller happened to be in. */
#include "internal.h"

#if defined(__SSE__)

#define FLUSH UINT64_C(0x8040) /* of MXCSR: results (FTZ) and operands (DAZ) */

static uint64_t get(void) {
  uint32_t state;
  __asm__ volatile("stmxcsr %0" : "=m"(state));
  return state;
}

static void set(uint64_t state) {
  uint32_t word = (uint32_t)state;
  __asm__ volatile("ldmxcsr %0" : : "m"(word));
}

#elif defined(__aarch64__)

#define FLUSH (UINT64_C(1) << 24) /* of FPCR: FZ, both */

static uint64_t get(void) {
  uint64_t state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}

static void set(uint64_t state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }

#elif defined(__arm__) && defined(__VFP_FP__) && !defined(__SOFTFP__)

#define FLUSH UINT64_C(0x1000000) /* of FPSCR: FZ; NEON flushes in any case */

static uint64_t get(void) {
  uint32_t state;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(state));
  return state;
}

static void set(uint64_t state) { __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)state)); }

#else

#define FLUSH UINT64_C(0)

static uint64_t get(void) { return 0; }

static void set(uint64_t state) { (void)state; }

#endif

uint64_t weft_denormals_begin(int32_t flush) {
  uint64_t before = get(), wanted = flush ? before | FLUSH : before & ~FLUSH;
  if (wanted != before) set(wanted); /* to write it costs more than to look */
  return before;
}

void weft_denormals_end(uint64_t before) {
  if (((get() ^ before) & FLUSH) != 0) set(before);
}
