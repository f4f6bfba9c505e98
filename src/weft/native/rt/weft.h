/* Weft's C interface: loads saved models, describes them, and runs them. examples/c/run.c is a whole program.
 *
 *   if (weft_load("resnet18.weft", NULL, &model, &error) != WEFT_OK) ...   error.text says why not
 *   ctx = weft_acquire(model);
 *   weft_plan(ctx, in, out);       checks the inputs, writes the outputs' shapes; then out[i].data = room for them
 *   weft_run(ctx, in, out);        from and to the caller's buffers; each returns a weft_status
 *   weft_release(ctx); weft_model_free(model);
 *
 * Threads. A model never changes: any number of threads may describe it, and acquire and release contexts of it, at once. A
 * context belongs to one thread at a time. Models may be loaded and freed by any threads; a model is freed by one, once all its
 * contexts are released. No function keeps state elsewhere, but for the process's pool of threads and its sequence of
 * seeds, which all models share.
 *
 * Build every .c file beside this header as C99, with -pthread; with WEFT_FREESTANDING defined, for no operating system: no
 * threads, no files, and memory from weft_port_alloc and weft_port_free, which the program supplies. */
#ifndef WEFT_H
#define WEFT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Behind a member that generated code reads: it begins at a multiple of 8 bytes, and takes 8, on machines of smaller pointers, too. */
#if defined(__GNUC__)
#define WEFT_SLOT __attribute__((aligned(8)))
#else
#define WEFT_SLOT
#endif

enum { WEFT_ALIGN = 64 /* bytes: what weft_alloc aligns to */, WEFT_MAX_RANK = 64, WEFT_MAX_THREADS = 256 };
enum { WEFT_LATE = -2 /* a size that depends on the inputs' values, such as how many elements are not zero */ };

enum weft_dtype {
  WEFT_BOOL, WEFT_I8, WEFT_I16, WEFT_I32, WEFT_I64, WEFT_U8, WEFT_U16, WEFT_U32, WEFT_U64,
  WEFT_F16, WEFT_BF16, WEFT_F32, WEFT_F64, WEFT_HANDLE,
  /* a byte each, of which those of 4 and 2 bits use the low ones */
  WEFT_F8E4M3FN, WEFT_F8E4M3FNUZ, WEFT_F8E5M2, WEFT_F8E5M2FNUZ, WEFT_F8E8M0FNU, WEFT_F4E2M1FN,
  WEFT_INT4, WEFT_UINT4, WEFT_INT2, WEFT_UINT2
};

enum weft_status {
  WEFT_OK = 0,
  WEFT_FAILED_ASSERT = 1, /* the model's own check: a shape or a value that it can't take */
  WEFT_NO_MEMORY = 2,
  WEFT_BAD_IMAGE = 3,     /* the system does not let the code be mapped */
  WEFT_UNREADABLE = 4,    /* there is no such file, or it can't be read */
  WEFT_NOT_A_MODEL = 5,   /* the file is something else */
  WEFT_OTHER_VERSION = 6, /* saved by a Weft whose format or ABI is another */
  WEFT_DAMAGED = 7,       /* truncated or altered */
  WEFT_OTHER_MACHINE = 8, /* made for a processor that this is not */
  WEFT_BAD_INPUT = 9,     /* a call's tensor does not fit the model */
  WEFT_BUSY = 10,         /* another context, or another thread, uses the state */
  WEFT_SPOILT = 11        /* a call failed while it wrote the state: reset it, or go on with a copy from before */
};

typedef struct weft_error { /* what went wrong, in words; every function that takes one takes NULL too */
  int32_t status;
  char text[508];
} weft_error;

/* ---- loading ---- */

enum weft_flags {
  WEFT_COPY = 1,  /* copy the weights, into huge pages where there are any, instead of mapping the file */
  WEFT_TRUST = 2, /* do not compute the checksum of the weights; all else is always checked */
  WEFT_PARK = 4,  /* threads without work sleep at once, instead of looking out for more for a while: slower, and less busy */
  WEFT_FLUSH = 8, /* denormal numbers are taken for zero in calls of the model, whatever it was compiled for */
  WEFT_KEEP = 16  /* denormal numbers are kept, likewise */
};

typedef struct weft_options { /* all zero is the same as none */
  int32_t threads;            /* most threads in a call; 0: as many as there are processors. Results never depend on it. */
  int32_t flags;
} weft_options;

typedef struct weft_model weft_model;
typedef struct weft_state weft_state;

/* A saved model is a program: load only files that you would execute. What is checked below finds damage, not malice.
 *
 * Loads the file that `Model.save` or `weft compile` wrote. Its weights are mapped, so the file must not be written to while
 * the model lives; it may be deleted or replaced. Returns a weft_status; on failure *model is NULL. */
int32_t weft_load(const char *path, const weft_options *options, weft_model **model, weft_error *error);

/* Loads such a file's bytes. Weights that lie at a multiple of WEFT_ALIGN are used where they are, so the memory must stay as it
 * is while the model lives, unless WEFT_COPY is given. Where there is no operating system, code runs where it is too. */
int32_t weft_load_memory(const void *data, int64_t bytes, const weft_options *options, weft_model **model, weft_error *error);

/* Takes a model that is linked into the program, all of it where it is: the header that `weft compile -o FOLDER/` writes does so.
 * The part `weights` is NULL where they are in a file of their own, whose path is given then. */
typedef struct weft_linked {
  const void *header, *image, *weights;
} weft_linked;
int32_t weft_link(const weft_linked *parts, const char *weights, const weft_options *options, weft_model **model,
                  weft_error *error);

/* Frees a model, of which every context has been released. NULL is allowed. */
void weft_model_free(weft_model *model);

/* ---- describing ---- */

typedef struct weft_dim {
  int64_t size;     /* -1: known in a call only; WEFT_LATE: known only when the call has run */
  const char *name; /* of a size of -1 or WEFT_LATE, such as "batch", or a formula of names; else "" */
} weft_dim;

typedef struct weft_spec {
  const char *name;
  int32_t dtype; /* weft_dtype */
  int32_t ndim;
  const weft_dim *dims;
} weft_spec;

/* The model's inputs and outputs, in order; NULL for a number that there is not. What is returned lives as long as the model. */
int32_t weft_inputs(const weft_model *model);
int32_t weft_outputs(const weft_model *model);
const weft_spec *weft_input(const weft_model *model, int32_t number);
const weft_spec *weft_output(const weft_model *model, int32_t number);

/* A note of the model's maker, such as "target", "weft", "model", "memory"; NULL if there is none. By number: in order. */
const char *weft_note(const weft_model *model, const char *key);
int32_t weft_note_at(const weft_model *model, int32_t number, const char **key, const char **text); /* 0 past the end */

/* The bytes of a call's workspace, beside inputs, outputs and weights; -1 where that depends on the inputs' shapes. */
int64_t weft_arena_bytes(const weft_model *model);

const char *weft_dtype_name(int32_t dtype); /* such as "f32"; "?" for none */
int32_t weft_dtype_bytes(int32_t dtype);    /* 0 for none */

/* ---- running ---- */

typedef struct weft_tensor { /* contiguous, row-major, aligned to its elements */
  void *data WEFT_SLOT;
  int64_t *shape WEFT_SLOT;
  int32_t ndim WEFT_SLOT;
  int32_t dtype;
} weft_tensor;

/* Lets the threads of an OpenMP runtime of the process do the parallel loops of all models from here on, instead of Weft's own:
 * `GOMP_parallel` and `omp_get_thread_num` of GCC's, Clang's or Intel's. A program that computes with OpenMP, too, has the team of
 * one instead of two that are in each other's way. NULL goes back to Weft's own threads, and so does a child of fork. */
typedef void weft_openmp_parallel(void (*part)(void *), void *data, unsigned threads, unsigned flags);
void weft_use_openmp(weft_openmp_parallel *parallel, int (*thread_number)(void));

/* A string, of any bytes; UTF-8 where letters matter. The elements of a tensor of strings, of dtype WEFT_HANDLE, are addresses of
 * these: NULL is "". Those of inputs are the caller's, and read in weft_run alone. Those of outputs are the context's, until its next
 * weft_run or its release. */
typedef struct weft_text {
  const char *data;
  int64_t bytes;
} weft_text;

/* The bytes of a tensor's elements; -1 where there can't be so many. */
int64_t weft_tensor_bytes(const weft_tensor *tensor);

/* Borrows what one call at a time needs: its memory is kept from call to call. NULL when there is no memory. */
typedef struct weft_ctx weft_ctx;
weft_ctx *weft_acquire(weft_model *model);
void weft_release(weft_ctx *ctx);

/* Checks the inputs' dtypes, ranks and shapes against the model, and writes the outputs' shapes to out[i].shape, each with room
 * for out[i].ndim sizes; a late size is -1 there. A size may be 0 where all outputs are then empty. No data is looked at. Returns
 * a weft_status. */
int32_t weft_plan(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);

/* Runs the model as it was last planned: from in[i].data to out[i].data, the caller's buffers, which may not overlap. May be
 * repeated without planning while the shapes stay the same, and the model has no state. Returns a weft_status: WEFT_BAD_INPUT,
 * too, for data that is NULL, where there are elements, or at an address that is no multiple of its elements' size.
 *
 * An output with late sizes needs no data beforehand: the call writes its shape to out[i].shape, and where its elements are to
 * out[i].data. They are in memory of the context, until its next call or its release, or in that which weft_on_output names. */
int32_t weft_run(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);

/* Has `give` called, in calls of this context until it is released, for the memory of each output with late sizes, once the call
 * knows its shape; it returns at least weft_tensor_bytes(out) bytes, aligned to WEFT_ALIGN, or NULL when there are none. */
typedef void *(*weft_give)(void *state, int32_t number, const weft_tensor *out);
void weft_on_output(weft_ctx *ctx, weft_give give, void *state);

/* Begins the sequence of seeds anew from which each call of a model that draws random numbers, with no seed of its own, takes the
 * next: calls after it draw the same numbers as calls after another with the same seed. Where it is never called, the sequence
 * begins with the time; where there is no operating system, with 0. And the seed with which it goes on from here. */
void weft_set_random_seed(int64_t seed);
int64_t weft_random_seed(void);

/* Says in words why weft_plan or weft_run returned `status`; to be called before the next of them. */
void weft_explain(const weft_ctx *ctx, int32_t status, weft_error *error);

/* ---- state ---- */

/* What lives from one call to the next, such as a cache of keys and values: a model's states are not among its inputs and outputs,
 * and every conversation has a weft_state of its own. A state belongs to one thread at a time; any number of them may be in use at
 * once. It may not live longer than its model.
 *
 *   weft_state_new(model, NULL, 0, &state, &error);
 *   weft_use(ctx, state);          then weft_plan and weft_run as ever, any number of times
 *   weft_state_free(state);        after weft_release(ctx), or weft_use(ctx, NULL) */
typedef struct weft_size { /* a symbolic size by its name, such as "batch" */
  const char *name;
  int64_t size;
} weft_size;

/* The number of states, and what each is; one that grows has the most rows that it may have. NULL for a number that there is not. */
int32_t weft_states(const weft_model *model);
const weft_spec *weft_state_spec(const weft_model *model, int32_t number);

/* Makes a state of the values that the model gives, else of zeros, and without rows where it grows; `sizes` has the symbolic sizes of the states, if there are any. Returns a
 * weft_status, WEFT_BAD_INPUT where a size is missing; on failure *state is NULL. */
int32_t weft_state_new(weft_model *model, const weft_size *sizes, int32_t count, weft_state **state, weft_error *error);

/* Makes it as it was when it was new. A copy goes on by itself: a prompt is computed once for many conversations. Both return
 * WEFT_BUSY while a context has the state. */
int32_t weft_state_reset(weft_state *state);
int32_t weft_state_copy(weft_state *state, weft_state **copy);
void weft_state_free(weft_state *state); /* NULL is allowed */

/* Describes a state by number: its dtype and its shape, with the rows that there are by now; `data` is NULL, and the shape the
 * state's. Its elements are read and written as contiguous tensors; one that grows then has so many rows. */
int32_t weft_state_tensor(const weft_state *state, int32_t number, weft_tensor *tensor);
int32_t weft_state_read(weft_state *state, int32_t number, void *data);
int32_t weft_state_write(weft_state *state, int32_t number, const void *data, int64_t rows);

/* The dimension along which a state grows; -1 for one whose shape stays, and for a number that there is not. */
int32_t weft_state_axis(const weft_state *state, int32_t number);

/* Makes the calls of a context take and leave this state, until it is released or has another, or NULL. Returns WEFT_BUSY where
 * another context has it, WEFT_BAD_INPUT for another model's. */
int32_t weft_use(weft_ctx *ctx, weft_state *state);

/* Memory aligned to WEFT_ALIGN; large blocks to 2 MiB, in huge pages where the system has them. Not zeroed. NULL for none. */
void *weft_alloc(int64_t bytes);
void weft_free(void *block);
void *weft_port_alloc(int64_t bytes, int64_t align); /* the program's, where there is no operating system */
void weft_port_free(void *block);

#ifdef __cplusplus
}
#endif
#endif
