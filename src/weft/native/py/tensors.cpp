// Takes the arrays of a call where they are, whoever made them.
#include "tensors.h"

#include <algorithm>
#include <cstring>

#include "dlpack.h"

bool Input::overlaps(const Input &other) const {
    const char *x = static_cast<const char *>(data), *y = static_cast<const char *>(other.data);
    return place.space == other.place.space && x < y + other.bytes && y < x + bytes;
}

// The buffer protocol has no bfloat16, nor smaller floats and integers: they come as bytes of nothing in particular.
static bool names(const char *format, int32_t code) {
    if (code == WEFT_BF16) return std::strcmp(format, "2x") == 0;
    if (code > WEFT_HANDLE) return std::strcmp(format, "1x") == 0 || std::strcmp(format, "x") == 0;
    return *format != 0 && format[1] == 0 && std::strchr(SCALARS[code].formats, *format) != nullptr;
}

bool fits(const Py_buffer &view, const Spec &spec) {
    const char *format = view.format == nullptr ? "B" : view.format;
    if (*format == '=' || *format == '<' || *format == '@') format++;
    return view.ndim == spec.second && view.itemsize == weft_dtype_bytes(spec.first) && names(format, spec.first);
}

static void check(bool fits) {
    if (!fits) throw nb::type_error("an array's device, dtype or rank is not the model's");
}

static int64_t count_of(const int64_t *shape, int32_t ndim) {
    int64_t count = 1;
    for (int32_t i = 0; i < ndim; i++) count *= shape[i];
    return count;
}

static bool is_dense(const nb::ndarray<nb::ro> &tensor) {
    int64_t step = 1;
    for (size_t i = tensor.ndim(); i-- > 0; step *= static_cast<int64_t>(tensor.shape(i)))
        if (tensor.shape(i) != 1 && tensor.stride(i) != step) return false;
    return true;
}

static Input take_buffer(nb::handle input, const Spec &spec) {
    Pinned pinned(input, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
    const Py_buffer view = pinned.view;
    static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
    if (spec.first == WEFT_HANDLE && view.ndim == spec.second) {
        std::shared_ptr<Texts> texts = take_texts(view);
        const void *data = texts->handles.data();
        return {std::move(pinned), {}, data, reinterpret_cast<const int64_t *>(view.shape), view.len, std::move(texts)};
    }
    if (!fits(view, spec)) throw nb::type_error("an input's dtype or rank is not the model's");
    return {std::move(pinned), {}, view.buf, reinterpret_cast<const int64_t *>(view.shape), view.len};
}

// A view of a tensor that the object keeps alive.
static Input take_view(const nb::dlpack::dltensor &view, const Spec &spec) {
    check(view.ndim == spec.second && code_of(view.dtype) == spec.first);
    if (!is_contiguous(view)) throw nb::value_error("an array is not contiguous");
    return {std::nullopt, {}, view.data, view.shape, count_of(view.shape, view.ndim) * weft_dtype_bytes(spec.first)};
}

Input Taking::input(nb::handle given, const Spec &spec) {
    nb::dlpack::dltensor view;
    if (library_ != nullptr && library_->view(given, view)) {
        check(view.device.device_type == nb::device::cpu::value);
        return take_view(view, spec);
    }
    if (PyObject_CheckBuffer(given.ptr())) return take_buffer(given, spec);
    if (side_ != nullptr)
        if (std::optional<Input> found = on_device(given, spec)) return std::move(*found);
    return exported(given, spec);
}

// A tensor of another library, if it is as the model wants it: in the host's memory, or that of the device.
Input Taking::exported(nb::handle given, const Spec &spec) {
    nb::object exporter = nb::getattr(given, "__dlpack__", nb::none());
    if (exporter.is_none()) throw nb::type_error("an input is no array");
    auto version = nb::make_tuple(1, 0);
    bool is_there = side_ != nullptr && side_->is_shared() && is_on_device(given);
    nb::object capsule = is_there ? exporter(nb::arg("max_version") = version, nb::arg("stream") = side_->stream)
                                  : exporter(nb::arg("max_version") = version);
    auto tensor = nb::cast<nb::ndarray<nb::ro>>(capsule);
    int32_t device = is_there ? side_->kind : nb::device::cpu::value;
    check(tensor.device_type() == device && (!is_there || tensor.device_id() == side_->number) &&
          tensor.ndim() == static_cast<size_t>(spec.second) && code_of(tensor.dtype()) == spec.first);
    if (!is_dense(tensor)) throw nb::value_error("an array is not contiguous");
    int64_t bytes = static_cast<int64_t>(tensor.size()) * weft_dtype_bytes(spec.first);
    if (is_there) follow(reinterpret_cast<void *>(side_->stream));
    const void *data = tensor.data();
    const int64_t *shape = tensor.shape_ptr();
    Input made{std::nullopt, std::move(tensor), data, shape, bytes};
    if (is_there) made.place = {1, reinterpret_cast<uintptr_t>(data) % WEFT_ALIGN == 0};
    return made;
}

// An array of our own, or a tensor of a library that has functions to look at it; nothing for what has to be exported.
std::optional<Input> Taking::on_device(nb::handle given, const Spec &spec) {
    if (nb::isinstance<DeviceArray>(given)) {
        const auto &array = nb::cast<const DeviceArray &>(given);
        check(array.side->is_of(*side_) && array.shape.size() == static_cast<size_t>(spec.second) && array.code == spec.first);
        return Input{std::nullopt, {}, array.data, array.shape.data(), array.bytes, {}, {1, 1}, nb::borrow(given)};
    }
    const ExchangeTable *table = side_->is_shared() ? exchange_table(given.type()) : nullptr;
    nb::dlpack::dltensor view;
    if (table == nullptr || table->stream_of == nullptr) return std::nullopt;
    if (table->view_of(given.ptr(), &view) != 0) throw nb::python_error();
    if (view.device.device_type == nb::device::cpu::value) return std::nullopt;
    check(view.device.device_type == side_->kind && view.device.device_id == side_->number);
    nb::object is_negated = nb::getattr(given, "is_neg", nb::none());
    if (!is_negated.is_none() && nb::cast<bool>(is_negated())) throw nb::buffer_error("its elements are the negatives of those in memory");
    void *stream = nullptr;
    if (table->stream_of(side_->kind, side_->number, &stream) != 0) throw nb::python_error();
    follow(stream);
    view.data = static_cast<char *>(view.data) + view.byte_offset;
    Input made = take_view(view, spec);
    made.place = {1, reinterpret_cast<uintptr_t>(view.data) % WEFT_ALIGN == 0};
    made.held = nb::borrow(given);
    return made;
}

bool Taking::is_on_device(nb::handle given) const {
    if (nb::isinstance<DeviceArray>(given)) return true;
    if (PyObject_CheckBuffer(given.ptr())) return false;
    nb::object place = nb::getattr(given, "__dlpack_device__", nb::none());
    return !place.is_none() && nb::cast<int>(place()[0]) != nb::device::cpu::value;
}

Input Taking::output(nb::handle given, const weft_tensor &wanted) {
    Input made = input(given, {wanted.dtype, wanted.ndim});
    if (!std::equal(wanted.shape, wanted.shape + wanted.ndim, made.shape))
        throw nb::type_error("a given output's dtype or shape is not that of the model's output");
    return made;
}

void Taking::follow(void *stream) {
    if (std::find(streams_.begin(), streams_.end(), stream) != streams_.end()) return;
    if (streams_.size() == WEFT_MOST_STREAMS) throw nb::value_error("the arrays of a call are on too many streams");
    streams_.push_back(stream);
}

int32_t Taking::streams(void **streams) const {
    std::copy(streams_.begin(), streams_.end(), streams);
    return static_cast<int32_t>(streams_.size());
}

// The code, the shape and the density of a tensor of another library's, which stays where it is.
static nb::tuple look(nb::handle given) {
    auto tensor = nb::cast<nb::ndarray<nb::ro>>(given.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0)));
    nb::list shape;
    for (size_t i = 0; i < tensor.ndim(); i++) shape.append(tensor.shape(i));
    return nb::make_tuple(code_of(tensor.dtype()), nb::tuple(shape), is_dense(tensor));
}

void bind_tensors(nb::module_ &m) { m.def("look", &look, nb::arg("tensor")); }
