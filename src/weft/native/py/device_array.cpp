// Arrays in the memory of a device: outputs that stay there, and what is copied there before a call.
#include "device_array.h"

#include <new>

#include "dlpack.h"

DeviceSide::DeviceSide(nb::handle device)
    : table(nb::borrow(device)), calls(*reinterpret_cast<const weft_device *>(nb::cast<uint64_t>(device.attr("address")))) {
    nb::object place = nb::getattr(device, "dlpack", nb::none());
    std::tie(kind, number) = place.is_none() ? std::pair(0, 0) : nb::cast<std::pair<int32_t, int32_t>>(place);
    stream = nb::cast<uint64_t>(nb::getattr(device, "stream", nb::int_(0)));
}

void raise_device(const DeviceSide &side) {
    nb::object error = side.table.attr("take_error")();
    if (error.is_none()) throw std::bad_alloc();
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

static int64_t bytes_of(const std::vector<int64_t> &shape, int32_t code) {
    int64_t bytes = weft_dtype_bytes(code);
    for (int64_t size : shape)
        if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) throw nb::value_error("an array's shape is impossible");
    return bytes;
}

static uint8_t *memory_on(const DeviceSide &side, int64_t bytes) {
    void *made = side.calls.alloc(side.calls.state, bytes);
    if (made == nullptr) raise_device(side);
    return static_cast<uint8_t *>(made);
}

DeviceArray::DeviceArray(std::shared_ptr<const DeviceSide> given, std::vector<int64_t> sizes, int32_t code)
    : side(std::move(given)), shape(std::move(sizes)), code(code), bytes(bytes_of(shape, code)), data(memory_on(*side, bytes)) {}

DeviceArray::~DeviceArray() {
    nb::error_scope kept;  // a device of Python's runs code of its own
    bool is_kept = !is_exported_ || side->calls.discard == nullptr;
    (is_kept ? side->calls.free : side->calls.discard)(side->calls.state, data);
}

nb::tuple DeviceArray::sizes() const {
    nb::list made;
    for (int64_t size : shape) made.append(size);
    return nb::tuple(made);
}

static weft_argument place(void *memory, int32_t space) { return {static_cast<uint8_t *>(memory), 0, space, 'b'}; }

nb::object DeviceArray::numpy() const {
    Block *block = new Block(bytes);
    nb::object owner = nb::cast(block, nb::rv_policy::take_ownership);
    if (side->calls.copy(side->calls.state, place(block->data, 0), place(data, 1), bytes) != WEFT_OK) raise_device(*side);
    return numpy_array(sizes(), numpy_dtype(code), owner);
}

void DeviceArray::write(nb::handle given) const {
    Pinned pinned(given, PyBUF_C_CONTIGUOUS);
    if (pinned.view.len != bytes) throw nb::value_error("the array has another number of bytes");
    if (side->calls.copy(side->calls.state, place(data, 1), place(pinned.view.buf, 0), bytes) != WEFT_OK) raise_device(*side);
}

nb::object DeviceArray::exported(nb::object self, bool has_version) {
    is_exported_ = true;
    nb::dlpack::device device{side->kind, side->number};
    int32_t ndim = static_cast<int32_t>(shape.size());
    return dlpack_capsule(managed_tensor(data, device, shape.data(), ndim, code, std::move(self)), has_version);
}

nb::dict DeviceArray::cuda_interface() {
    is_exported_ = true;
    nb::dict made;
    made["shape"] = sizes();
    made["typestr"] = numpy_dtype(code).attr("str");
    made["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(data), false);
    made["strides"] = nb::none();
    made["version"] = 3;
    return made;
}

static nb::object export_array(nb::object self, nb::object, nb::object max_version, nb::object dl_device, nb::object copy) {
    auto &array = nb::cast<DeviceArray &>(self);
    bool is_version = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
    bool is_to_host = !dl_device.is_none() && nb::cast<int>(dl_device[0]) == nb::device::cpu::value;
    if (is_to_host && !(!copy.is_none() && !nb::cast<bool>(copy)))
        return array.numpy().attr("__dlpack__")(nb::arg("max_version") = max_version);
    bool is_elsewhere = !dl_device.is_none() && nb::cast<std::pair<int, int>>(dl_device) != std::pair(array.side->kind, array.side->number);
    if (!array.side->is_shared() || is_elsewhere || (!copy.is_none() && nb::cast<bool>(copy)))
        throw nb::buffer_error("the array is in a device's memory that is not shared with other libraries so: numpy() copies it");
    return array.exported(self, is_version);
}

void bind_device_array(nb::module_ &m) {
    nb::class_<DeviceArray>(m, "DeviceArray", "An array in the memory of the device that runs a model.")
        .def_prop_ro("shape", &DeviceArray::sizes)
        .def_prop_ro("dtype", [](const DeviceArray &a) { return numpy_dtype(a.code); })
        .def_prop_ro("ndim", [](const DeviceArray &a) { return a.shape.size(); })
        .def_prop_ro("nbytes", [](const DeviceArray &a) { return a.bytes; })
        .def_prop_ro("device", [](const DeviceArray &a) { return a.side->table.attr("device").attr("name"); })
        .def("is_on", [](const DeviceArray &a, nb::handle table) { return a.side->is_of(DeviceSide(table)); }, nb::arg("device"))
        .def("numpy", &DeviceArray::numpy)
        .def("write", &DeviceArray::write, nb::arg("data"))
        .def("__array__", [](const DeviceArray &a, nb::object dtype, nb::object copy) {
                 if (!copy.is_none() && !nb::cast<bool>(copy)) throw nb::value_error("the array is on a device: it has to be copied");
                 nb::object made = a.numpy();
                 return dtype.is_none() ? made : made.attr("astype")(dtype, nb::arg("copy") = false);
             }, nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none())
        .def("__dlpack_device__", [](const DeviceArray &a) {
                 if (!a.side->is_shared()) throw nb::buffer_error("no other library has tensors on this device: numpy() copies it");
                 return nb::make_tuple(a.side->kind, a.side->number);
             })
        .def("__dlpack__", &export_array, nb::kw_only(), nb::arg("stream").none() = nb::none(), nb::arg("max_version").none() = nb::none(),
             nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none())
        .def_prop_ro("__cuda_array_interface__", [](DeviceArray &a) {
                 if (a.side->kind != nb::device::cuda::value) throw nb::attribute_error("__cuda_array_interface__");
                 return a.cuda_interface();
             })
        .def("__repr__", [](const DeviceArray &a) {
                 return nb::str("<weft.DeviceArray {}{} on {}>").format(numpy_dtype(a.code), nb::list(a.sizes()),
                                                                     a.side->table.attr("device").attr("name"));
             });
}
