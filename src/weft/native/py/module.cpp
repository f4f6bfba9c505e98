// The Python binding of the native runtime: constants of the ABI, and the exception that carries a failed status.
#include "binding.h"

const Scalar SCALARS[] = {
    {"?", "?"},  {"b", "i1"},  {"h", "i2"}, {"il", "i4"},  {"lq", "i8"}, {"B", "u1"}, {"H", "u2"},
    {"IL", "u4"}, {"LQ", "u8"}, {"e", "f2"}, {"", "bfloat16"}, {"f", "f4"},  {"d", "f8"}, {"LQ", "u8"},
    {"", "float8_e4m3fn"}, {"", "float8_e4m3fnuz"}, {"", "float8_e5m2"}, {"", "float8_e5m2fnuz"},
    {"", "float8_e8m0fnu"}, {"", "float4_e2m1fn"}, {"", "int4"}, {"", "uint4"}, {"", "int2"}, {"", "uint2"},
};

static PyObject *failed_type;

void raise_failed(int32_t status, const char *entry, const weft_ctx &ctx) {
    const int64_t *d = ctx.detail;
    nb::object args = nb::make_tuple(status, entry, ctx.failed_assert, nb::make_tuple(d[0], d[1], d[2], d[3]));
    PyErr_SetObject(failed_type, args.ptr());
    throw nb::python_error();
}

NB_MODULE(_rt, m) {
    nb::set_leak_warnings(false);  // PyTorch keeps what it compiled until the process ends, with the models in it
    m.attr("ABI") = WEFT_ABI;
    m.attr("LATE") = static_cast<int>(WEFT_LATE);
    m.attr("FORMAT") = WEFT_FORMAT;
    m.attr("MACHINE") = weft_machine();
    m.attr("ALIGN") = static_cast<int>(WEFT_ALIGN);
    m.attr("FAILED_ASSERT") = static_cast<int>(WEFT_FAILED_ASSERT);
    m.attr("NO_MEMORY") = static_cast<int>(WEFT_NO_MEMORY);
    m.attr("BUSY") = static_cast<int>(WEFT_BUSY);
    m.attr("SPOILT") = static_cast<int>(WEFT_SPOILT);
    m.attr("BAD_INPUT") = static_cast<int>(WEFT_BAD_INPUT);
    m.attr("STOPPED") = STOPPED;
    nb::dict codes;
    for (int code = 0; code <= WEFT_UINT2; code++) codes[weft_dtype_name(code)] = code;
    m.attr("DTYPES") = codes;

    failed_type = PyErr_NewExceptionWithDoc("weft.native._rt.Failed",
        "Generated code returned a status: (status, entry, failed_assert, detail).", nullptr, nullptr);
    if (failed_type == nullptr) throw nb::python_error();
    m.attr("Failed") = nb::handle(failed_type);

    m.def("cpus", &weft_cpus, "Processors that this process may use.");
    m.def("threads", &weft_threads, nb::arg("requested"));
    m.def("quota_cpus", &weft_quota_cpus, nb::arg("root"));
    m.def("set_random_seed", &weft_set_random_seed, nb::arg("seed"), "Begins the process's sequence of seeds anew.");
    m.def("random_seed", &weft_random_seed, "The seed with which the sequence goes on from here.");
    m.def("fresh_seed", &weft_fresh_seed, "The next of the seeds.");
    m.def("features", [] {
        weft_processor processor;
        weft_processor_read(&processor);
        nb::list found;
        for (int32_t i = 0; const char *name = weft_processor_feature(i); i++)
            if (weft_processor_has(&processor, name)) found.append(nb::str(name));
        return found;
    });
    m.def("known_features", [] {
        nb::list known;
        for (int32_t i = 0; const char *name = weft_processor_feature(i); i++) known.append(nb::str(name));
        return known;
    });
    m.def("processor", [] {
        weft_processor processor;
        weft_processor_read(&processor);
        return nb::make_tuple(nb::str(processor.vendor), processor.family, processor.model);
    });
    bind_artifact(m);
    bind_cuda(m);
    bind_device_array(m);
    bind_exchange(m);
    bind_memory(m);
    bind_kernel(m);
    bind_model(m);
    bind_running(m);
    bind_state(m);
    bind_tensors(m);
}
