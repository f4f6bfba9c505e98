// What a call does at the start of each parallel loop, where generated code enters the runtime: it asks whether it is to
// stop, and leaves processors to the other calls of the process. Between such loops it does nothing, and loses nothing.
//
// A call is stopped by a signal whose Python handler raises (Ctrl-C), or by a flag of the caller's. A handler can only be run
// by Python's main thread with the interpreter lock, and taking the lock may mean waiting for another thread: so only that
// thread asks, and only every LOOK_MS, which no call that is shorter ever pays for.
//
// When other calls run, a loop uses the processors that they leave. Two calls on two processors then run in one thread each,
// and neither waits for a worker whose processor the other has taken; each gets all processors again once it is alone.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <ctime>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "binding.h"

static constexpr int64_t LOOK_MS = 100;

static thread_local Running *current = nullptr;  // of the calling thread; workers have none, and never ask
static thread_local bool handler_raised = false;  // what ended the last call of this thread
static std::atomic<int32_t> calls{0};            // that run now, in all threads

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

Running::Running(weft_ctx *ctx, int32_t processors, const uint8_t *flag)
    : processors_(processors), threads_(ctx->threads), flag_(flag), outer_(current) {
    ctx->parallel_for = parallel_for;
    current = this;
    calls.fetch_add(1, std::memory_order_relaxed);
}

Running::~Running() {
    calls.fetch_sub(1, std::memory_order_relaxed);
    current = outer_;
}

int32_t Running::parallel_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n) {
    if (current == nullptr) return weft_parallel_for(ctx, fn, args, n);
    if (current->asked_to_stop()) return STOPPED;
    int32_t left = current->processors_ - calls.load(std::memory_order_relaxed) + 1;
    int32_t threads = std::min(current->threads_, left);
    if (current->in_loop_ || threads <= 1 || n <= 1) return weft_serial_for(ctx, fn, args, n);
    current->in_loop_ = true;
    ctx->threads = threads;
    int32_t status = weft_parallel_for(ctx, fn, args, n);
    ctx->threads = current->threads_;
    current->in_loop_ = false;
    return status;
}

bool Running::asked_to_stop() {
    if (flag_ != nullptr && __atomic_load_n(flag_, __ATOMIC_RELAXED) != 0) return true;
    int64_t now = now_ms();
    if (next_look_ == 0) next_look_ = now + LOOK_MS;
    if (now < next_look_) return false;
    next_look_ = now + LOOK_MS;
    if (!is_main_thread()) return false;
    nb::gil_scoped_acquire lock;
    handler_raised = PyErr_CheckSignals() != 0;  // the exception stays with this thread until its call returns
    return handler_raised;
}

// A child process has only the calls of the thread that made it.
void Running::count_again() {
    int32_t own = 0;
    for (const Running *running = current; running != nullptr; running = running->outer_) own++;
    calls.store(own, std::memory_order_relaxed);
}

void Running::begin() { handler_raised = false; }

void bind_running(nb::module_ &m) {
    (void)pthread_atfork(nullptr, nullptr, &Running::count_again);
    m.def("handler_raised", [] { return handler_raised; });
    m.def("use_openmp", [](uintptr_t parallel, uintptr_t thread_number) {
        nb::gil_scoped_release unlocked;
        weft_use_openmp(reinterpret_cast<weft_openmp_parallel *>(parallel), reinterpret_cast<int (*)()>(thread_number));
    });
    m.def("running_calls", [] { return calls.load(); });
}
