/* Brings artifacts into memory: from a file, from memory, or from the program itself. */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>

#include "internal.h"

#ifndef WEFT_FREESTANDING
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

/* Where the parts of an artifact come from: memory, or, where the pointer is NULL, an open file at an offset. */
typedef struct source {
  const uint8_t *data;
  int64_t at;
  int32_t file;
} source;

static int32_t unreadable(weft_error *error) {
  return weft_fail(error, WEFT_UNREADABLE, "the file cannot be read, or became shorter meanwhile", NULL, NULL);
}

/* Reads exactly so many bytes; 0 when it can't. */
static int take(const source *from, int64_t at, void *into, int64_t bytes) {
  if (from->data != NULL) {
    memcpy(into, from->data + at, (size_t)bytes);
    return 1;
  }
#ifndef WEFT_FREESTANDING
  while (bytes > 0) { /* the system may give less at a time than was asked for */
    ssize_t count = pread(from->file, into, (size_t)bytes, (off_t)(from->at + at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return 0;
    into = (uint8_t *)into + count;
    at += count;
    bytes -= count;
  }
#endif
  return bytes == 0;
}

typedef struct pieces { /* data, and the sum of each piece */
  const uint8_t *data;
  int64_t bytes;
  uint64_t *sums;
} pieces;

static int32_t sum_pieces(weft_ctx *ctx, void *args, int64_t begin, int64_t end) {
  const pieces *p = (const pieces *)args;
  (void)ctx;
  for (int64_t i = begin; i < end; i++) {
    int64_t at = i * WEFT_PIECE, bytes = p->bytes - at < WEFT_PIECE ? p->bytes - at : WEFT_PIECE;
    p->sums[i] = weft_checksum_piece(p->data + at, bytes);
  }
  return WEFT_OK;
}

/* Compares the checksum of the constants, which may be large, so that all threads take part. */
static int32_t verify(const weft_model *m, uint64_t wanted, const weft_options *options, weft_error *error) {
  int64_t count = (m->constant_bytes + WEFT_PIECE - 1) / WEFT_PIECE;
  pieces all = {m->constants, m->constant_bytes, (uint64_t *)weft_alloc(count * 8)};
  uint64_t sum = (uint64_t)m->constant_bytes;
  weft_ctx ctx;
  if (all.sums == NULL) return weft_no_memory(error);
  weft_ctx_init(&ctx, NULL, weft_threads(options->threads));
  (void)ctx.parallel_for(&ctx, sum_pieces, &all, count);
  for (int64_t i = 0; i < count; i++) sum = weft_checksum_add(sum, all.sums[i]);
  weft_free(all.sums);
  return sum == wanted ? WEFT_OK : weft_damaged(error);
}

/* Finds the constants where they are: in memory, or in a map of the file. NULL where they must be copied. */
static const uint8_t *in_place(weft_model *m, const source *from, int64_t bytes) {
  if (from->data != NULL) return (uintptr_t)from->data % WEFT_ALIGN == 0 ? from->data : NULL;
#ifndef WEFT_FREESTANDING
  if (bytes > 0 && from->at % sysconf(_SC_PAGESIZE) == 0) {
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, from->file, (off_t)from->at);
    if (map == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(map, (size_t)bytes, MADV_HUGEPAGE); /* advice: some systems keep files in huge pages */
#endif
    m->maps[1].base = (uint8_t *)map;
    m->maps[1].bytes = bytes;
    return m->maps[1].base;
  }
#endif
  (void)m, (void)bytes;
  return NULL;
}

static int32_t take_constants(weft_model *m, const prefix *p, const source *from, const weft_options *options,
                              weft_error *error) {
  m->constant_bytes = (int64_t)p->constant_bytes;
  m->constants = options->flags & WEFT_COPY ? NULL : in_place(m, from, m->constant_bytes);
  if (m->constants == NULL) {
    m->constants = (uint8_t *)(m->owned[1] = weft_alloc(m->constant_bytes));
    if (m->constants == NULL) return weft_no_memory(error);
    if (!take(from, 0, m->owned[1], m->constant_bytes)) return unreadable(error);
  }
  return options->flags & WEFT_TRUST ? WEFT_OK : verify(m, p->constants_sum, options, error);
}

/* Makes the code executable: a sealed copy, or where there is no system to ask, the code where it is. */
static int32_t take_image(weft_model *m, const prefix *p, const source *from, weft_error *error) {
  int64_t bytes = (int64_t)p->image_bytes;
#ifdef WEFT_FREESTANDING
  m->image.base = (uint8_t *)(uintptr_t)from->data;
  m->image.bytes = bytes;
  return weft_checksum(m->image.base, bytes) != p->image_sum ? weft_damaged(error) : WEFT_OK;
#else
  int32_t status = weft_image_new(&m->maps[0], bytes, m->readonly);
  if (status == WEFT_OK) {
    if (!take(from, 0, m->maps[0].base, bytes)) return unreadable(error);
    if (weft_checksum(m->maps[0].base, bytes) != p->image_sum) return weft_damaged(error);
    status = weft_image_seal(&m->maps[0], m->readonly);
  }
  m->image = m->maps[0];
  if (status == WEFT_NO_MEMORY) return weft_no_memory(error);
  return status == WEFT_OK ? status : weft_fail(error, status, "the system does not let the code be mapped", NULL, NULL);
#endif
}

static int32_t check_size(const prefix *p, int64_t bytes, weft_error *error) {
  if (p->size == (uint64_t)bytes) return WEFT_OK;
  return weft_fail(error, WEFT_DAMAGED, (uint64_t)bytes < p->size ? "the file is truncated: it has {0} of {1} bytes"
                                                                  : "the file has grown: it has {0} of {1} bytes",
                   NULL, (int64_t[]){bytes, (int64_t)p->size});
}

static source part(const source *whole, uint64_t at) {
  source from = *whole;
  if (from.data != NULL) from.data += at;
  from.at += (int64_t)at;
  return from;
}

/* Loads all of an artifact, `bytes` long, from one source. */
static int32_t take_all(weft_model *m, const source *whole, int64_t bytes, const weft_options *options, weft_error *error) {
  uint8_t first[PREFIX_BYTES];
  const uint8_t *header = whole->data;
  source image, constants;
  prefix p;
  int32_t status;
  if (bytes < PREFIX_BYTES) return weft_fail(error, WEFT_NOT_A_MODEL, "the file is not a model saved by Weft", NULL, NULL);
  if (!take(whole, 0, first, PREFIX_BYTES)) return unreadable(error);
  if ((status = weft_prefix_read(&p, first, error)) != WEFT_OK) return status;
  if ((status = check_size(&p, bytes, error)) != WEFT_OK) return status;
  if (header == NULL || options->flags & WEFT_COPY) {
    m->owned[0] = weft_alloc((int64_t)p.image_at);
    header = (const uint8_t *)m->owned[0];
    if (header == NULL) return weft_no_memory(error);
    if (!take(whole, 0, m->owned[0], (int64_t)p.image_at)) return unreadable(error);
  }
  image = part(whole, p.image_at);
  constants = part(whole, p.constants_at);
  if ((status = weft_header_read(m, &p, header, options->flags, error)) != WEFT_OK) return status;
  if ((status = take_image(m, &p, &image, error)) != WEFT_OK) return status;
  return take_constants(m, &p, &constants, options, error);
}

/* The code at an offset. ISO C has no cast from data to functions; POSIX and every machine with one memory do. */
static weft_entry entry_at(const weft_model *m, int64_t offset) {
  union {
    const uint8_t *data;
    weft_entry code;
  } both;
  both.data = m->image.base + offset;
  return both.code;
}

static int32_t begin(weft_model **model, const weft_options **options, weft_error *error) {
  static const weft_options defaults;
  if (*options == NULL) *options = &defaults;
  *model = weft_model_new(NULL, NULL, NULL, (*options)->threads);
  return *model == NULL ? weft_no_memory(error) : weft_fail(error, WEFT_OK, "", NULL, NULL);
}

/* Gives the model to the caller if it was loaded, else lets go of it. */
static int32_t finish(int32_t status, const weft_options *options, weft_model **model) {
  weft_model *m = *model;
  if (status == WEFT_OK) {
    m->spin = (options->flags & WEFT_PARK) == 0;
    m->flush = options->flags & WEFT_FLUSH ? 1 : options->flags & WEFT_KEEP ? 0 : m->flush;
    m->plan = m->on_device ? NULL : entry_at(m, m->plan_at);
    m->main = m->on_device ? NULL : entry_at(m, m->main_at);
  } else {
    weft_model_free(m);
    *model = NULL;
  }
  return status;
}

int32_t weft_load_memory(const void *data, int64_t bytes, const weft_options *options, weft_model **model, weft_error *error) {
  source whole = {(const uint8_t *)data, 0, -1};
  int32_t status = begin(model, &options, error);
  if (data == NULL) bytes = 0; /* no model either */
  return status != WEFT_OK ? status : finish(take_all(*model, &whole, bytes, options, error), options, model);
}

#ifndef WEFT_FREESTANDING

/* Opens a file as a source, of so many bytes; -1 when it can't. */
static int64_t open_file(const char *path, source *from, weft_error *error) {
  static const source none;
  struct stat found;
  *from = none;
  if (path == NULL) return (void)weft_fail(error, WEFT_UNREADABLE, "no path was given: it is NULL", NULL, NULL), -1;
  from->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for, but refused */
  if (from->file >= 0 && fstat(from->file, &found) == 0 && S_ISREG(found.st_mode)) return (int64_t)found.st_size;
  if (from->file >= 0) (void)weft_fail(error, WEFT_UNREADABLE, "it is not a plain file", NULL, NULL);
  else if (errno == ENOENT) (void)weft_fail(error, WEFT_UNREADABLE, "there is no such file", NULL, NULL);
  else (void)weft_fail(error, WEFT_UNREADABLE, "the file cannot be opened: the system's error {0}", NULL, (int64_t[]){errno});
  if (from->file >= 0) (void)close(from->file);
  return -1;
}

int32_t weft_load(const char *path, const weft_options *options, weft_model **model, weft_error *error) {
  source whole;
  int64_t bytes;
  int32_t status = begin(model, &options, error);
  if (status != WEFT_OK) return status;
  bytes = open_file(path, &whole, error);
  if (bytes < 0) return finish(WEFT_UNREADABLE, options, model);
  status = take_all(*model, &whole, bytes, options, error);
  (void)close(whole.file);
  return finish(status, options, model);
}

#endif

/* Takes the weights of a linked model from a file of their own. */
static int32_t take_file(weft_model *m, const prefix *p, const char *path, const weft_options *options, weft_error *error) {
#ifndef WEFT_FREESTANDING
  source from;
  int64_t bytes = open_file(path, &from, error);
  int32_t status = WEFT_DAMAGED;
  if (bytes < 0) return WEFT_UNREADABLE;
  if ((uint64_t)bytes == p->constant_bytes) status = take_constants(m, p, &from, options, error);
  else (void)weft_fail(error, status, "these are another model's weights: the file has another size", NULL, NULL);
  (void)close(from.file);
  return status;
#else
  (void)m, (void)p, (void)path, (void)options;
  return weft_fail(error, WEFT_UNREADABLE, "the weights are in a file, and there are no files here", NULL, NULL);
#endif
}

int32_t weft_link(const weft_linked *parts, const char *weights, const weft_options *options, weft_model **model,
                  weft_error *error) {
  prefix p;
  int32_t status = begin(model, &options, error);
  if (status != WEFT_OK) return status;
  status = weft_prefix_read(&p, (const uint8_t *)parts->header, error);
  if (status == WEFT_OK) status = weft_header_read(*model, &p, (const uint8_t *)parts->header, 0, error);
  (*model)->image.base = (uint8_t *)(uintptr_t)parts->image; /* the cast drops const: code is only ever run */
  (*model)->constants = (const uint8_t *)parts->weights;
  (*model)->constant_bytes = status == WEFT_OK ? (int64_t)p.constant_bytes : 0;
  if (status == WEFT_OK && parts->weights == NULL) status = take_file(*model, &p, weights, options, error);
  return finish(status, options, model);
}
