/* Runs kernels of devices on the processor: each thread of a block has a fibre, so that a barrier is a switch to the next thread. */
#ifndef GRID_H
#define GRID_H

enum { MOST_THREADS = 1024, WARP = 32 };

typedef struct { unsigned x, y, z; } Dim;
typedef void (*Kernel)(void **);

/* The numbers of the thread that runs, and of its block. */
extern Dim threadIdx, blockIdx;

/* Runs a kernel, which is given *arguments*, in all threads of a grid: its blocks along x, y, z, then the threads of each. */
void grid_run(Kernel kernel, void **arguments, const unsigned *shape);

/* Lets the other threads of the block, or of the warp, run up to the same place. */
void grid_barrier(void);
void grid_warp_barrier(void);

/* Exchanges *size* bytes at *x* for those that the thread *lane* of the warp comes with; all of a warp do so at once. */
void grid_shuffle(void *x, int size, int lane);

/* The number of the running thread in its block. */
int grid_thread(void);

#endif
