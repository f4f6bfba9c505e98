// Saved models, loaded by the runtime's own loader: code, constants, and what they say of themselves.
#include <cstring>

#include "binding.h"

static PyObject *load_error;

static nb::object text(const char *found) {
    PyObject *made = PyUnicode_DecodeUTF8(found, static_cast<Py_ssize_t>(std::strlen(found)), "replace");
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

struct Artifact {
    std::optional<Pinned> pinned;  // the memory it was loaded from
    weft_model *model = nullptr;

    Artifact(nb::handle source, int32_t threads, bool copy, bool verify) {
        weft_options options = {threads, (copy ? WEFT_COPY : 0) | (verify ? 0 : WEFT_TRUST) | WEFT_LAUNCHES};
        weft_error error{};
        int32_t status;
        if (PyUnicode_Check(source.ptr()) != 0) {
            PyObject *encoded = nullptr;
            if (PyUnicode_FSConverter(source.ptr(), &encoded) == 0) throw nb::python_error();
            nb::bytes path = nb::steal<nb::bytes>(encoded);
            nb::gil_scoped_release release;
            status = weft_load(path.c_str(), &options, &model, &error);
        } else {
            pinned.emplace(source, PyBUF_SIMPLE);
            nb::gil_scoped_release release;
            status = weft_load_memory(pinned->view.buf, pinned->view.len, &options, &model, &error);
        }
        if (status == WEFT_NO_MEMORY) throw std::bad_alloc();
        if (status != WEFT_OK) {
            PyErr_SetObject(load_error, nb::make_tuple(status, text(error.text)).ptr());
            throw nb::python_error();
        }
    }
    Artifact(const Artifact &) = delete;
    ~Artifact() { weft_model_free(model); }
};

// Rows of (name, dtype code, sizes, whether some are late), a size that is known in a call only by its name.
static nb::list specs(const weft_spec *first, int32_t count) {
    nb::list rows;
    for (const weft_spec *spec = first; spec < first + count; spec++) {
        nb::list sizes;
        bool late = false;
        for (const weft_dim *dim = spec->dims; dim < spec->dims + spec->ndim; dim++)
            sizes.append(dim->size < 0 ? text(dim->name) : nb::object(nb::int_(dim->size))), late |= dim->size == WEFT_LATE;
        rows.append(nb::make_tuple(text(spec->name), spec->dtype, nb::tuple(sizes), late));
    }
    return rows;
}

static nb::dict checks(const Artifact &a) {
    nb::dict found;
    for (int32_t i = 0; i < a.model->checks; i++) {
        uint32_t number;
        nb::object message = text(weft_check_at(a.model, i, &number));
        found[nb::int_(number)] = message;
    }
    return found;
}

static nb::dict notes(const Artifact &a) {
    nb::dict found;
    const char *key, *note;
    for (int32_t i = 0; weft_note_at(a.model, i, &key, &note) != 0; i++) found[text(key)] = text(note);
    return found;
}

static nb::list features(const Artifact &a) {
    nb::list found;
    for (int32_t i = 0; i < a.model->features; i++) found.append(text(weft_feature_at(a.model, i)));
    return found;
}

static nb::object image(nb::object self) {
    return nb::cast(new Image(nb::cast<Artifact &>(self).model->image, self), nb::rv_policy::take_ownership);
}

static nb::object constants(nb::object self) {
    const weft_model *model = nb::cast<Artifact &>(self).model;
    void *data = const_cast<uint8_t *>(model->constants);  // Python sees it as read-only
    return nb::cast(new Block(data, model->constant_bytes, self), nb::rv_policy::take_ownership);
}

void bind_artifact(nb::module_ &m) {
    load_error = PyErr_NewExceptionWithDoc("weft.native._rt.LoadError", "A file was refused: (status, text).", nullptr, nullptr);
    if (load_error == nullptr) throw nb::python_error();
    m.attr("LoadError") = nb::handle(load_error);
    m.attr("UNREADABLE") = static_cast<int>(WEFT_UNREADABLE);
    m.attr("NOT_A_MODEL") = static_cast<int>(WEFT_NOT_A_MODEL);
    m.attr("OTHER_VERSION") = static_cast<int>(WEFT_OTHER_VERSION);
    m.attr("DAMAGED") = static_cast<int>(WEFT_DAMAGED);
    m.attr("OTHER_MACHINE") = static_cast<int>(WEFT_OTHER_MACHINE);
    nb::class_<Artifact>(m, "Artifact", "A saved model in memory, checked.")
        .def(nb::init<nb::handle, int32_t, bool, bool>(), nb::arg("source"), nb::arg("threads") = 0,
             nb::arg("copy") = false, nb::arg("verify") = true)
        .def_prop_ro("image", &image)
        .def_prop_ro("constants", &constants)
        .def_prop_ro("plan", [](const Artifact &a) { return a.model->plan_at; })
        .def_prop_ro("main", [](const Artifact &a) { return a.model->main_at; })
        .def_prop_ro("readonly", [](const Artifact &a) { return a.model->readonly; })
        .def_prop_ro("arena_bytes", [](const Artifact &a) { return a.model->arena_bytes; })
        .def_prop_ro("flush", [](const Artifact &a) { return a.model->flush != 0; })
        .def_prop_ro("inputs", [](const Artifact &a) { return specs(a.model->specs, a.model->inputs); })
        .def_prop_ro("outputs", [](const Artifact &a) { return specs(a.model->specs + a.model->inputs, a.model->outputs); })
        .def_prop_ro("checks", &checks)
        .def_prop_ro("features", &features)
        .def_prop_ro("notes", &notes);
}
