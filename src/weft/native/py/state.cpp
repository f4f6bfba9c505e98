// States: what the calls of a model leave for the next ones.
#include <new>

#include "binding.h"

static void check(int32_t status) {
    if (status == WEFT_NO_MEMORY) throw std::bad_alloc();
    if (status == WEFT_BAD_INPUT) throw nb::value_error("a state has not so many rows, nor a model so many states");
    if (status != WEFT_OK) raise_failed(status, "state", weft_ctx{});
}

void State::reset() { check(weft_state_reset(state)); }

State *State::copy() {
    weft_state *made = nullptr;
    check(weft_state_copy(state, &made));
    return new State(model_, made);
}

weft_tensor State::tensor(int32_t number) const {
    weft_tensor tensor;
    if (weft_state_tensor(state, number, &tensor) != WEFT_OK) throw nb::index_error("there is no such state");
    return tensor;
}

nb::tuple State::shape(int32_t number) const {
    const weft_tensor now = tensor(number);
    nb::list sizes;
    for (int32_t d = 0; d < now.ndim; d++) sizes.append(now.shape[d]);
    return nb::tuple(sizes);
}

nb::object State::read(int32_t number) {
    const weft_tensor now = tensor(number);
    Block *block = new Block(weft_tensor_bytes(&now));
    nb::object owner = nb::cast(block, nb::rv_policy::take_ownership);
    check(weft_state_read(state, number, block->data));
    return numpy_array(shape(number), numpy_dtype(now.dtype), owner);
}

// Takes contiguous elements; so many rows, for a state that grows.
void State::write(int32_t number, nb::handle data, int64_t rows) {
    Pinned pinned(data, PyBUF_C_CONTIGUOUS);
    check(weft_state_write(state, number, pinned.view.buf, rows));
}

void bind_state(nb::module_ &m) {
    nb::class_<State>(m, "State", "What the calls of a model leave for the next ones.")
        .def("reset", &State::reset)
        .def("copy", &State::copy, nb::rv_policy::take_ownership)
        .def("shape", &State::shape, nb::arg("number"))
        .def("read", &State::read, nb::arg("number"))
        .def("write", &State::write, nb::arg("number"), nb::arg("data"), nb::arg("rows"));
}
