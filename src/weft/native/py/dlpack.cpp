// Tensors of ours as other libraries take them.
#include "dlpack.h"

#include <algorithm>

// DLManagedTensor
struct Unversioned {
    nb::dlpack::dltensor tensor;
    void *context;
    void (*deleter)(Unversioned *);
};

struct Held {
    Managed managed;
    Unversioned unversioned;
    nb::object owner;
    std::vector<int64_t> sizes;  // and the strides behind them

    static void end(Held *held) {
        if (!Py_IsInitialized()) return;  // the memory goes with the process
        nb::gil_scoped_acquire lock;
        delete held;
    }
    static void release(Managed *managed) { end(static_cast<Held *>(managed->context)); }
    static void release_unversioned(Unversioned *tensor) { end(static_cast<Held *>(tensor->context)); }
};

static constexpr const char *VERSIONED = "dltensor_versioned", *UNVERSIONED = "dltensor";

const ExchangeTable *exchange_table(nb::handle type) {
    nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
    if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
    auto *table = static_cast<const ExchangeTable *>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    return table->version.major == 1 && table->view_of != nullptr ? table : nullptr;
}

Managed *managed_tensor(void *data, nb::dlpack::device device, const int64_t *shape, int32_t ndim, int32_t code, nb::object owner) {
    auto *held = new Held{{{1, 0}, nullptr, &Held::release, 0, {}}, {}, std::move(owner), std::vector<int64_t>(2 * static_cast<size_t>(ndim))};
    std::copy(shape, shape + ndim, held->sizes.begin());
    int64_t *strides = held->sizes.data() + ndim, step = 1;
    for (int32_t i = ndim; i-- > 0; step *= std::max<int64_t>(shape[i], 1)) strides[i] = step;
    held->managed.context = held;
    nb::dlpack::dltensor &tensor = held->managed.tensor;
    tensor.data = data;
    tensor.device = device;
    tensor.ndim = ndim;
    tensor.dtype = dlpack_type(code);
    tensor.shape = held->sizes.data();
    tensor.strides = strides;
    held->unversioned = {tensor, held, &Held::release_unversioned};
    return &held->managed;
}

// A capsule that nobody took ends the tensor; one that was taken has another name.
static void end_versioned(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, VERSIONED)) return;
    auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule, VERSIONED));
    managed->deleter(managed);
}

static void end_unversioned(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, UNVERSIONED)) return;
    auto *tensor = static_cast<Unversioned *>(PyCapsule_GetPointer(capsule, UNVERSIONED));
    tensor->deleter(tensor);
}

nb::object dlpack_capsule(Managed *managed, bool has_version) {
    void *tensor = has_version ? static_cast<void *>(managed) : &static_cast<Held *>(managed->context)->unversioned;
    PyObject *made = PyCapsule_New(tensor, has_version ? VERSIONED : UNVERSIONED, has_version ? end_versioned : end_unversioned);
    if (made == nullptr) {
        managed->deleter(managed);
        throw nb::python_error();
    }
    return nb::steal(made);
}
