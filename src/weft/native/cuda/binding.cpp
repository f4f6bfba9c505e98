// A device with CUDA whose calls go through no Python.
#include <nanobind/stl/pair.h>

#include <new>

#include "binding.h"
#include "cuda.h"

static weft_cuda_driver driver_of(const std::vector<uint64_t> &functions) {
    weft_cuda_driver driver;
    size_t given = 0;
#define WEFT_TAKE(name, parameters) driver.name = reinterpret_cast<decltype(driver.name)>(functions.at(given++));
    WEFT_CUDA_FUNCTIONS(WEFT_TAKE)
#undef WEFT_TAKE
    return driver;
}

class CudaCalls {
  public:
    using Kernel = std::tuple<uint64_t, uint64_t, bool>; // a handle, bytes of shared memory, and whether it waits by itself

    CudaCalls(const std::vector<uint64_t> &functions, uint64_t context, const std::vector<Kernel> &kernels, uint64_t constants) {
        weft_cuda_driver driver = driver_of(functions);
        std::vector<weft_cuda_kernel> given;
        for (auto [handle, shared, waits] : kernels) given.push_back({reinterpret_cast<void *>(handle), shared, waits});
        device_ = weft_cuda_open(&driver, reinterpret_cast<void *>(context), given.data(), static_cast<int32_t>(given.size()),
                                 constants);
        if (device_ == nullptr) throw std::bad_alloc();
    }
    CudaCalls(const CudaCalls &) = delete;
    ~CudaCalls() { weft_cuda_free(device_); }

    uint64_t address() const { return reinterpret_cast<uint64_t>(weft_cuda_table(device_)); }

    void note(nb::object launches) {
        noted_ = std::move(launches);
        weft_cuda_on_launch(device_, noted_.is_none() ? nullptr : &add, this);
    }

    nb::object take_failure() const {
        weft_cuda_failure failure;
        if (!weft_cuda_take_failure(&failure)) return nb::none();
        return nb::make_tuple(failure.function == nullptr ? "" : failure.function, failure.status, failure.axis, failure.blocks);
    }

    nb::tuple counts() const {
        weft_cuda_counts counts = weft_cuda_count(device_);
        return nb::make_tuple(counts.plain, counts.replayed, counts.captured);
    }

    void close() { weft_cuda_close(device_); }

  private:
    // Adds a launch to the list: (kernel, grid, arguments), each of these whether it is a buffer, and its address or number.
    static void add(void *to, int32_t kernel, const int64_t *grid, const weft_argument *arguments, int32_t count) {
        nb::gil_scoped_acquire lock;
        nb::list given;
        for (int32_t i = 0; i < count; i++) given.append(nb::make_tuple(arguments[i].letter == 'b', arguments[i].at));
        nb::tuple shape = nb::make_tuple(grid[0], grid[1], grid[2], grid[3], grid[4], grid[5]);
        nb::object &noted = static_cast<CudaCalls *>(to)->noted_;
        if (!noted.is_none()) noted.attr("append")(nb::make_tuple(kernel, shape, given));
    }

    weft_cuda *device_ = nullptr;
    nb::object noted_ = nb::none();
};

void bind_cuda(nb::module_ &m) {
    nb::list functions;
#define WEFT_NAME(name, parameters) functions.append(#name);
    WEFT_CUDA_FUNCTIONS(WEFT_NAME)
#undef WEFT_NAME
    m.attr("CUDA_FUNCTIONS") = functions;
    nb::class_<CudaCalls>(m, "CudaCalls", "A device with CUDA, as the native runtime calls it.")
        .def(nb::init<const std::vector<uint64_t> &, uint64_t, const std::vector<CudaCalls::Kernel> &, uint64_t>(), nb::arg("functions"),
             nb::arg("context"), nb::arg("kernels"), nb::arg("constants"))
        .def_prop_ro("address", &CudaCalls::address)
        .def_prop_ro("counts", &CudaCalls::counts)
        .def("note", &CudaCalls::note, nb::arg("launches").none())
        .def("take_failure", &CudaCalls::take_failure)
        .def("close", &CudaCalls::close);
}
