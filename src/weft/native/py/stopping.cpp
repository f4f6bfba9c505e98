// How a running call is stopped: by a signal whose Python handler raises (Ctrl-C), or by a flag of the caller's.
//
// Generated code enters the runtime at the start of each parallel loop, so that is where a call asks; between such loops
// it asks nothing and loses nothing. A signal's handler can only be run by Python's main thread with the interpreter
// lock, and taking the lock may mean waiting for another thread: so only that thread asks, and only every LOOK_MS, which
// no call that is shorter ever pays for.
#include <ctime>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#endif

#include "binding.h"

static constexpr int64_t LOOK_MS = 100;

static thread_local Stoppable *current = nullptr;  // of the calling thread; workers have none, and never ask

// Milliseconds of a clock that takes a few nanoseconds to read, and may be behind by a few milliseconds.
static int64_t now_ms() {
#ifdef CLOCK_MONOTONIC_COARSE
    constexpr clockid_t clock = CLOCK_MONOTONIC_COARSE;
#else
    constexpr clockid_t clock = CLOCK_MONOTONIC;
#endif
    timespec t;
    clock_gettime(clock, &t);
    return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

// Whether this thread may run signal handlers; PyErr_CheckSignals knows better, but only with the interpreter lock.
static bool is_main_thread() {
#ifdef __linux__
    return syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
    return pthread_main_np() != 0;
#else
    return true;
#endif
}

static int32_t stoppable_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n) {
    if (current != nullptr && current->asked()) return STOPPED;
    return weft_parallel_for(ctx, fn, args, n);
}

Stoppable::Stoppable(weft_ctx *ctx, const uint8_t *flag) : flag_(flag), outer_(current) {
    ctx->parallel_for = stoppable_for;
    current = this;
}

Stoppable::~Stoppable() { current = outer_; }

bool Stoppable::asked() {
    if (flag_ != nullptr && __atomic_load_n(flag_, __ATOMIC_RELAXED) != 0) return true;
    int64_t now = now_ms();
    if (next_look_ == 0) next_look_ = now + LOOK_MS;
    if (now < next_look_) return false;
    next_look_ = now + LOOK_MS;
    if (!is_main_thread()) return false;
    nb::gil_scoped_acquire lock;
    return PyErr_CheckSignals() != 0;  // the exception stays with this thread until its call returns
}
