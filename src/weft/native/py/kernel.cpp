// Calls and times bare kernels: int32_t kernel(weft_ctx *, void *buffer..., int64_t scalar...).
#include <deque>
#include <utility>

#include "binding.h"
#include "measure.h"

// One kernel with its arguments, ready to be called again and again.
struct Bound {
    nb::object image;
    weft_call call{};
    std::vector<Pinned> pinned;

    Bound(nb::object blob, int64_t offset, nb::sequence buffers, const std::vector<int64_t> &scalars,
          int32_t threads, nb::handle constants, int64_t arena_bytes)
        : image(mapped(blob)) {
        size_t n = 0, count = nb::len(buffers) + scalars.size();
        if (count > WEFT_MOST_ARGUMENTS) throw nb::value_error("a kernel takes at most 128 arguments");
        call.kernel = nb::cast<const Image &>(image).entry<weft_kernel>(offset);
        call.count = static_cast<int32_t>(count);
        pinned.reserve(count + 1);
        for (nb::handle buffer : buffers) call.arguments[n++] = reinterpret_cast<int64_t>(pin(buffer));
        for (int64_t scalar : scalars) call.arguments[n++] = scalar;
        weft_ctx_init(&call.ctx, constants.is_none() ? nullptr : pin(constants), threads);
        if (weft_ctx_reserve(&call.ctx, arena_bytes) != WEFT_OK) throw std::bad_alloc();
    }
    Bound(const Bound &) = delete;
    ~Bound() {
        weft_ctx_free_arena(&call.ctx);
        weft_strings_free(&call.ctx);
    }

  private:
    // Arrays of dtypes outside of the buffer protocol (those of ml_dtypes) are pinned as plain bits.
    void *pin(nb::handle buffer) {
        const int registered = 2;  // what NumPy's isbuiltin is for a type that another package registered
        nb::object bits = nb::borrow(buffer);
        if (nb::hasattr(buffer, "dtype") && nb::cast<int>(buffer.attr("dtype").attr("isbuiltin")) == registered)
            bits = buffer.attr("view")(nb::cast<int>(buffer.attr("itemsize")) == 1 ? "u1" : "u2");
        pinned.emplace_back(bits, PyBUF_ANY_CONTIGUOUS);
        return pinned.back().view.buf;
    }
};

static void call(nb::object image, int64_t offset, nb::sequence buffers, const std::vector<int64_t> &scalars,
                 int32_t threads, nb::handle constants, int64_t arena_bytes) {
    Bound bound(image, offset, buffers, scalars, threads, constants, arena_bytes);
    int32_t status;
    {
        nb::gil_scoped_release release;
        status = weft_call_run(&bound.call);
    }
    if (status != WEFT_OK) raise_failed(status, "kernel", bound.call.ctx);
}

// The processor time of this thread is blind to what else the machine does; of several threads it sees only one.
static std::vector<double> time_kernel(nb::object image, int64_t offset, nb::sequence buffers,
                                       const std::vector<int64_t> &scalars, int32_t repeats, int32_t number,
                                       int32_t threads, nb::handle constants, int64_t arena_bytes) {
    if (repeats < 0 || number < 1) throw nb::value_error("repeats is at least 0, and number at least 1");
    Bound bound(image, offset, buffers, scalars, threads, constants, arena_bytes);
    int32_t clock = threads > 1 ? WEFT_WALL_TIME : WEFT_PROCESSOR_TIME;
    std::vector<double> samples(static_cast<size_t>(repeats));
    int32_t status, failed;
    {
        nb::gil_scoped_release release;
        weft_call *one = &bound.call;
        status = weft_call_run(one);  // warms the caches, and shows whether the kernel fails
        for (size_t i = 0; status == WEFT_OK && i < samples.size(); i++) {
            int64_t stamps[2];
            status = weft_measure(&one, 1, number, clock, 0, stamps, &failed);
            samples[i] = static_cast<double>(stamps[1] - stamps[0]) / number;
        }
    }
    if (status != WEFT_OK) raise_failed(status, "kernel", bound.call.ctx);
    return samples;
}

// Kernels in turn, as a model calls them, with the clock read before each and after the last: each finds in the caches what those
// before it left there. Each is called `number` times between two readings. Returns the times that were read, for each repeat.
static std::vector<std::vector<int64_t>> time_in_turn(nb::sequence calls, int32_t repeats, int32_t number,
                                                      const std::vector<int64_t> &scalars, int32_t threads, bool flush,
                                                      bool processor_time) {
    if (repeats < 0 || number < 1) throw nb::value_error("repeats is at least 0, and number at least 1");
    std::deque<Bound> kernels;
    std::vector<weft_call *> in_turn;
    for (nb::handle call : calls) {
        auto [image, offset, buffers] = nb::cast<std::tuple<nb::object, int64_t, nb::sequence>>(call);
        Bound &bound = kernels.emplace_back(image, offset, buffers, scalars, threads, nb::none(), 0);
        bound.call.ctx.flush = flush;
        in_turn.push_back(&bound.call);
    }
    int32_t clock = processor_time ? WEFT_PROCESSOR_TIME : WEFT_WALL_TIME, count = static_cast<int32_t>(in_turn.size());
    std::vector<std::vector<int64_t>> times(static_cast<size_t>(repeats));
    for (auto &stamps : times) stamps.resize(in_turn.size() + 1);
    int32_t status = WEFT_OK, failed = -1;
    {
        nb::gil_scoped_release release;
        for (auto stamps = times.begin(); stamps != times.end() && status == WEFT_OK; ++stamps)
            status = weft_measure(in_turn.data(), count, number, clock, flush, stamps->data(), &failed);
    }
    if (status != WEFT_OK) raise_failed(status, "kernel", in_turn[static_cast<size_t>(failed)]->ctx);
    return times;
}

void bind_kernel(nb::module_ &m) {
    m.def("call", &call, nb::arg("image"), nb::arg("offset"), nb::arg("buffers"),
          nb::arg("scalars") = std::vector<int64_t>(), nb::kw_only(), nb::arg("threads") = 1,
          nb::arg("constants") = nb::none(), nb::arg("arena_bytes") = 0);
    m.def("time_kernel", &time_kernel, nb::arg("image"), nb::arg("offset"), nb::arg("buffers"),
          nb::arg("scalars") = std::vector<int64_t>(), nb::kw_only(), nb::arg("repeats") = 10, nb::arg("number") = 1,
          nb::arg("threads") = 1, nb::arg("constants") = nb::none(), nb::arg("arena_bytes") = 0);
    m.def("time_in_turn", &time_in_turn, nb::arg("calls"), nb::arg("repeats"), nb::kw_only(), nb::arg("number") = 1,
          nb::arg("scalars") = std::vector<int64_t>(), nb::arg("threads") = 1, nb::arg("flush") = false,
          nb::arg("processor_time") = false);
}
