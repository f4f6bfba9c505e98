/* The ABI of generated code, and the parts that the runtime is made of. Programs that run models need weft.h alone.
 *
 * An image is one position-independent blob of code and read-only data, with no relocations and no undefined symbols.
 * Everything that generated code needs from outside it reaches through its `weft_ctx`. An image has two entries:
 *
 *   plan(ctx, in, out)   checks the inputs' shapes, writes the outputs' shapes into out[i].shape (the caller gives
 *                        room for out[i].ndim values; -1 is a late size, which only main knows) and the bytes of scratch
 *                        memory into ctx->arena_needed; -1 where the outputs are empty, and main is not to be called
 *   main(ctx, in, out)   computes; out[i].data is the caller's, and never part of the arena. It asks ctx->output for the
 *                        memory of an output with late sizes, once they are known, and does not look at that one's data
 */
#ifndef WEFT_ABI_H
#define WEFT_ABI_H

#include "weft.h"

#define WEFT_ABI 3    /* counts incompatible changes of what generated code sees */
#define WEFT_FORMAT 5 /* counts incompatible changes of saved files */
#define WEFT_LAUNCHES 1024 /* of weft_options: the caller launches the kernels of a model for a device, whose image is no code */

typedef int32_t (*weft_task)(weft_ctx *ctx, void *args, int64_t begin, int64_t end);
typedef int32_t (*weft_entry)(weft_ctx *ctx, const weft_tensor *in, weft_tensor *out);

typedef struct weft_strings weft_strings;

/* Where the data of a caller's tensor is: the space, 0 for the host's memory, and whether kernels may work there, or have to have
 * it elsewhere: it is not aligned, or an output that overlaps another tensor. */
typedef struct weft_place {
  int32_t space, is_direct;
} weft_place;

#define WEFT_MOST_STREAMS 4

/* Memory that a context keeps from call to call, and makes larger. */
typedef struct weft_kept {
  uint8_t *data;
  int64_t bytes;
} weft_kept;

/* One of the states of a model, which are its last inputs and outputs: the input's rank and dtype, the axis along which it grows (-1:
 * none), and whether a call writes to what it reads; where in the constants the value is that it begins with (-1: with zeros, or
 * without rows), and the rows of that. */
typedef struct weft_state_row {
  int32_t ndim, dtype, axis, in_place;
  int64_t initial, initial_rows;
} weft_state_row;

/* What one running call owns. Generated code reads it by offset, the same on machines of all sizes of pointers: nothing before
 * `model` may move (rt/layout.c). */
struct weft_ctx {
  /*   0 */ int32_t (*parallel_for)(weft_ctx *ctx, weft_task fn, void *args, int64_t n) WEFT_SLOT;
  /*   8 */ uint8_t *arena WEFT_SLOT;
  /*  16 */ int64_t arena_bytes WEFT_SLOT;
  /*  24 */ const uint8_t *constants WEFT_SLOT;
  /*  32 */ void *(*alloc)(weft_ctx *ctx, int64_t bytes) WEFT_SLOT; /* NULL when there is no memory */
  /*  40 */ void (*free)(weft_ctx *ctx, void *block) WEFT_SLOT;
  /*  48 */ int32_t threads WEFT_SLOT;
  /*  52 */ int32_t failed_assert; /* -1: none */
  /*  56 */ int64_t detail[4] WEFT_SLOT;
  /*  88 */ int64_t arena_needed WEFT_SLOT; /* written by plan; -1: main is not to be called */
  /*  96 */ int32_t outside WEFT_SLOT;      /* a kernel met an index outside of its limits: main looks, and clears */
  /* Memory for an output, whose shape is known now; NULL when there is none; any address where it is empty. */
  /* 104 */ void *(*output)(weft_ctx *ctx, int64_t number, const int64_t *shape) WEFT_SLOT;
  /* The kept memory of this number, which has at least so many bytes from now on; what was in it stays. NULL when there is none. */
  /* 112 */ void *(*keep)(weft_ctx *ctx, int64_t number, int64_t bytes) WEFT_SLOT;
  /* An operator that is no loop nest, such as those on strings; args: addresses and numbers. */
  /* 120 */ int32_t (*host)(weft_ctx *ctx, int32_t number, const int64_t *args) WEFT_SLOT;
  weft_model *model;                                       /* private from here on */
  weft_ctx *next;
  weft_tensor *out;                                        /* of the call that runs */
  weft_kept *kept;                                         /* of output n at 2n, of number n of `keep` at 2n + 1 */
  int64_t kept_count;
  weft_give give;                                          /* NULL: outputs of late sizes are in kept memory */
  void *give_state;
  int32_t planned;                                         /* weft_run may be called */
  int32_t flush, spin;                                     /* as the model says */
  weft_state *state;                                       /* of the calls to come; NULL for none */
  weft_strings *strings;                                   /* NULL until there are some */
  void *memo;                                              /* of launch/, one block; NULL for none */
  const weft_place *places;                                /* of all inputs, then all outputs, of the caller's; NULL: all are in
                                                              the host's memory */
  void *streams[WEFT_MOST_STREAMS];                        /* of the device's driver, on which others make and use these tensors */
  int32_t stream_count;
};

/* Prepares a context that belongs to no model, to call a bare kernel with. */
void weft_ctx_init(weft_ctx *ctx, const void *constants, int32_t threads);

/* Gives the context an arena of at least `bytes`: WEFT_OK or WEFT_NO_MEMORY; and takes it away. */
int32_t weft_ctx_reserve(weft_ctx *ctx, int64_t bytes);
void weft_ctx_free_arena(weft_ctx *ctx);

/* Both functions of the context for late sizes, and what gives back all the memory that they took. */
void *weft_ctx_output(weft_ctx *ctx, int64_t number, const int64_t *shape);
void *weft_ctx_keep(weft_ctx *ctx, int64_t number, int64_t bytes);
void weft_ctx_free_kept(weft_ctx *ctx);

/* The next of the process's seeds, and the host operator that writes it to the address that is its one argument: the only one
 * where there is no operating system. */
int64_t weft_fresh_seed(void);
enum { WEFT_FRESH_SEED = 8 };

/* The operators of hostops/, and what ends the strings of a call, and all of a context's. */
int32_t weft_host(weft_ctx *ctx, int32_t number, const int64_t *args);
#ifndef WEFT_FREESTANDING
void weft_strings_forget(weft_ctx *ctx);
void weft_strings_free(weft_ctx *ctx);
#endif

/* Runs fn over [0, n): in the calling thread alone, or by the process's thread pool too. How [0, n) is cut up is not
 * specified: fn must compute each index the same way whatever range it is given with. The first failure is returned.
 * Inside a task, and while another thread has the pool, weft_parallel_for runs in the calling thread alone. */
int32_t weft_serial_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n);
#ifdef WEFT_FREESTANDING
#define weft_parallel_for weft_serial_for
#else
int32_t weft_parallel_for(weft_ctx *ctx, weft_task fn, void *args, int64_t n);
#endif

/* Sets how this thread treats denormals, and returns its state before, which the other restores. */
uint64_t weft_denormals_begin(int32_t flush);
void weft_denormals_end(uint64_t before);

/* A number that shows, but for one chance in 2^64, any change of the data; the same on every machine. Not for secrets. That of
 * data in several parts begins with the number of all bytes; parts but the last are whole pieces of a mebibyte. */
uint64_t weft_checksum(const void *data, int64_t bytes);
uint64_t weft_checksum_more(uint64_t sum, const void *data, int64_t bytes);
#define WEFT_PIECE ((int64_t)1 << 20)

typedef struct weft_image {
  uint8_t *base;
  int64_t bytes;
} weft_image;

/* A model. One that was made of code in memory already has no description: its header is NULL, and its calls are not checked. */
struct weft_model {
  weft_entry plan, main;
  const uint8_t *constants;
  weft_ctx *idle;          /* contexts no call is using, the last used first: its arena is the likeliest to be in cache */
  int32_t threads, inputs, outputs, checks, features, notes;
  int32_t flush;           /* denormals are taken for zero in calls */
  int32_t spin;            /* threads wait for a while before they park */
  int32_t on_device;       /* its image is a host program and kernels of a device, not code */
  const struct weft_launch *launch; /* the host program, where plan and main replay one (launch/launch.h); else NULL */
  int64_t constant_bytes, arena_bytes, readonly, plan_at, main_at; /* entries: offsets in the image */
  const uint8_t *header, *tables; /* tables: the rows of checks, and what follows them */
  weft_image image;
  weft_spec *specs;        /* of the inputs, then of the outputs */
  weft_state_row *state_rows; /* of the last inputs and outputs */
  int32_t states, state_space;
  const struct weft_device *state_device; /* in whose memory, that of this space, states are; NULL: in the host's, space 0 */
  void *owned[2];          /* the header and the constants, where they are copies */
  weft_image maps[2];      /* the image and the constants, where they are mapped */
};

/* A model of code that is in memory already. The constants stay the caller's. NULL when there is no memory. */
weft_model *weft_model_new(weft_entry plan, weft_entry main, const void *constants, int32_t threads);

/* A state of a model with so many inputs and outputs beside it, whose whole shapes, with the capacities, follow one another in
 * `sizes`. It begins as the rows say. NULL when there is no memory. */
weft_state *weft_state_make(weft_model *model, int32_t inputs, int32_t outputs, const weft_state_row *rows, int32_t count,
                            const int64_t *sizes);

/* The number and the text of a check; a feature, by Linux's name. */
const char *weft_check_at(const weft_model *model, int32_t number, uint32_t *check);
const char *weft_feature_at(const weft_model *model, int32_t number);

/* The architecture that this was compiled for, such as "x86_64", as artifacts name it; "" for one that they don't. */
const char *weft_machine(void);

/* A processor, as it tells of itself: words of bits by which it names its features, and the registers that the system saves. All
 * zero where it can't be asked. */
typedef struct weft_processor {
  char vendor[16]; /* such as "GenuineIntel", "AuthenticAMD"; "" where there is none */
  int32_t family, model;
  uint32_t words[8];
  uint64_t states;
} weft_processor;
void weft_processor_read(weft_processor *processor);

/* Whether it has a feature, by Linux's name, and the system lets programs use it; 0 too for one that is not known here. */
int32_t weft_processor_has(const weft_processor *processor, const char *feature);

/* The features that are known here, by number; NULL past the end. */
const char *weft_processor_feature(int32_t number);

/* Processors that this process may use: its affinity mask, bounded by its control group's quota. */
int32_t weft_cpus(void);

/* The least quota of this process's control groups and of those above them, in whole processors (rounded up); 0 for none. Of the
 * system whose files are below `root`, which is "" for the one that this runs on. */
int32_t weft_quota_cpus(const char *root);

/* The number of threads to use when `requested` are asked for (0: as many as there are processors). */
int32_t weft_threads(int32_t requested);

/* A new image of so many bytes, to be filled and then sealed: [0, readonly) becomes executable, the rest readable only.
 * `readonly` is a multiple of the page size, or equal to `bytes` when all of it is code. */
int32_t weft_image_new(weft_image *image, int64_t bytes, int64_t readonly);
int32_t weft_image_seal(weft_image *image, int64_t readonly);
void weft_image_unmap(weft_image *image);

#endif
