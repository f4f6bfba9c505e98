// Weft's C interface for C++17: the same functions, with owners that let go by themselves.
//
//   weft::Model model = weft::Model::load("resnet18.weft");
//   weft::Context context(model);
//   std::vector<weft::Array> y = context({weft::View(image, {1, 3, 224, 224})});   // image: float *
//   float best = *std::max_element(y[0].as<float>(), y[0].as<float>() + y[0].size());
//
// Errors are thrown as weft::Error. Where exceptions are off (or WEFT_NO_EXCEPTIONS is defined), a failed load gives an empty
// model, a failed call no arrays, and error() says why.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft.h"

#if !defined(WEFT_NO_EXCEPTIONS) && defined(__cpp_exceptions)
#define WEFT_THROWS 1
#include <stdexcept>
#else
#define WEFT_THROWS 0
#endif

namespace weft {

template <typename T> struct dtype_of;
template <> struct dtype_of<bool> { static constexpr int32_t value = WEFT_BOOL; };
template <> struct dtype_of<int8_t> { static constexpr int32_t value = WEFT_I8; };
template <> struct dtype_of<int16_t> { static constexpr int32_t value = WEFT_I16; };
template <> struct dtype_of<int32_t> { static constexpr int32_t value = WEFT_I32; };
template <> struct dtype_of<int64_t> { static constexpr int32_t value = WEFT_I64; };
template <> struct dtype_of<uint8_t> { static constexpr int32_t value = WEFT_U8; };
template <> struct dtype_of<uint16_t> { static constexpr int32_t value = WEFT_U16; };
template <> struct dtype_of<uint32_t> { static constexpr int32_t value = WEFT_U32; };
template <> struct dtype_of<uint64_t> { static constexpr int32_t value = WEFT_U64; };
template <> struct dtype_of<float> { static constexpr int32_t value = WEFT_F32; };
template <> struct dtype_of<double> { static constexpr int32_t value = WEFT_F64; };

using Shape = std::vector<int64_t>;

#if WEFT_THROWS
class Error : public std::runtime_error {
  public:
    explicit Error(const weft_error &error) : std::runtime_error(error.text), status(error.status) {}
    int32_t status;  // a weft_status
};
#endif

// An input: the caller's memory, contiguous, which stays while it is used.
struct View {
    void *data;
    int32_t dtype;
    Shape shape;

    template <typename T> View(const T *data, Shape shape)
        : data(const_cast<T *>(data)), dtype(dtype_of<T>::value), shape(std::move(shape)) {}  // inputs are never written
    View(const void *data, int32_t dtype, Shape shape)
        : data(const_cast<void *>(data)), dtype(dtype), shape(std::move(shape)) {}
};

// An output: memory of its own.
class Array {
  public:
    Array(int32_t dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
        data_.reset(weft_alloc(bytes()));
    }
    int32_t dtype() const { return dtype_; }
    const Shape &shape() const { return shape_; }
    int64_t bytes() const {
        Shape sizes = shape_;
        weft_tensor tensor = {nullptr, sizes.data(), static_cast<int32_t>(sizes.size()), dtype_};
        return weft_tensor_bytes(&tensor);
    }
    int64_t size() const { return bytes() / weft_dtype_bytes(dtype_); }
    void *data() const { return data_.get(); }

    // The elements; null where T is not their type.
    template <typename T> T *as() const { return dtype_of<T>::value == dtype_ ? static_cast<T *>(data_.get()) : nullptr; }

  private:
    struct Free {
        void operator()(void *block) const { weft_free(block); }
    };
    int32_t dtype_;
    Shape shape_;
    std::unique_ptr<void, Free> data_;
};

namespace detail {

inline void tell(weft_error &error, int32_t status, const char *text) {
    error.status = status;
    for (size_t i = 0; i < sizeof error.text; i++) {
        error.text[i] = text[i];
        if (text[i] == 0) break;
    }
}

inline void check(const weft_error &error) {
#if WEFT_THROWS
    if (error.status != WEFT_OK) throw Error(error);
#else
    (void)error;
#endif
}

}  // namespace detail

class Model {
  public:
    static Model load(const char *path, weft_options options = {}) {
        Model made;
        made.error_.status = weft_load(path, &options, &made.model_, &made.error_);
        detail::check(made.error_);
        return made;
    }
    // The memory stays the caller's, and as it is while the model lives, unless the options say WEFT_COPY.
    static Model load(const void *data, int64_t bytes, weft_options options = {}) {
        Model made;
        made.error_.status = weft_load_memory(data, bytes, &options, &made.model_, &made.error_);
        detail::check(made.error_);
        return made;
    }
    // Takes over a model, such as the functions that `weft compile -o FOLDER/` writes make.
    explicit Model(weft_model *model) : model_(model) {}
    Model(Model &&other) noexcept : model_(std::exchange(other.model_, nullptr)), error_(other.error_) {}
    Model &operator=(Model &&other) noexcept {
        std::swap(model_, other.model_);
        std::swap(error_, other.error_);
        return *this;
    }
    ~Model() { weft_model_free(model_); }

    explicit operator bool() const { return model_ != nullptr; }
    const weft_error &error() const { return error_; }
    weft_model *get() const { return model_; }
    int32_t inputs() const { return weft_inputs(model_); }
    int32_t outputs() const { return weft_outputs(model_); }
    const weft_spec &input(int32_t number) const { return *weft_input(model_, number); }
    const weft_spec &output(int32_t number) const { return *weft_output(model_, number); }
    const char *note(const char *key) const { return weft_note(model_, key); }

  private:
    weft_model *model_ = nullptr;
    weft_error error_{};

    Model() = default;
};

// What lives from one call to the next, such as a cache of keys and values: one for each conversation. For one thread at a time,
// and not longer than its model. `sizes` has the symbolic sizes of the model's states, if there are any.
//
//   weft::State state(model);
//   std::vector<weft::Array> y = context(state, {weft::View(token, {1, 1})});
class State {
  public:
    explicit State(const Model &model, const std::vector<weft_size> &sizes = {}) {
        error_.status = weft_state_new(model.get(), sizes.data(), static_cast<int32_t>(sizes.size()), &state_, &error_);
        detail::check(error_);
    }
    State(State &&other) noexcept : state_(std::exchange(other.state_, nullptr)), error_(other.error_) {}
    State &operator=(State &&other) noexcept {
        std::swap(state_, other.state_);
        std::swap(error_, other.error_);
        return *this;
    }
    ~State() { weft_state_free(state_); }

    explicit operator bool() const { return state_ != nullptr; }
    const weft_error &error() const { return error_; }
    weft_state *get() const { return state_; }

    // Makes it as it was when it was new.
    void reset() { check(weft_state_reset(state_)); }

    // A state with the same values, which goes on by itself.
    State copy() {
        State made;
        check(weft_state_copy(state_, &made.state_));
        made.error_ = error_;
        return made;
    }

    // The value of a state by number, with the rows that there are by now.
    Array read(int32_t number) {
        weft_tensor now{};
        int32_t status = weft_state_tensor(state_, number, &now);
        Array made(status == WEFT_OK ? now.dtype : WEFT_U8, status == WEFT_OK ? Shape(now.shape, now.shape + now.ndim) : Shape{0});
        if (status == WEFT_OK) status = made.data() == nullptr ? WEFT_NO_MEMORY : weft_state_read(state_, number, made.data());
        check(status);
        return made;
    }

    // Replaces a value; of a state that grows, all rows.
    void write(int32_t number, const View &value) {
        weft_tensor now{};
        int32_t status = weft_state_tensor(state_, number, &now), axis = weft_state_axis(state_, number);
        bool fits = status == WEFT_OK && value.dtype == now.dtype && value.shape.size() == static_cast<size_t>(now.ndim);
        for (int32_t d = 0; fits && d < now.ndim; d++) fits = d == axis || value.shape[static_cast<size_t>(d)] == now.shape[d];
        int64_t rows = fits && axis >= 0 ? value.shape[static_cast<size_t>(axis)] : 0;
        check(fits ? weft_state_write(state_, number, value.data, rows) : WEFT_BAD_INPUT);
    }

  private:
    weft_state *state_ = nullptr;
    weft_error error_{};

    State() = default;
    void check(int32_t status) {
        detail::tell(error_, status,
                     status == WEFT_OK          ? ""
                     : status == WEFT_BUSY      ? "the state is in use by another call"
                     : status == WEFT_SPOILT    ? "a call failed while it wrote the state, which is neither old nor new"
                     : status == WEFT_NO_MEMORY ? "there is no memory left for a state"
                                                : "there is no such state, or it is of another type or shape");
        detail::check(error_);
    }
};

// What one call at a time needs; for one thread at a time, and not longer than its model.
class Context {
  public:
    explicit Context(const Model &model) : model_(model.get()), ctx_(weft_acquire(model.get())) {}
    Context(Context &&other) noexcept : model_(other.model_), ctx_(std::exchange(other.ctx_, nullptr)) {}
    Context &operator=(Context &&) = delete;
    ~Context() {
        if (ctx_ != nullptr) weft_release(ctx_);
    }

    // Runs the model on all of its inputs, in order; returns its outputs, in order.
    std::vector<Array> operator()(std::vector<View> inputs) {
        std::vector<weft_tensor> in, out;
        std::vector<Shape> shapes(static_cast<size_t>(weft_outputs(model_)));
        std::vector<Array> arrays;
        if (ctx_ == nullptr) return fail(WEFT_NO_MEMORY, "there is no memory left for the model");
        if (inputs.size() != static_cast<size_t>(weft_inputs(model_)))
            return fail(WEFT_BAD_INPUT, "the number of inputs is not the model's");
        for (View &view : inputs)
            in.push_back({view.data, view.shape.data(), static_cast<int32_t>(view.shape.size()), view.dtype});
        for (size_t i = 0; i < shapes.size(); i++) {
            const weft_spec *spec = weft_output(model_, static_cast<int32_t>(i));
            shapes[i].resize(static_cast<size_t>(spec->ndim));
            out.push_back({nullptr, shapes[i].data(), spec->ndim, spec->dtype});
        }
        int32_t status = weft_plan(ctx_, in.data(), out.data());
        for (size_t i = 0; status == WEFT_OK && i < out.size(); i++) {
            bool late = std::find(shapes[i].begin(), shapes[i].end(), -1) != shapes[i].end();
            arrays.emplace_back(out[i].dtype, late ? Shape{0} : shapes[i]);
            out[i].data = arrays.back().data();
            if (out[i].data == nullptr) status = WEFT_NO_MEMORY;
        }
        weft_on_output(ctx_, &give, &arrays);
        if (status == WEFT_OK) status = weft_run(ctx_, in.data(), out.data());
        if (status == WEFT_OK) return arrays;
        weft_explain(ctx_, status, &error_);
        return failed();
    }

    // The same, and takes and leaves a state, which it has while it runs.
    std::vector<Array> operator()(State &state, std::vector<View> inputs) {
        struct Use {
            weft_ctx *ctx;
            ~Use() { weft_use(ctx, nullptr); }
        };
        if (ctx_ == nullptr) return (*this)(std::move(inputs));
        int32_t status = weft_use(ctx_, state.get());
        if (status == WEFT_BUSY) return fail(status, "the state is in use by another call");
        if (status != WEFT_OK) return fail(status, "the state is another model's");
        Use use{ctx_};
        return (*this)(std::move(inputs));
    }

    const weft_error &error() const { return error_; }
    weft_ctx *get() const { return ctx_; }

  private:
    weft_model *model_;
    weft_ctx *ctx_;
    weft_error error_{};

    // The memory of an output with late sizes, now that its shape is known.
    static void *give(void *arrays, int32_t number, const weft_tensor *out) {
        Array &array = (*static_cast<std::vector<Array> *>(arrays))[static_cast<size_t>(number)];
        array = Array(out->dtype, Shape(out->shape, out->shape + out->ndim));
        return array.data();
    }
    std::vector<Array> failed() const {
        detail::check(error_);
        return {};
    }
    std::vector<Array> fail(int32_t status, const char *text) {
        detail::tell(error_, status, text);
        return failed();
    }
};

}  // namespace weft
