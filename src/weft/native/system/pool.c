/* The process's thread pool.
 *
 * A parallel loop is a job. [0, n) is cut into one slot for each thread; a thread takes pieces of its own slot first,
 * so that it meets the data it touched in the loop before, and then of the others', so that a thread the system has
 * taken away delays nobody. Workers join a job by counting themselves into `gate` while it is open; the caller, out of
 * work, closes the gate and waits for those inside only. A worker that wakes late finds the gate closed.
 *
 * Where the process has an OpenMP runtime that other libraries compute with, its threads may be those of jobs, too: they
 * spin for milliseconds after each loop, and would be in the way of workers beside them (docs/design/0078).
 */
#define _GNU_SOURCE
#ifndef WEFT_FREESTANDING

#include <stddef.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define SPIN_NS 50000           /* how long to spin before parking: about what it takes to be woken (docs/design/0028) */
#define PIECES 8                /* that a slot is taken in */
#define OPEN ((uint64_t)1 << 31)
#define INSIDE (OPEN - 1)       /* gate: job number in the upper half, then OPEN, then how many workers are inside */

#define load(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

typedef struct slot { /* a cache line of its own */
  int64_t next, end, piece;
} __attribute__((aligned(64))) slot;

static struct {
  uint64_t gate;
  int32_t busy;     /* a caller has the pool */
  int32_t sleeping; /* workers parked */
  int32_t waiting;  /* the caller is parked */
  int32_t workers;  /* started; written by the caller that has the pool */
  pthread_mutex_t mutex;
  pthread_cond_t wake, done;
  /* the job: written before its gate opens, read by those inside */
  weft_ctx *ctx;
  weft_task fn;
  void *args;
  int32_t threads;
  int32_t spin; /* whether who waits spins at first */
  int32_t status;
  slot slots[WEFT_MAX_THREADS];
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static struct { /* the functions of an OpenMP runtime, by whose threads jobs are done; none where the pool has its own */
  weft_openmp_parallel *parallel;
  int (*number)(void);
} openmp;

static pthread_mutex_t short_lock = PTHREAD_MUTEX_INITIALIZER;

void weft_lock(void) { (void)pthread_mutex_lock(&short_lock); }

void weft_unlock(void) { (void)pthread_mutex_unlock(&short_lock); }

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint32_t job_number(void) { return (uint32_t)(load(&pool.gate) >> 32); }

static int new_job(uint32_t seen) { return job_number() != seen; }

static int nobody_inside(uint32_t unused) {
  (void)unused;
  return (load(&pool.gate) & INSIDE) == 0;
}

/* Spins until `ready(seen)`, for SPIN_NS at most, and lets others have the core; answers whether it became so. */
static int spin_until(int (*ready)(uint32_t), uint32_t seen) {
  int64_t deadline = 0;
  for (uint32_t turn = 0; !ready(seen); turn++) {
    relax();
    if (turn % 32 != 31) continue;
    (void)sched_yield();
    if (deadline == 0) deadline = now_ns() + SPIN_NS;
    else if (now_ns() > deadline) return 0;
  }
  return 1;
}

/* Spins, unless told not to, then parks, until `ready(seen)`. `parked` counts those parked: whoever makes it ready looks there. */
static void wait_until(int (*ready)(uint32_t), uint32_t seen, int spin, int32_t *parked, pthread_cond_t *signal) {
  if (spin ? spin_until(ready, seen) : ready(seen)) return;
  (void)pthread_mutex_lock(&pool.mutex);
  __atomic_fetch_add(parked, 1, __ATOMIC_SEQ_CST);
  while (!ready(seen)) (void)pthread_cond_wait(signal, &pool.mutex);
  __atomic_fetch_sub(parked, 1, __ATOMIC_SEQ_CST);
  (void)pthread_mutex_unlock(&pool.mutex);
}

static void wake(const int32_t *parked, pthread_cond_t *signal) {
  if (load(parked) == 0) return;
  (void)pthread_mutex_lock(&pool.mutex);
  (void)pthread_cond_broadcast(signal);
  (void)pthread_mutex_unlock(&pool.mutex);
}

/* Does what is left of one slot, piece by piece, until it is empty or some task has failed. */
static void drain(slot *s) {
  while (__atomic_load_n(&pool.status, __ATOMIC_RELAXED) == WEFT_OK) {
    int64_t begin = __atomic_fetch_add(&s->next, s->piece, __ATOMIC_RELAXED);
    int64_t end = begin + s->piece < s->end ? begin + s->piece : s->end;
    int32_t status, none = WEFT_OK;
    if (begin >= s->end) return;
    status = pool.fn(pool.ctx, pool.args, begin, end);
    if (status != WEFT_OK)
      __atomic_compare_exchange_n(&pool.status, &none, status, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

static void take_part(int32_t thread) {
  for (int32_t i = 0; i < pool.threads; i++) drain(&pool.slots[(thread + i) % pool.threads]);
}

/* A worker's part, under the same treatment of denormals as the caller's. */
static void help(int32_t thread) {
  uint64_t before = weft_denormals_begin(pool.ctx->flush);
  take_part(thread);
  weft_denormals_end(before);
}

/* Counts a worker into the open job; answers 0 when the gate is closed. */
static int enter(void) {
  uint64_t gate = load(&pool.gate);
  while (gate & OPEN)
    if (__atomic_compare_exchange_n(&pool.gate, &gate, gate + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 1;
  return 0;
}

static void leave(void) {
  uint64_t gate = __atomic_sub_fetch(&pool.gate, 1, __ATOMIC_SEQ_CST);
  if ((gate & (OPEN | INSIDE)) == 0) wake(&pool.waiting, &pool.done);
}

static void *worker(void *index) {
  int32_t thread = (int32_t)(intptr_t)index, spin = 0;
  for (uint32_t seen = 0;;) {
    wait_until(new_job, seen, spin, &pool.sleeping, &pool.wake);
    seen = job_number();
    if (!enter()) continue;
    spin = pool.spin;
    if (thread < pool.threads) help(thread);
    leave();
  }
  return NULL;
}

/* A child process has none of the threads of its parent, and whatever these held is held by nobody. */
static void reset_in_child(void) {
  pool.gate = 0;
  pool.busy = pool.sleeping = pool.waiting = pool.workers = 0;
  openmp.parallel = NULL; /* a team of OpenMP's doesn't survive a fork either, and would be waited for */
  (void)pthread_mutex_init(&pool.mutex, NULL);
  (void)pthread_cond_init(&pool.wake, NULL);
  (void)pthread_cond_init(&pool.done, NULL);
  weft_unlock();
}

__attribute__((constructor)) static void watch_forks(void) {
  (void)pthread_atfork(weft_lock, weft_unlock, reset_in_child);
}

/* Starts workers until there are `wanted`, or the system gives no more; signals are left to the program's threads. */
static void start_workers(int32_t wanted) {
  sigset_t all, before;
  pthread_t thread;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  for (; pool.workers < wanted; pool.workers++) {
    if (pthread_create(&thread, NULL, worker, (void *)(intptr_t)(pool.workers + 1)) != 0) break;
    (void)pthread_detach(thread);
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void cut(int64_t n) {
  for (int32_t i = 0; i < pool.threads; i++) {
    slot *s = &pool.slots[i];
    s->next = n / pool.threads * i + (n % pool.threads < i ? n % pool.threads : i);
    s->end = n / pool.threads * (i + 1) + (n % pool.threads < i + 1 ? n % pool.threads : i + 1);
    s->piece = (s->end - s->next + PIECES - 1) / PIECES;
  }
}

/* A part of a job, done by a thread of OpenMP's; the caller is its number 0. */
static void openmp_part(void *unused) {
  int32_t thread = (int32_t)openmp.number();
  (void)unused;
  if (thread == 0) take_part(0);
  else help(thread);
}

static void by_workers(void) {
  store(&pool.gate, ((uint64_t)(job_number() + 1) << 32) | OPEN);
  wake(&pool.sleeping, &pool.wake);
  take_part(0);
  __atomic_fetch_and(&pool.gate, ~OPEN, __ATOMIC_SEQ_CST);
  wait_until(nobody_inside, 0, pool.spin, &pool.waiting, &pool.done);
}

static int32_t run_job(weft_ctx *ctx, weft_task fn, void *args, int64_t n, int32_t threads) {
  pool.ctx = ctx;
  pool.fn = fn;
  pool.args = args;
  pool.spin = ctx->spin;
  pool.status = WEFT_OK;
  pool.threads = threads;
  cut(n);
  if (openmp.parallel != NULL) openmp.parallel(openmp_part, NULL, (unsigned)threads, 0);
  else by_workers();
  return pool.status;
}

int32_t weft_parallel_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n) {
  int32_t status, threads = ctx->threads < WEFT_MAX_THREADS ? ctx->threads : WEFT_MAX_THREADS;
  if (n <= 1 || threads <= 1 || __atomic_exchange_n(&pool.busy, 1, __ATOMIC_SEQ_CST) != 0)
    return weft_serial_for(ctx, fn, args, n);
  if (openmp.parallel == NULL) {
    start_workers(threads - 1);
    if (threads > pool.workers + 1) threads = pool.workers + 1;
  }
  status = run_job(ctx, fn, args, n, threads);
  store(&pool.busy, 0);
  return status;
}

void weft_use_openmp(weft_openmp_parallel *parallel, int (*number)(void)) {
  while (__atomic_exchange_n(&pool.busy, 1, __ATOMIC_SEQ_CST) != 0) (void)sched_yield();
  openmp.parallel = parallel;
  openmp.number = number;
  store(&pool.busy, 0);
}

#endif
typedef int weft_pool_is_not_empty; /* ISO C forbids an empty file */
