// Tensors of other libraries by the functions that their types have (DLPack 1.3): no Python code runs, and nothing is copied.
#include <algorithm>
#include <cstring>

#include "dlpack.h"

Exchange::Exchange(nb::object type) : type_(std::move(type)), table_(exchange_table(type_)) {
    if (table_ == nullptr) throw nb::type_error("the type has no exchange functions of this version");
}

bool Exchange::view(nb::handle object, nb::dlpack::dltensor &view) const {
    if (!PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject *>(type_.ptr()))) return false;
    if (table_->view_of(object.ptr(), &view) != 0) throw nb::python_error();
    bool is_empty = std::find(view.shape, view.shape + view.ndim, 0) != view.shape + view.ndim;
    if (view.data == nullptr && !is_empty) throw nb::value_error("a tensor has no memory, as fake ones and those of meta have none");
    view.data = static_cast<char *>(view.data) + view.byte_offset;
    return true;
}

nb::object Exchange::tensor(const weft_tensor &made, Block *block) const {
    void *data = block->data;
    nb::object owner = nb::cast(block, nb::rv_policy::take_ownership);
    Managed *managed = managed_tensor(data, {nb::device::cpu::value, 0}, made.shape, made.ndim, made.dtype, std::move(owner));
    void *object = nullptr;
    if (table_->object_of(managed, &object) != 0) {
        managed->deleter(managed);
        throw nb::python_error();
    }
    return nb::steal(static_cast<PyObject *>(object));
}

bool is_contiguous(const nb::dlpack::dltensor &view) {
    int64_t step = 1;
    for (int32_t i = view.ndim; i-- > 0; step *= view.shape[i])
        if (view.strides != nullptr && view.shape[i] != 1 && view.strides[i] != step) return false;
    return true;
}

// Compares tensors with what they were at the last look: their places in memory, the library's count of writes, some elements.
class Watch {
  public:
    Watch(nb::object type, int64_t samples) : library_(std::move(type)), samples_(samples) {}

    bool has_changed(const nb::sequence &tensors) {
        bool changed = false;
        size_t k = 0;
        for (nb::handle tensor : tensors) {
            if (k == seen_.size()) seen_.emplace_back(), changed = true;
            changed |= look(tensor, seen_[k++]);
        }
        if (k < seen_.size()) seen_.resize(k), changed = true;
        return changed;
    }

  private:
    struct Seen {
        const void *data = nullptr;
        int64_t writes = -2;
        std::vector<int64_t> places;  // of the samples, in bytes
        std::vector<char> elements, now;
    };

    bool look(nb::handle tensor, Seen &seen) const {
        nb::dlpack::dltensor view;
        if (!library_.view(tensor, view)) throw nb::type_error("it is no tensor of the library that is watched");
        int64_t writes = count_of(tensor);
        bool changed = seen.data != view.data || seen.writes != writes;
        size_t item = view.dtype.bits / 8;
        if (seen.data != view.data) place(view, seen);
        seen.data = view.data;
        seen.writes = writes;
        char *at = seen.now.data();
        for (int64_t place : seen.places) std::memcpy(at, static_cast<const char *>(view.data) + place, item), at += item;
        if (seen.now == seen.elements) return changed;
        seen.elements = seen.now;
        return true;
    }

    // The count that the library keeps; -1 where nobody counts.
    static int64_t count_of(nb::handle tensor) {
        PyObject *count = PyObject_GetAttrString(tensor.ptr(), "_version");
        if (count == nullptr) PyErr_Clear();
        int64_t writes = count == nullptr ? -1 : PyLong_AsLongLong(count);
        Py_XDECREF(count);
        return writes;
    }

    // Chooses elements at odd distances, which meet any pattern of rows and columns; of memory elsewhere none.
    void place(const nb::dlpack::dltensor &view, Seen &seen) const {
        int64_t count = 1, item = view.dtype.bits / 8;
        for (int32_t i = 0; i < view.ndim; i++) count *= view.shape[i];
        if (view.device.device_type != nb::device::cpu::value) count = 0;
        seen.places.clear();
        for (int64_t n = 0, step = (count / samples_) | 1; n < count; n += step) {
            int64_t place = 0, rest = n;
            for (int32_t i = view.ndim; i-- > 0; rest /= view.shape[i]) place += rest % view.shape[i] * view.strides[i];
            seen.places.push_back(place * item);
        }
        seen.now.resize(seen.places.size() * static_cast<size_t>(item));
    }

    Exchange library_;
    int64_t samples_;
    std::vector<Seen> seen_;
};

void bind_exchange(nb::module_ &m) {
    nb::class_<Exchange>(m, "Exchange").def(nb::init<nb::object>(), nb::arg("type"));
    nb::class_<Watch>(m, "Watch")
        .def(nb::init<nb::object, int64_t>(), nb::arg("type"), nb::arg("samples"))
        .def("has_changed", &Watch::has_changed, nb::arg("tensors"));
}
