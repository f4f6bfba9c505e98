/* The ABI between generated code, the runtime and whoever calls a compiled model. */
#ifndef WEFT_H
#define WEFT_H
#define WEFT_ABI 1
#endif
