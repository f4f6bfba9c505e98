// What libraries exchange tensors by (DLPack 1.3).
#pragma once

#include "binding.h"

struct Version {
    uint32_t major, minor;
};

// DLManagedTensorVersioned
struct Managed {
    Version version;
    void *context;
    void (*deleter)(Managed *);
    uint64_t flags;
    nb::dlpack::dltensor tensor;
};

// DLPackExchangeAPI
struct ExchangeTable {
    Version version;
    const void *older;
    void *allocate, *managed_of;
    int (*object_of)(Managed *, void **);
    int (*view_of)(void *, nb::dlpack::dltensor *);
    int (*stream_of)(int32_t device, int32_t number, void **stream);
};

// The functions of the type of an object; NULL for none, or of another version.
const ExchangeTable *exchange_table(nb::handle type);

// A dense tensor of ours for another library, which keeps the owner alive until it calls the deleter.
Managed *managed_tensor(void *data, nb::dlpack::device device, const int64_t *shape, int32_t ndim, int32_t code, nb::object owner);

// A capsule of it, as `__dlpack__` returns one; without a version as libraries take it that know none.
nb::object dlpack_capsule(Managed *managed, bool has_version);
