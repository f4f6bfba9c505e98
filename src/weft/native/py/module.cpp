// The Python binding of the native runtime.
#include <nanobind/nanobind.h>

extern "C" {
#include "weft.h"
}

NB_MODULE(_rt, m) { m.attr("ABI") = WEFT_ABI; }
