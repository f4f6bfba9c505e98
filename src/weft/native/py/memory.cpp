// Memory and arrays: aligned blocks, mapped images, NumPy arrays over blocks, tensors through DLPack.
#include <algorithm>
#include <cstring>
#include <vector>

#include "binding.h"

// Large blocks that were freed last, to be handed out again: the system takes as long to clear one of its own as a kernel takes to
// fill it. Only who holds the interpreter's lock comes here. They outlive the module, as a block may.
struct Kept {
    void *data;
    int64_t bytes;
};
static constexpr int64_t KEPT_LEAST = int64_t{2} << 20, KEPT_IN_ALL = int64_t{64} << 20;
static std::vector<Kept> &kept = *new std::vector<Kept>;

static void *block_of(int64_t bytes) {
    for (auto at = kept.begin(); at != kept.end(); ++at) {
        if (at->bytes != bytes) continue;
        void *data = at->data;
        kept.erase(at);
        return data;
    }
    return weft_alloc(bytes);
}

static void keep(void *data, int64_t bytes) {
    int64_t all = bytes;
    for (const Kept &k : kept) all += k.bytes;
    for (; all > KEPT_IN_ALL && !kept.empty(); kept.erase(kept.begin())) {
        all -= kept.front().bytes;
        weft_free(kept.front().data);
    }
    kept.push_back({data, bytes});
}

Block::Block(int64_t bytes) : data(block_of(bytes)), bytes(bytes) {
    if (data == nullptr) throw std::bad_alloc();
}

Block::~Block() {
    if (owner.is_valid()) return;
    if (bytes < KEPT_LEAST || bytes > KEPT_IN_ALL) {
        weft_free(data);
    } else {
        keep(data, bytes);
    }
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    Block *block = nb::inst_ptr<Block>(nb::handle(self));
    return PyBuffer_FillInfo(view, self, block->data, block->bytes, block->owner.is_valid(), flags);
}

static int get_code(PyObject *self, Py_buffer *view, int flags) {
    Image *image = nb::inst_ptr<Image>(nb::handle(self));
    return PyBuffer_FillInfo(view, self, image->map.base, image->map.bytes, 1, flags);
}

static PyType_Slot image_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(get_code)}, {0, nullptr}};
static PyType_Slot block_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer)}, {0, nullptr}};

Image::Image(nb::handle blob, std::optional<int64_t> readonly) {
    Pinned pinned(blob, PyBUF_SIMPLE);
    int64_t code = readonly.value_or(pinned.view.len);
    int32_t status = weft_image_new(&map, pinned.view.len, code);
    if (status == WEFT_OK) {
        std::memcpy(map.base, pinned.view.buf, static_cast<size_t>(pinned.view.len));
        status = weft_image_seal(&map, code);
    }
    if (status == WEFT_NO_MEMORY) throw std::bad_alloc();
    if (status != WEFT_OK) throw nb::value_error("the image is empty, or its read-only part does not begin a page");
}

nb::object mapped(nb::object image) {
    if (nb::isinstance<Image>(image)) return image;
    return nb::cast(new Image(image, std::nullopt), nb::rv_policy::take_ownership);
}

nb::object numpy_dtype(int32_t code) {
    if (code < 0 || code > WEFT_UINT2) throw nb::value_error("there is no such dtype code");
    bool is_extra = code == WEFT_BF16 || code > WEFT_HANDLE;
    nb::object named = is_extra ? nb::object(nb::module_::import_("ml_dtypes").attr(SCALARS[code].numpy))
                                : nb::object(nb::str(SCALARS[code].numpy));
    return nb::module_::import_("numpy").attr("dtype")(named);
}

nb::object numpy_array(nb::handle shape, nb::handle dtype, nb::handle block) {
    static PyObject *ndarray = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
    PyObject *args[] = {shape.ptr(), dtype.ptr(), block.ptr()};
    PyObject *array = PyObject_Vectorcall(ndarray, args, 3, nullptr);
    if (array == nullptr) throw nb::python_error();
    return nb::steal(array);
}

int32_t code_of(nb::dlpack::dtype type) {
    using nb::dlpack::dtype_code;
    int log = type.bits == 8 ? 0 : type.bits == 16 ? 1 : type.bits == 32 ? 2 : type.bits == 64 ? 3 : -1;
    if (log < 0 || type.lanes != 1) return -1;
    switch (static_cast<dtype_code>(type.code)) {
        case dtype_code::Bool: return log == 0 ? WEFT_BOOL : -1;
        case dtype_code::Int: return WEFT_I8 + log;
        case dtype_code::UInt: return WEFT_U8 + log;
        case dtype_code::Bfloat: return log == 1 ? WEFT_BF16 : -1;
        case dtype_code::Float: return log == 1 ? WEFT_F16 : log == 2 ? WEFT_F32 : log == 3 ? WEFT_F64 : -1;
        default: return -1;
    }
}

nb::dlpack::dtype dlpack_type(int32_t code) {
    using nb::dlpack::dtype_code;
    for (dtype_code kind : {dtype_code::Float, dtype_code::Bfloat, dtype_code::Int, dtype_code::UInt, dtype_code::Bool})
        for (uint8_t bits : {8, 16, 32, 64}) {
            nb::dlpack::dtype type{static_cast<uint8_t>(kind), bits, 1};
            if (code_of(type) == code) return type;
        }
    throw nb::type_error("DLPack has no such dtype");
}

// The tensor's memory as a read-only NumPy array, strides and all; bfloat16 too, which NumPy's own reader refuses.
static nb::object from_dlpack(nb::ndarray<nb::ro> tensor) {
    if (tensor.device_type() != nb::device::cpu::value) throw nb::buffer_error("the tensor is not in the CPU's memory");
    int32_t code = code_of(tensor.dtype());
    if (code < 0) throw nb::type_error("the tensor's dtype is not one that Weft has");
    int64_t item = weft_dtype_bytes(code), span = tensor.size() > 0 ? item : 0;
    nb::list shape, strides;
    for (size_t i = 0; i < tensor.ndim(); i++) {
        int64_t extent = static_cast<int64_t>(tensor.shape(i)), stride = tensor.stride(i) * item;
        if (stride < 0) throw nb::type_error("the tensor has a negative stride");
        if (span > 0) span += (extent - 1) * stride;
        shape.append(extent);
        strides.append(stride);
    }
    void *data = const_cast<void *>(tensor.data());
    nb::capsule owner(new nb::ndarray<nb::ro>(tensor), [](void *p) noexcept { delete static_cast<nb::ndarray<nb::ro> *>(p); });
    nb::object block = nb::cast(new Block(data, span, std::move(owner)), nb::rv_policy::take_ownership);
    nb::object ndarray = nb::module_::import_("numpy").attr("ndarray");
    return ndarray(nb::tuple(shape), numpy_dtype(code), block, 0, nb::tuple(strides));
}

// The checksum of a buffer, or of all up to its end, while other Python threads run.
static uint64_t checksum(nb::handle data, std::optional<uint64_t> before) {
    Pinned pinned(data, PyBUF_SIMPLE);
    nb::gil_scoped_release release;
    return weft_checksum_more(before.value_or(static_cast<uint64_t>(pinned.view.len)), pinned.view.buf, pinned.view.len);
}

nb::object pack(nb::handle constants) {
    if (nb::isinstance<Block>(constants)) return nb::borrow(constants);
    std::vector<std::pair<int64_t, Pinned>> parts;
    if (PyObject_CheckBuffer(constants.ptr())) {
        parts.emplace_back(0, Pinned(constants, PyBUF_SIMPLE));
    } else {
        for (nb::handle part : constants)
            parts.emplace_back(nb::cast<int64_t>(part[0]), Pinned(part[1], PyBUF_SIMPLE));
    }
    std::sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    int64_t bytes = 0;
    for (const auto &[offset, part] : parts) {
        if (offset < 0 || offset % WEFT_ALIGN != 0) throw nb::value_error("a constant's offset is a multiple of 64");
        if (offset < bytes) throw nb::value_error("two constants overlap");
        bytes = offset + static_cast<int64_t>(part.view.len);
    }
    Block *block = new Block(bytes);
    nb::object result = nb::cast(block, nb::rv_policy::take_ownership);
    char *data = static_cast<char *>(block->data);
    int64_t end = 0;
    for (const auto &[offset, part] : parts) {
        std::memset(data + end, 0, static_cast<size_t>(offset - end));  // a saved model is the same bytes every time
        std::memcpy(data + offset, part.view.buf, static_cast<size_t>(part.view.len));
        end = offset + static_cast<int64_t>(part.view.len);
    }
    return result;
}

void bind_memory(nb::module_ &m) {
    m.def("pack", &pack, nb::arg("constants"));
    nb::class_<Block>(m, "Block", nb::type_slots(block_slots), "Aligned memory, in huge pages when large.")
        .def(nb::init<int64_t>(), nb::arg("nbytes"))
        .def_ro("nbytes", &Block::bytes)
        .def_prop_ro("address", [](const Block &b) { return reinterpret_cast<uintptr_t>(b.data); });
    nb::class_<Image>(m, "Image", nb::type_slots(image_slots), "A mapped image: executable, and never writable.")
        .def(nb::init<nb::handle, std::optional<int64_t>>(), nb::arg("blob"), nb::arg("readonly") = nb::none())
        .def("__len__", [](const Image &i) { return i.map.bytes; })
        .def_prop_ro("nbytes", [](const Image &i) { return i.map.bytes; });
    m.def("checksum", &checksum, nb::arg("data"), nb::arg("before") = nb::none());
    m.attr("PIECE") = WEFT_PIECE;
    m.def("from_dlpack", &from_dlpack, nb::arg("capsule"));
}
