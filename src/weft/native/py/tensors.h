// What a call reads and writes: arrays of the host's memory, and of a device's.
#pragma once

#include "device_array.h"

using Spec = std::pair<int32_t, int32_t>;  // dtype code, number of dimensions

// A tensor while a call uses it: a buffer, what another library has exported through DLPack, or an object that has it.
struct Input {
    std::optional<Pinned> pinned;
    nb::ndarray<nb::ro> exported;
    const void *data;
    const int64_t *shape;
    int64_t bytes;
    std::shared_ptr<Texts> texts{};
    weft_place place{0, 1};
    nb::object held{};

    bool overlaps(const Input &other) const;
};

// Takes the tensors of one call, of the device that runs the model, if one does, and of a library, if it is told.
class Taking {
  public:
    Taking(const DeviceSide *side, const Exchange *library) : side_(side), library_(library) {}

    // Raises TypeError, ValueError or BufferError for what the model does not take as it is.
    Input input(nb::handle given, const Spec &spec);

    // Whether an array is in the memory of some device.
    bool is_on_device(nb::handle given) const;

    // An array of the device's memory that an output is written to.
    Input output(nb::handle given, const weft_tensor &wanted);

    // Puts the streams of others, which the call goes on after, into the array; returns how many there are.
    int32_t streams(void **streams) const;

  private:
    std::optional<Input> on_device(nb::handle given, const Spec &spec);
    Input exported(nb::handle given, const Spec &spec);
    void follow(void *stream);

    const DeviceSide *side_;
    const Exchange *library_;
    std::vector<void *> streams_;
};

// Whether a buffer has the elements of a tensor of this type and rank.
bool fits(const Py_buffer &view, const Spec &spec);
