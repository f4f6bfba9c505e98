// Calls and times bare kernels: int32_t kernel(weft_ctx *, void *buffer..., int64_t scalar...).
#include <ctime>
#include <deque>
#include <utility>

#include "binding.h"

// More than a kernel has: arguments that it does not take are passed in vain.
static constexpr size_t FEW_ARGUMENTS = 16, MOST_ARGUMENTS = 128;
using Kernel = void (*)();

template <size_t... I> static int32_t invoke(Kernel kernel, weft_ctx *ctx, const int64_t *a, std::index_sequence<I...>) {
    return reinterpret_cast<int32_t (*)(weft_ctx *, decltype(static_cast<int64_t>(I))...)>(kernel)(ctx, a[I]...);
}

// One kernel with its arguments, ready to be called again and again.
struct Bound {
    nb::object image;
    Kernel kernel;
    size_t count;
    int64_t a[MOST_ARGUMENTS] = {};
    weft_ctx ctx;
    std::vector<Pinned> pinned;

    Bound(nb::object blob, int64_t offset, nb::sequence buffers, const std::vector<int64_t> &scalars,
          int32_t threads, nb::handle constants, int64_t arena_bytes)
        : image(mapped(blob)), kernel(nb::cast<const Image &>(image).entry<Kernel>(offset)),
          count(nb::len(buffers) + scalars.size()) {
        size_t n = 0;
        if (count > MOST_ARGUMENTS) throw nb::value_error("a kernel takes at most 128 arguments");
        pinned.reserve(count + 1);
        for (nb::handle buffer : buffers) a[n++] = reinterpret_cast<int64_t>(pin(buffer));
        for (int64_t scalar : scalars) a[n++] = scalar;
        weft_ctx_init(&ctx, constants.is_none() ? nullptr : pin(constants), threads);
        if (weft_ctx_reserve(&ctx, arena_bytes) != WEFT_OK) throw std::bad_alloc();
    }
    Bound(const Bound &) = delete;
    ~Bound() { weft_ctx_free_arena(&ctx); }

    // Few arguments, as nearly all kernels have, cost few pushes: what is timed may take a microsecond.
    int32_t operator()() {
        if (count <= FEW_ARGUMENTS) return invoke(kernel, &ctx, a, std::make_index_sequence<FEW_ARGUMENTS>());
        return invoke(kernel, &ctx, a, std::make_index_sequence<MOST_ARGUMENTS>());
    }

  private:
    // Arrays of dtypes outside of the buffer protocol (bfloat16) are pinned as plain bits.
    void *pin(nb::handle buffer) {
        bool foreign = nb::hasattr(buffer, "dtype") && nb::cast<char>(buffer.attr("dtype").attr("kind")) == 'V';
        nb::object bits = foreign ? buffer.attr("view")("u2") : nb::borrow(buffer);
        pinned.emplace_back(bits, PyBUF_ANY_CONTIGUOUS);
        return pinned.back().view.buf;
    }
};

static int64_t now_ns(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

static void call(nb::object image, int64_t offset, nb::sequence buffers, const std::vector<int64_t> &scalars,
                 int32_t threads, nb::handle constants, int64_t arena_bytes) {
    Bound bound(image, offset, buffers, scalars, threads, constants, arena_bytes);
    int32_t status;
    {
        nb::gil_scoped_release release;
        status = bound();
    }
    if (status != WEFT_OK) raise_failed(status, "kernel", bound.ctx);
}

// The processor time of this thread is blind to what else the machine does; of several threads it sees only one.
static std::vector<double> time_kernel(nb::object image, int64_t offset, nb::sequence buffers,
                                       const std::vector<int64_t> &scalars, int32_t repeats, int32_t number,
                                       int32_t threads, nb::handle constants, int64_t arena_bytes) {
    if (repeats < 0 || number < 1) throw nb::value_error("repeats is at least 0, and number at least 1");
    Bound bound(image, offset, buffers, scalars, threads, constants, arena_bytes);
    clockid_t clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    std::vector<double> samples(static_cast<size_t>(repeats));
    int32_t status;
    {
        nb::gil_scoped_release release;
        status = bound();  // warms the caches, and shows whether the kernel fails
        for (size_t i = 0; status == WEFT_OK && i < samples.size(); i++) {
            int64_t start = now_ns(clock);
            for (int32_t j = 0; j < number; j++) status |= bound();
            samples[i] = static_cast<double>(now_ns(clock) - start) / number;
        }
    }
    if (status != WEFT_OK) raise_failed(status, "kernel", bound.ctx);
    return samples;
}

// Kernels in turn, as a model calls them, with the clock read before each and after the last: each finds in the caches what those
// before it left there. Returns the times that were read, for each repeat.
static std::vector<std::vector<int64_t>> time_in_turn(nb::sequence calls, int32_t repeats, int32_t threads, bool flush,
                                                      bool processor_time) {
    if (repeats < 0) throw nb::value_error("repeats is at least 0");
    std::deque<Bound> kernels;
    for (nb::handle call : calls) {
        auto [image, offset, buffers] = nb::cast<std::tuple<nb::object, int64_t, nb::sequence>>(call);
        kernels.emplace_back(image, offset, buffers, std::vector<int64_t>(), threads, nb::none(), 0).ctx.flush = flush;
    }
    clockid_t clock = processor_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    std::vector<std::vector<int64_t>> times(static_cast<size_t>(repeats));
    for (auto &stamps : times) stamps.resize(kernels.size() + 1);
    const Bound *failed = nullptr;
    int32_t status = WEFT_OK;
    {
        nb::gil_scoped_release release;
        uint64_t before = weft_denormals_begin(flush);
        for (auto stamps = times.begin(); stamps != times.end() && failed == nullptr; ++stamps) {
            int64_t *stamp = stamps->data();
            *stamp++ = now_ns(clock);
            for (Bound &kernel : kernels) {
                int32_t found = kernel();
                *stamp++ = now_ns(clock);
                if (found == WEFT_OK) continue;
                status = found;
                failed = &kernel;
                break;
            }
        }
        weft_denormals_end(before);
    }
    if (failed != nullptr) raise_failed(status, "kernel", failed->ctx);
    return times;
}

void bind_kernel(nb::module_ &m) {
    m.def("call", &call, nb::arg("image"), nb::arg("offset"), nb::arg("buffers"),
          nb::arg("scalars") = std::vector<int64_t>(), nb::kw_only(), nb::arg("threads") = 1,
          nb::arg("constants") = nb::none(), nb::arg("arena_bytes") = 0);
    m.def("time_kernel", &time_kernel, nb::arg("image"), nb::arg("offset"), nb::arg("buffers"),
          nb::arg("scalars") = std::vector<int64_t>(), nb::kw_only(), nb::arg("repeats") = 10, nb::arg("number") = 1,
          nb::arg("threads") = 1, nb::arg("constants") = nb::none(), nb::arg("arena_bytes") = 0);
    m.def("time_in_turn", &time_in_turn, nb::arg("calls"), nb::arg("repeats"), nb::kw_only(), nb::arg("threads") = 1,
          nb::arg("flush") = false, nb::arg("processor_time") = false);
}
