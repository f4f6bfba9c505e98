/* What the files of the pretended driver share. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H
#define _GNU_SOURCE
#include "grid.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, NO_BINARY = 209, INVALID_CONTEXT = 201,
       INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719, CAPTURE_UNSUPPORTED = 900,
       CAPTURE_INVALIDATED = 901 };
enum { MOST_ARGUMENTS = 128 };

/* A kernel: the function that runs it, how many arguments of 8 bytes it takes, what it is allowed of a block's memory, and whether
 * it waits for the kernels before it. */
typedef struct { Kernel run; int arguments; unsigned shared; int waits; } Function;

/* One call at a time is in the driver, and is recorded; nothing is done where it is to fail. */
extern int fake_lock(void);
extern void fake_unlock(int *locked);
int fake_begin(const char *name, const char *format, ...);
int fake_has_context(void);
int fake_is_on_device(uint64_t at, size_t size);
int fake_is_pinned(const void *at, size_t size);

/* The memory of a block is undefined when a kernel begins, and no copy is under way. */
void fake_begin_kernel(void);

/* Of fake_streams.c: a call that may not be made by a thread that captures spoils the capture; all that was asked for is done. */
int fake_spoils_capture(void);
void fake_run_all(void);
void fake_reset_streams(void);
int fake_live_streams(void);
int fake_live_graphs(void);

#define BEGIN(...) \
  __attribute__((cleanup(fake_unlock))) int locked_ = fake_lock(); \
  do { int status_ = fake_begin(__func__, __VA_ARGS__); if (status_) return status_; } while (0)
#define IN_CONTEXT(...) BEGIN(__VA_ARGS__); if (!fake_has_context()) return INVALID_CONTEXT
#define NOT_CAPTURED(...) IN_CONTEXT(__VA_ARGS__); if (fake_spoils_capture()) return CAPTURE_UNSUPPORTED
#endif
