// What the files of the binding share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include "weft_abi.h"
}

namespace nb = nanobind;

// The format letters that the buffer protocol may name a value by, and the name in NumPy or ml_dtypes, by dtype code.
struct Scalar {
    const char *formats;
    const char *numpy;
};
extern const Scalar SCALARS[WEFT_UINT2 + 1];

// Aligned memory that Python sees through the buffer protocol: an output, packed constants, or a borrowed tensor.
struct Block {
    void *data;
    int64_t bytes;
    nb::object owner;  // none: the block frees its own memory

    explicit Block(int64_t bytes);
    Block(void *data, int64_t bytes, nb::object owner) : data(data), bytes(bytes), owner(std::move(owner)) {}
    Block(const Block &) = delete;
    ~Block();
};

// A mapped image; the entries in it live as long as it does.
struct Image {
    weft_image map{};
    nb::object owner;  // none: the image unmaps itself

    Image(nb::handle blob, std::optional<int64_t> readonly);
    Image(weft_image map, nb::object owner) : map(map), owner(std::move(owner)) {}
    Image(const Image &) = delete;
    ~Image() {
        if (!owner.is_valid()) weft_image_unmap(&map);
    }

    template <typename F> F entry(int64_t offset) const {
        if (offset < 0 || offset >= map.bytes) throw nb::value_error("an entry's offset lies outside of the image");
        return reinterpret_cast<F>(map.base + offset);
    }
};

// A contiguous buffer that stays put while this lives.
struct Pinned {
    Py_buffer view{};

    Pinned(nb::handle object, int flags) {
        if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) throw nb::python_error();
    }
    Pinned(const Pinned &) = delete;
    Pinned(Pinned &&other) noexcept : view(other.view) { other.view.obj = nullptr; }
    Pinned &operator=(Pinned &&other) noexcept {
        std::swap(view, other.view);
        return *this;
    }
    ~Pinned() { PyBuffer_Release(&view); }
};

// The strings of an input while a call reads them.
struct Texts {
    std::vector<nb::object> held;
    std::vector<weft_text> texts;
    std::vector<const weft_text *> handles;
};
std::shared_ptr<Texts> take_texts(const Py_buffer &view);

// An output's strings as an array of Python's, of this shape; to be made before the context is released.
nb::object give_texts(const weft_tensor &tensor, nb::handle shape);

// The status of generated code whose call was asked to stop.
constexpr int32_t STOPPED = -1;

// While this lives, the call of `ctx` that this thread makes stops early when a signal's handler raises (the exception is then
// set), or when `flag`, if there is one, is no longer 0; and it shares the `processors` with the other calls of the process.
class Running {
  public:
    Running(weft_ctx *ctx, int32_t processors, const uint8_t *flag);
    Running(const Running &) = delete;
    ~Running();
    bool asked_to_stop();

    static void begin();  // comes before all that a call does
    static void count_again();

  private:
    static int32_t parallel_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n);

    int32_t processors_, threads_;
    bool in_loop_ = false;  // a loop inside one that threads share is run by the thread that meets it
    const uint8_t *flag_;
    int64_t next_look_ = 0;  // milliseconds; 0: not yet decided
    Running *outer_;         // a signal's handler may call a model while another call waits for it
};

// The states of one conversation with a model, which it keeps alive.
class State {
  public:
    State(nb::object model, weft_state *state) : state(state), model_(std::move(model)) {}
    State(const State &) = delete;
    ~State() {
        nb::error_scope kept;  // a device of Python's runs code of its own
        weft_state_free(state);
    }

    void reset();
    State *copy();
    nb::tuple shape(int32_t number) const;
    nb::object read(int32_t number);
    void write(int32_t number, nb::handle data, int64_t rows);

    weft_state *const state;

  private:
    weft_tensor tensor(int32_t number) const;

    nb::object model_;
};

// An Image as it is; bytes as an Image of their own.
nb::object mapped(nb::object image);

// The functions of a library for its tensors, found on their type; they run no Python code.
struct ExchangeTable;
class Exchange {
  public:
    explicit Exchange(nb::object type);

    // Describes a tensor of the library's, of whatever device and strides; false for what is none.
    bool view(nb::handle object, nb::dlpack::dltensor &view) const;

    // A tensor of the library's, which owns the block.
    nb::object tensor(const weft_tensor &made, Block *block) const;

  private:
    nb::object type_;
    const ExchangeTable *table_;
};

bool is_contiguous(const nb::dlpack::dltensor &view);

// Packed constants as one block: adopted when it is one already, else copied together.
nb::object pack(nb::handle constants);

// The code of a DLPack type; -1 for one that Weft does not have.
int32_t code_of(nb::dlpack::dtype type);
nb::dlpack::dtype dlpack_type(int32_t code);

nb::object numpy_dtype(int32_t code);
nb::object numpy_array(nb::handle shape, nb::handle dtype, nb::handle block);

// Raises weft.native._rt.Failed(status, entry, failed_assert, detail).
[[noreturn]] void raise_failed(int32_t status, const char *entry, const weft_ctx &ctx);

void bind_artifact(nb::module_ &m);
void bind_cuda(nb::module_ &m);
void bind_device_array(nb::module_ &m);
void bind_exchange(nb::module_ &m);
void bind_memory(nb::module_ &m);
void bind_kernel(nb::module_ &m);
void bind_model(nb::module_ &m);
void bind_running(nb::module_ &m);
void bind_state(nb::module_ &m);
void bind_tensors(nb::module_ &m);
