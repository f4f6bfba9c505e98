// Tensors of strings: arrays of Python's str (or bytes, as they are) for the caller, addresses of weft_texts for the model.
#include "binding.h"

// Returns the bytes of a str that Python's decoder made of bytes that are no UTF-8 (PEP 383).
static nb::object escaped(PyObject *item) {
    PyErr_Clear();
    nb::object made = nb::steal(PyUnicode_AsEncodedString(item, "utf-8", "surrogateescape"));
    if (made.is_valid()) return made;
    PyErr_Clear();
    throw nb::type_error("an element of an input of strings has half a surrogate pair, which no encoding has");
}

std::shared_ptr<Texts> take_texts(const Py_buffer &view) {
    if (view.format == nullptr || std::string(view.format) != "O") throw nb::type_error("an input of strings has no objects");
    auto made = std::make_shared<Texts>();
    size_t count = static_cast<size_t>(view.len) / sizeof(PyObject *);
    made->held.reserve(count), made->texts.reserve(count), made->handles.reserve(count);
    for (size_t i = 0; i < count; i++) {
        PyObject *item = static_cast<PyObject **>(view.buf)[i];
        Py_ssize_t bytes = 0;
        const char *data = nullptr;
        nb::object held = nb::borrow(item);  // the array may change while the model runs
        if (item != nullptr && PyUnicode_Check(item)) {
            data = PyUnicode_AsUTF8AndSize(item, &bytes);
            if (data == nullptr) held = escaped(item);
        }
        if (data == nullptr && held.is_valid() && PyBytes_Check(held.ptr())) {
            data = PyBytes_AS_STRING(held.ptr()), bytes = PyBytes_GET_SIZE(held.ptr());
        }
        if (data == nullptr) throw nb::type_error("an element of an input of strings is no string");
        made->held.push_back(std::move(held));
        made->texts.push_back({data, bytes});
        made->handles.push_back(&made->texts.back());
    }
    return made;
}

nb::object give_texts(const weft_tensor &tensor, nb::handle shape) {
    int64_t count = weft_tensor_bytes(&tensor) / weft_dtype_bytes(WEFT_HANDLE);
    nb::object made = nb::module_::import_("numpy").attr("empty")(shape, "O");
    Pinned pinned(made, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE);
    const weft_text *const *texts = static_cast<const weft_text *const *>(tensor.data);
    for (int64_t i = 0; i < count; i++) {
        PyObject *text = PyUnicode_DecodeUTF8(texts[i]->data, static_cast<Py_ssize_t>(texts[i]->bytes), "surrogateescape");
        if (text == nullptr) throw nb::python_error();
        PyObject *&place = static_cast<PyObject **>(pinned.view.buf)[i];
        PyObject *before = place;
        place = text;
        Py_XDECREF(before);
    }
    return made;
}
