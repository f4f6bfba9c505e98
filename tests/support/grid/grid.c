#define _GNU_SOURCE
#include "grid.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 128 << 10 };

Dim threadIdx, blockIdx;
static Dim block_shape;
static ucontext_t scheduler, fibres[MOST_THREADS];
static char *stacks[MOST_THREADS];
static int is_done[MOST_THREADS], running, moves;
static Kernel entry;
static void **entry_arguments;

/* A barrier: how many threads are to come, how many have, and how often all had. */
typedef struct { int expected, came, passed; } Barrier;
static Barrier of_block, of_warps[MOST_THREADS / WARP];
static uint64_t exchanged[MOST_THREADS];

static void wait_at(Barrier *b) {
  int passed = b->passed;
  moves++;
  if (++b->came == b->expected) b->came = 0, b->passed++;
  while (b->passed == passed) swapcontext(&fibres[running], &scheduler);
}
void grid_barrier(void) { wait_at(&of_block); }
void grid_warp_barrier(void) { wait_at(&of_warps[running / WARP]); }
int grid_thread(void) { return running; }

void grid_shuffle(void *x, int size, int lane) {
  int first = running / WARP * WARP;
  if (lane < 0 || lane >= of_warps[running / WARP].expected) abort();
  memcpy(&exchanged[running], x, (size_t)size);
  grid_warp_barrier();
  memcpy(x, &exchanged[first + lane], (size_t)size);
  grid_warp_barrier();
}

static void thread_begins(void) {
  entry(entry_arguments);
  is_done[running] = 1;
  moves++;
  for (;;) swapcontext(&fibres[running], &scheduler);
}
static void run_block(int threads) {
  for (int t = 0; t < threads; t++) {
    is_done[t] = 0;
    if (stacks[t] == NULL) stacks[t] = malloc(STACK);
    getcontext(&fibres[t]);
    fibres[t].uc_stack.ss_sp = stacks[t], fibres[t].uc_stack.ss_size = STACK, fibres[t].uc_link = &scheduler;
    makecontext(&fibres[t], thread_begins, 0);
  }
  of_block = (Barrier){threads, 0, 0};
  for (int w = 0; w * WARP < threads; w++) {
    int left = threads - w * WARP;
    of_warps[w] = (Barrier){left < WARP ? left : WARP, 0, 0};
  }
  for (int done = 0; done < threads;) {
    done = moves = 0;
    for (running = 0; running < threads; running++) {
      if (!is_done[running]) {
        threadIdx = (Dim){(unsigned)running % block_shape.x, (unsigned)running / block_shape.x % block_shape.y,
                          (unsigned)running / block_shape.x / block_shape.y};
        swapcontext(&scheduler, &fibres[running]);
      }
      done += is_done[running];
    }
    if (moves == 0) abort(); /* threads wait at a barrier that others never reach */
  }
}

void grid_run(Kernel kernel, void **arguments, const unsigned *shape) {
  entry = kernel, entry_arguments = arguments, block_shape = (Dim){shape[3], shape[4], shape[5]};
  for (unsigned z = 0; z < shape[2]; z++)
    for (unsigned y = 0; y < shape[1]; y++)
      for (unsigned x = 0; x < shape[0]; x++) {
        blockIdx = (Dim){x, y, z};
        run_block((int)(shape[3] * shape[4] * shape[5]));
      }
}
