// Arrays in the memory of a device.
#pragma once

#include "binding.h"
extern "C" {
#include "weft_device.h"
}

// The device of a model: the functions for it outside of calls, and by which kind and number other libraries know it, 0 where none
// has tensors in its memory. They are asked to have tensors ready on `stream`. `table` keeps it alive.
struct DeviceSide {
    nb::object table;
    weft_device calls;
    int32_t kind, number;
    uint64_t stream;

    explicit DeviceSide(nb::handle table);
    bool is_shared() const { return kind != 0; }

    // Whether it has the memory of the other.
    bool is_of(const DeviceSide &other) const {
        return table.is(other.table) || (is_shared() && kind == other.kind && number == other.number);
    }
};

// A dense array, which frees its memory.
class DeviceArray {
  public:
    DeviceArray(std::shared_ptr<const DeviceSide> side, std::vector<int64_t> shape, int32_t code);
    DeviceArray(const DeviceArray &) = delete;
    ~DeviceArray();

    nb::tuple sizes() const;
    nb::object numpy() const;
    void write(nb::handle data) const;
    nb::object exported(nb::object self, bool has_version);
    nb::dict cuda_interface();

    const std::shared_ptr<const DeviceSide> side;
    const std::vector<int64_t> shape;
    const int32_t code;
    const int64_t bytes;
    uint8_t *const data;

  private:
    bool is_exported_ = false;  // somebody may use the memory on a stream of his own, and not be done
};

// Raises what the device tells of the call that failed.
[[noreturn]] void raise_device(const DeviceSide &side);
