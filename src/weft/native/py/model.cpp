// Compiled models: arrays in, arrays out, with as little as possible in between.
#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "tensors.h"
extern "C" {
#include "launch.h"
}

// A context borrowed from a model for one call.
struct Borrowed {
    weft_ctx *ctx;

    explicit Borrowed(weft_model *model) : ctx(weft_acquire(model)) {
        if (ctx == nullptr) throw std::bad_alloc();
    }
    Borrowed(const Borrowed &) = delete;
    ~Borrowed() { weft_release(ctx); }
};

// The axis along which a state grows, or -1, whether a call writes to what it reads, and where in the constants the value is that it
// begins with, or -1, with the rows of that.
using StateSpec = std::tuple<int32_t, bool, int64_t, int64_t>;

class Model {
  public:
    Model(nb::object image, int64_t plan, int64_t main, nb::object constants, std::vector<Spec> inputs,
          std::vector<Spec> outputs, int32_t threads, bool flush, bool spin)
        : Model(std::move(image), std::move(constants), std::move(inputs), std::move(outputs)) {
        const Image &mapped = nb::cast<const Image &>(image_);
        make(mapped.entry<weft_entry>(plan), mapped.entry<weft_entry>(main), threads, flush, spin);
    }

    // A model whose host program is replayed: its bytes, the image and the offset of each callee (no image for those that a device
    // runs), and the devices, objects with the `address` of a table, which live as long as the model and its states.
    Model(nb::bytes program, const std::vector<std::pair<nb::object, int64_t>> &callees, nb::object constants,
          std::vector<Spec> inputs, std::vector<Spec> outputs, int32_t threads, bool flush, bool spin,
          const nb::sequence &devices)
        : Model(program, std::move(constants), std::move(inputs), std::move(outputs)) {
        for (const auto &[image, offset] : callees) {
            modules_.append(image);
            entries_.push_back(image.is_none() ? nullptr : nb::cast<const Image &>(image).entry<weft_kernel>(offset));
        }
        for (nb::handle device : devices) {
            modules_.append(device);
            if (side_ == nullptr) side_ = std::make_shared<const DeviceSide>(device);
            devices_.push_back(*reinterpret_cast<const weft_device *>(nb::cast<uint64_t>(device.attr("address"))));
        }
        launch_.entries = entries_.data();
        launch_.devices = devices_.data();
        launch_.device_count = static_cast<int32_t>(devices_.size());
        weft_error error;
        int32_t status = weft_launch_open(&launch_, program.data(), static_cast<int64_t>(program.size()), &error);
        if (status == WEFT_NO_MEMORY) throw std::bad_alloc();
        if (status != WEFT_OK) throw nb::value_error(error.text);
        bool fits = launch_.inputs == inputs_.size() && launch_.outputs == outputs_.size();
        if (!fits || launch_.callee_count != entries_.size())
            throw nb::value_error("the host program has other inputs, outputs or callees");
        for (size_t i = 0; i < entries_.size(); i++)
            if (launch_.callees[i].space == 0 && entries_[i] == nullptr) throw nb::value_error("a callee has no code");
        make(&weft_launch_plan, &weft_launch_main, threads, flush, spin);
        model_->launch = &launch_;
    }
    Model(const Model &) = delete;
    ~Model() {
        weft_model_free(model_);
        weft_launch_close(&launch_);
    }

    // Makes the last inputs and outputs the model's states.
    void set_states(const std::vector<StateSpec> &states) {
        if (states.size() > std::min(inputs_.size(), outputs_.size())) throw nb::value_error("there are more states than tensors");
        for (size_t k = 0; k < states.size(); k++) {
            const Spec &spec = inputs_[inputs_.size() - states.size() + k];
            const auto &[axis, in_place, initial, rows] = states[k];
            rows_.push_back({spec.second, spec.first, axis, in_place ? 1 : 0, initial, rows});
            if (axis >= spec.second) throw nb::value_error("a state grows along an axis that it has not");
        }
        for (size_t k = 0; k < states.size(); k++) {
            output_dims_ -= static_cast<size_t>(outputs_.back().second);
            inputs_.pop_back(), outputs_.pop_back(), dtypes_.pop_back();
        }
        model_->states = static_cast<int32_t>(rows_.size());
        if (!devices_.empty()) model_->state_device = devices_.data(), model_->state_space = 1;
    }

    weft_state *new_state(const std::vector<int64_t> &sizes) const {
        size_t dims = 0;
        for (const weft_state_row &row : rows_) dims += static_cast<size_t>(row.ndim);
        if (dims != sizes.size()) throw nb::value_error("the sizes are not those of the states");
        weft_state *made = weft_state_make(model_, static_cast<int32_t>(inputs_.size()), static_cast<int32_t>(outputs_.size()),
                                           rows_.data(), static_cast<int32_t>(rows_.size()), sizes.data());
        if (made == nullptr) throw std::bad_alloc();
        return made;
    }

    nb::list run(nb::sequence inputs) { return call(inputs, nb::none(), {}); }

    // Does the same with tensors of a library, for inputs and outputs; no output's size may be known only when the call has run.
    nb::list run_in(nb::sequence inputs, const Exchange &library) { return call(inputs, nb::none(), {nullptr, nullptr, &library}); }

    // Does as run_into, or as run_with; outputs that are not given stay in the device's memory.
    nb::list run_on_device(nb::sequence inputs, nb::handle outputs, nb::handle stop, State *state) {
        if (side_ == nullptr) throw nb::type_error("no device runs the model");
        return run_stoppable(inputs, outputs, stop, state == nullptr ? nullptr : state->state, true);
    }

    DeviceArray *new_array(std::vector<int64_t> shape, int32_t code) const {
        if (side_ == nullptr) throw nb::type_error("no device runs the model");
        return new DeviceArray(side_, std::move(shape), code);
    }

    // Does as run_into, with a state.
    nb::list run_with(nb::sequence inputs, State &state, nb::handle outputs, nb::handle stop) {
        return run_stoppable(inputs, outputs, stop, state.state);
    }

    // Outputs that are given are written where they are if they are aligned, and overlap nothing; else by way of a copy.
    nb::list run_into(nb::sequence inputs, nb::handle outputs, nb::handle stop) {
        return run_stoppable(inputs, outputs, stop, nullptr);
    }

  private:
    Model(nb::object image, nb::object constants, std::vector<Spec> inputs, std::vector<Spec> outputs)
        : image_(std::move(image)), constants_(std::move(constants)), inputs_(std::move(inputs)),
          outputs_(std::move(outputs)) {
        for (const Spec &spec : inputs_) (void)numpy_dtype(spec.first);
        for (const Spec &spec : outputs_) {
            dtypes_.push_back(numpy_dtype(spec.first));
            output_dims_ += static_cast<size_t>(spec.second);
        }
    }

    void make(weft_entry plan, weft_entry main, int32_t threads, bool flush, bool spin) {
        const Block &block = nb::cast<const Block &>(constants_);
        model_ = weft_model_new(plan, main, block.data, threads);
        if (model_ == nullptr) throw std::bad_alloc();
        model_->constant_bytes = block.bytes;
        model_->flush = flush;
        model_->spin = spin;
    }

    nb::object image_, constants_;
    nb::list modules_;
    std::vector<weft_kernel> entries_;
    std::vector<weft_device> devices_;
    std::shared_ptr<const DeviceSide> side_;  // of the first of them
    weft_launch launch_{};
    std::vector<Spec> inputs_, outputs_;  // beside the states
    std::vector<weft_state_row> rows_;
    std::vector<nb::object> dtypes_;  // of the outputs
    size_t output_dims_ = 0;
    weft_model *model_ = nullptr;
    int32_t processors_ = weft_cpus();

    // An output of the caller's, and what has to be copied there after the run.
    struct Given {
        Pinned pinned;
        const void *made;  // nullptr: the model writes into the caller's memory itself
    };

    // How a call is run, beside its tensors.
    struct How {
        const uint8_t *flag = nullptr;
        weft_state *state = nullptr;
        const Exchange *library = nullptr;
        bool is_on_device = false;
    };

    nb::list call(nb::sequence inputs, nb::handle outputs, const How &how) {
        Running::begin();
        Taking taking(side_.get(), how.library);
        std::vector<Input> taken = take_inputs(inputs, taking);
        std::vector<weft_tensor> in, out;
        std::vector<int64_t> shapes(output_dims_);
        in.reserve(inputs_.size());
        for (size_t i = 0; i < inputs_.size(); i++)
            in.push_back({const_cast<void *>(taken[i].data), const_cast<int64_t *>(taken[i].shape), inputs_[i].second,
                          inputs_[i].first});
        out.reserve(outputs_.size());
        int64_t *shape = shapes.data();
        for (const Spec &spec : outputs_) {
            out.push_back({nullptr, shape, spec.second, spec.first});
            shape += spec.second;
        }

        Borrowed borrowed(model_);
        int32_t status = how.state == nullptr ? WEFT_OK : weft_use(borrowed.ctx, how.state);
        if (status == WEFT_OK) status = weft_plan(borrowed.ctx, in.data(), out.data());
        if (status != WEFT_OK) raise_failed(status, "plan", *borrowed.ctx);
        nb::list arrays;
        std::vector<Block *> late(std::any_of(shapes.begin(), shapes.end(), is_late) ? out.size() : 0);
        std::vector<Given> given;
        std::vector<nb::object> kept;
        std::vector<weft_place> places;
        if (side_ != nullptr) {
            for (const Input &input : taken) places.push_back(input.place);
            places.resize(in.size() + out.size(), weft_place{0, 1});
        }
        weft_place *output_places = places.empty() ? nullptr : places.data() + in.size();
        if (outputs.is_none()) {
            for (size_t i = 0; i < out.size(); i++) arrays.append(new_output(i, out[i], how, output_places));
        } else {
            take_outputs(nb::borrow<nb::sequence>(outputs), taken, out, arrays, given, kept, how, taking, output_places);
        }
        if (!late.empty()) weft_on_output(borrowed.ctx, &give, &late);
        if (std::any_of(places.begin(), places.end(), [](weft_place p) { return p.space != 0; })) {
            borrowed.ctx->places = places.data();
            borrowed.ctx->stream_count = taking.streams(borrowed.ctx->streams);
        }
        {
            Running running(borrowed.ctx, processors_, how.flag);
            nb::gil_scoped_release release;
            status = how.flag != nullptr && running.asked_to_stop() ? STOPPED : weft_run(borrowed.ctx, in.data(), out.data());
            for (const Given &g : given)
                if (status == WEFT_OK && g.made != nullptr)
                    std::memcpy(g.pinned.view.buf, g.made, static_cast<size_t>(g.pinned.view.len));
        }
        if (status != WEFT_OK) {
            for (Block *block : late) delete block;
            if (PyErr_Occurred() != nullptr) throw nb::python_error();
            raise_failed(status, "main", *borrowed.ctx);
        }
        for (size_t i = 0; i < late.size(); i++)
            if (late[i] != nullptr)
                arrays[i] = numpy_array(shape_of(out[i]), dtypes_[i], nb::cast(late[i], nb::rv_policy::take_ownership));
        for (size_t i = 0; i < out.size(); i++)
            if (outputs_[i].first == WEFT_HANDLE) arrays[i] = give_texts(out[i], shape_of(out[i]));
        return arrays;
    }

    nb::list run_stoppable(nb::sequence inputs, nb::handle outputs, nb::handle stop, weft_state *state, bool is_on_device = false) {
        if (stop.is_none()) return call(inputs, outputs, {nullptr, state, nullptr, is_on_device});
        Pinned flag(stop, PyBUF_SIMPLE);
        if (flag.view.len < 1) throw nb::value_error("a flag that stops a call has one byte");
        return call(inputs, outputs, {static_cast<const uint8_t *>(flag.view.buf), state, nullptr, is_on_device});
    }

    // A new array for an output, where the caller wants it.
    nb::object new_output(size_t number, weft_tensor &made, const How &how, weft_place *places) const {
        if (how.library != nullptr) return how.library->tensor(made, block_for(made));
        if (!how.is_on_device || std::any_of(made.shape, made.shape + made.ndim, is_late)) return allocate(made, dtypes_[number]);
        auto *array = new DeviceArray(side_, std::vector<int64_t>(made.shape, made.shape + made.ndim), made.dtype);
        nb::object kept = nb::cast(array, nb::rv_policy::take_ownership);
        made.data = array->data;
        places[number] = {1, 1};
        return kept;
    }

    static bool is_late(int64_t size) { return size == -1; }

    // The memory of an output with late sizes; called without the interpreter lock.
    static void *give(void *blocks, int32_t number, const weft_tensor *out) {
        Block *&block = (*static_cast<std::vector<Block *> *>(blocks))[static_cast<size_t>(number)];
        delete block;
        block = new (std::nothrow) Block(nullptr, weft_tensor_bytes(out), nb::object());
        if (block == nullptr) return nullptr;
        block->data = weft_alloc(block->bytes);
        return block->data;
    }

    // Sets the data of each output: the caller's memory where that will do, new memory elsewhere.
    void take_outputs(nb::sequence outputs, const std::vector<Input> &inputs, std::vector<weft_tensor> &out,
                      nb::list &arrays, std::vector<Given> &given, std::vector<nb::object> &kept, const How &how,
                      Taking &taking, weft_place *places) const {
        std::vector<Input> there;  // outputs in the device's memory
        if (nb::len(outputs) != out.size()) throw nb::type_error("the number of outputs is not the model's");
        given.reserve(out.size());
        for (size_t i = 0; i < out.size(); i++) {
            nb::object output = outputs[i];
            if (output.is_none() || std::any_of(out[i].shape, out[i].shape + out[i].ndim, is_late)) {
                arrays.append(new_output(i, out[i], how, places));
                continue;
            }
            if (places != nullptr && taking.is_on_device(output)) {
                there.push_back(taking.output(output, out[i]));
                Input &own = there.back();
                for (const Input &other : inputs) own.place.is_direct &= !own.overlaps(other);
                for (size_t k = 0; k + 1 < there.size(); k++) own.place.is_direct &= !own.overlaps(there[k]);
                out[i].data = const_cast<void *>(own.data);
                places[i] = own.place;
                arrays.append(output);
                continue;
            }
            Pinned pinned(output, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE);
            const Py_buffer &view = pinned.view;
            if (!fits(view, outputs_[i]) || !std::equal(out[i].shape, out[i].shape + out[i].ndim, view.shape))
                throw nb::type_error("a given output's dtype or shape is not that of the model's output");
            bool direct = reinterpret_cast<uintptr_t>(view.buf) % WEFT_ALIGN == 0;
            for (const Input &other : inputs) direct = direct && (other.place.space != 0 || !overlap(view, other.data, other.bytes));
            for (const Given &other : given)
                direct = direct && !overlap(view, other.pinned.view.buf, other.pinned.view.len);
            if (direct) {
                out[i].data = view.buf;
            } else {
                kept.push_back(allocate(out[i], dtypes_[i]));
            }
            arrays.append(output);
            given.push_back({std::move(pinned), direct ? nullptr : out[i].data});
        }
    }

    static bool overlap(const Py_buffer &a, const void *data, int64_t bytes) {
        const char *x = static_cast<const char *>(a.buf), *y = static_cast<const char *>(data);
        return x < y + bytes && y < x + a.len;
    }

    std::vector<Input> take_inputs(nb::sequence inputs, Taking &taking) const {
        if (nb::len(inputs) != inputs_.size()) throw nb::type_error("the number of inputs is not the model's");
        std::vector<Input> taken;
        taken.reserve(inputs_.size());
        for (nb::handle input : inputs) taken.push_back(taking.input(input, inputs_[taken.size()]));
        return taken;
    }

    static nb::object shape_of(const weft_tensor &tensor) {
        nb::object shape = nb::steal(PyTuple_New(tensor.ndim));
        for (int32_t i = 0; i < tensor.ndim; i++) PyTuple_SET_ITEM(shape.ptr(), i, PyLong_FromLongLong(tensor.shape[i]));
        return shape;
    }

    // A new array for an output; None for one with late sizes.
    static nb::object allocate(weft_tensor &tensor, nb::handle dtype) {
        if (std::any_of(tensor.shape, tensor.shape + tensor.ndim, is_late)) return nb::none();
        nb::object shape = shape_of(tensor);
        return numpy_array(shape, dtype, nb::cast(block_for(tensor), nb::rv_policy::take_ownership));
    }

    // New memory for an output.
    static Block *block_for(weft_tensor &tensor) {
        int64_t bytes = weft_dtype_bytes(tensor.dtype);
        for (int32_t i = 0; i < tensor.ndim; i++)
            if (tensor.shape[i] < 0 || __builtin_mul_overflow(bytes, tensor.shape[i], &bytes))
                throw nb::value_error("an output's planned shape is impossible");
        Block *block = new Block(bytes);
        tensor.data = block->data;
        return block;
    }
};

void bind_model(nb::module_ &m) {
    nb::class_<Model>(m, "Model", "A compiled model; may be run from several threads at once.")
        .def("__init__",
             [](Model *self, nb::object image, int64_t plan, int64_t main, nb::object constants,
                std::vector<Spec> inputs, std::vector<Spec> outputs, int32_t threads, bool flush, bool spin) {
                 new (self) Model(mapped(image), plan, main, pack(constants), std::move(inputs),
                                  std::move(outputs), threads, flush, spin);
             },
             nb::arg("image"), nb::arg("plan_offset"), nb::arg("main_offset"), nb::arg("constants"),
             nb::arg("input_specs"), nb::arg("output_specs"), nb::arg("threads") = 0,
             nb::arg("flush") = false, nb::arg("spin") = true)
        .def("__init__",
             [](Model *self, nb::bytes program, const std::vector<std::pair<nb::object, int64_t>> &callees,
                nb::object constants, std::vector<Spec> inputs, std::vector<Spec> outputs, int32_t threads, bool flush,
                bool spin, const nb::sequence &devices) {
                 new (self) Model(program, callees, pack(constants), std::move(inputs), std::move(outputs), threads,
                                  flush, spin, devices);
             },
             nb::arg("program"), nb::arg("callees"), nb::arg("constants"), nb::arg("input_specs"),
             nb::arg("output_specs"), nb::kw_only(), nb::arg("threads") = 0, nb::arg("flush") = false,
             nb::arg("spin") = true, nb::arg("devices") = nb::make_tuple())
        .def("new_state", [](nb::object self, const std::vector<int64_t> &sizes) {
                 return new State(self, nb::cast<const Model &>(self).new_state(sizes));
             }, nb::arg("sizes"), nb::rv_policy::take_ownership)
        .def("set_states", &Model::set_states, nb::arg("states"))
        .def("run_with", &Model::run_with, nb::arg("inputs"), nb::arg("state"), nb::arg("outputs").none(),
             nb::arg("stop").none())
        .def("run_on_device", &Model::run_on_device, nb::arg("inputs"), nb::arg("outputs").none(), nb::arg("stop").none(),
             nb::arg("state").none())
        .def("new_array", &Model::new_array, nb::arg("shape"), nb::arg("dtype"), nb::rv_policy::take_ownership)
        .def("run", &Model::run, nb::arg("inputs"))
        .def("run_in", &Model::run_in, nb::arg("inputs"), nb::arg("library"))
        .def("run_into", &Model::run_into, nb::arg("inputs"), nb::arg("outputs").none(), nb::arg("stop").none());
}
