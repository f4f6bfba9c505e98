// The Python binding of the native runtime: constants of the ABI, and the exception that carries a failed status.
#include "binding.h"

const Scalar SCALARS[] = {
    {"bool", 1, "?", "?"},    {"i8", 1, "b", "i1"},     {"i16", 2, "h", "i2"},   {"i32", 4, "il", "i4"},
    {"i64", 8, "lq", "i8"},   {"u8", 1, "B", "u1"},     {"u16", 2, "H", "u2"},   {"u32", 4, "IL", "u4"},
    {"u64", 8, "LQ", "u8"},   {"f16", 2, "e", "f2"},    {"bf16", 2, "", nullptr}, {"f32", 4, "f", "f4"},
    {"f64", 8, "d", "f8"},    {"handle", 8, "LQ", "u8"},
};

static PyObject *failed_type;

void raise_failed(int32_t status, const char *entry, const weft_ctx &ctx) {
    const int64_t *d = ctx.detail;
    nb::object args = nb::make_tuple(status, entry, ctx.failed_assert, nb::make_tuple(d[0], d[1], d[2], d[3]));
    PyErr_SetObject(failed_type, args.ptr());
    throw nb::python_error();
}

NB_MODULE(_rt, m) {
    m.attr("ABI") = WEFT_ABI;
    m.attr("ALIGN") = WEFT_ALIGN;
    m.attr("FAILED_ASSERT") = static_cast<int>(WEFT_FAILED_ASSERT);
    m.attr("NO_MEMORY") = static_cast<int>(WEFT_NO_MEMORY);
    m.attr("STOPPED") = STOPPED;
    nb::dict codes;
    for (int code = 0; code <= WEFT_HANDLE; code++) codes[SCALARS[code].name] = code;
    m.attr("DTYPES") = codes;

    failed_type = PyErr_NewExceptionWithDoc(
        "weft.native._rt.Failed", "Generated code returned a status: (status, entry, failed_assert, detail).", nullptr,
        nullptr);
    if (failed_type == nullptr) throw nb::python_error();
    m.attr("Failed") = nb::handle(failed_type);

    m.def("cpus", &weft_cpus, "Processors that this process may use.");
    m.def("threads", &weft_threads, nb::arg("requested"));
    m.def("quota_cpus", &weft_quota_cpus, nb::arg("mount"), nb::arg("membership"));
    bind_memory(m);
    bind_kernel(m);
    bind_model(m);
    bind_running(m);
}
