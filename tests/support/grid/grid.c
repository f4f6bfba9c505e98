#define _GNU_SOURCE
#include "grid.h"

#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 128 << 10 };

Dim threadIdx, blockIdx;
static Dim block_shape;
static ucontext_t scheduler, fibres[MOST_THREADS];
static char *stacks[MOST_THREADS];
static int is_done[MOST_THREADS], running;
static Kernel entry;
static void **entry_arguments;

void grid_barrier(void) { swapcontext(&fibres[running], &scheduler); }
int grid_thread(void) { return running; }

static void thread_begins(void) {
  entry(entry_arguments);
  is_done[running] = 1;
  for (;;) grid_barrier();
}
static void run_block(int threads) {
  for (int t = 0; t < threads; t++) {
    is_done[t] = 0;
    if (stacks[t] == NULL) stacks[t] = malloc(STACK);
    getcontext(&fibres[t]);
    fibres[t].uc_stack.ss_sp = stacks[t], fibres[t].uc_stack.ss_size = STACK, fibres[t].uc_link = &scheduler;
    makecontext(&fibres[t], thread_begins, 0);
  }
  for (int done = 0; done < threads;) {
    done = 0;
    for (running = 0; running < threads; running++) {
      if (!is_done[running]) {
        threadIdx = (Dim){(unsigned)running % block_shape.x, (unsigned)running / block_shape.x % block_shape.y,
                          (unsigned)running / block_shape.x / block_shape.y};
        swapcontext(&scheduler, &fibres[running]);
      }
      done += is_done[running];
    }
    if (done != 0 && done != threads) abort(); /* some threads wait at a barrier that others never reach */
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
