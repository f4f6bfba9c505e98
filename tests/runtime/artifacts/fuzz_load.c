/* Loads random mutations of an artifact: fuzz FILE COUNT. Prints how many were loaded and how many were refused. Each is in a block
 * of exactly its size, so that a sanitizer sees every byte too far; whatever is loaded is read through to its last text. What was
 * changed in a whole one is put back, rather than all of it copied again. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_abi.h"

static uint64_t state = 0x2545F4914F6CDD1D;

static uint64_t draw(uint64_t below) { /* xorshift64* (Marsaglia; Vigna) */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * UINT64_C(0x2545F4914F6CDD1D) % below;
}

static uint64_t number_at(const uint8_t *at) {
  uint64_t number;
  memcpy(&number, at, 8);
  return number;
}

/* A number that is likely to lie at some border. */
static uint64_t border(uint64_t bytes) {
  static const uint64_t some[] = {0, 1, 24, 64, 136, 4095, 4096, 8192, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                                  INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
  uint64_t kind = draw(17);
  return kind < 14 ? some[kind] : kind == 14 ? bytes : kind == 15 ? draw(bytes) : draw(UINT64_MAX);
}

/* Changes one place, of the numbers and tables more often than of the rest. */
static uint64_t mutate(uint8_t *data, uint64_t bytes) {
  uint64_t reach = draw(4) == 0 ? bytes : draw(2) == 0 && bytes > 400 ? 400 : bytes < 136 ? bytes : 136;
  uint64_t at = draw(reach), value = border(bytes);
  uint64_t width = draw(3) == 0 ? 1 : draw(2) == 0 ? 4 : 8;
  if (width > 1) at = at / 4 * 4;
  if (at + width > bytes) return 0;
  memcpy(data + at, &value, width);
  return at;
}

/* Makes the checksums right again, so that what is behind them is reached. */
static void repair(uint8_t *data, uint64_t bytes) {
  uint64_t image = number_at(data + 40), size = number_at(data + 48), constants = number_at(data + 80), sum;
  if (image <= bytes && size <= bytes - image) {
    sum = weft_checksum(data + image, (int64_t)size);
    memcpy(data + 24, &sum, 8);
  }
  if (constants <= bytes && draw(8) == 0) {
    sum = weft_checksum(data + constants, (int64_t)(bytes - constants));
    memcpy(data + 32, &sum, 8);
  }
  if (image >= 24 && image <= bytes) {
    sum = weft_checksum(data + 24, (int64_t)image - 24);
    memcpy(data + 16, &sum, 8);
  }
}

static uint64_t read_through(const weft_model *model) {
  const weft_spec *spec;
  const char *key, *text;
  uint64_t sum = 0;
  uint32_t number;
  for (int32_t i = 0; (spec = i % 2 ? weft_output(model, i / 2) : weft_input(model, i / 2)) != NULL; i++) {
    sum += strlen(spec->name) + strlen(weft_dtype_name(spec->dtype));
    for (int32_t d = 0; d < spec->ndim; d++) sum += strlen(spec->dims[d].name);
  }
  for (int32_t i = 0; weft_note_at(model, i, &key, &text); i++) sum += strlen(key) + strlen(text);
  for (int32_t i = 0; i < model->checks; i++) sum += strlen(weft_check_at(model, i, &number));
  for (int32_t i = 0; i < model->features; i++) sum += strlen(weft_feature_at(model, i));
  return sum + model->image.base[model->plan_at] + model->image.base[model->image.bytes - 1];
}

/* Tells whether data that may be an artifact was loaded. */
static int load(const uint8_t *data, uint64_t size, uint64_t *sink) {
  weft_options options = {1, (int32_t)draw(4)};
  weft_error error;
  weft_model *model;
  int32_t status = weft_load_memory(data, (int64_t)size, &options, &model, draw(2) ? &error : NULL);
  if (status == WEFT_OK) *sink += read_through(model);
  else if (model != NULL) abort();
  weft_model_free(model);
  return status == WEFT_OK;
}

static uint8_t *block(const uint8_t *from, uint64_t size) {
  void *made = NULL;
  if (posix_memalign(&made, 64, size > 0 ? size : 1) != 0) abort();
  memcpy(made, from, size);
  return (uint8_t *)made;
}

int main(int argc, char **argv) {
  FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  static uint8_t whole[64 << 20];
  uint64_t bytes = file == NULL ? 0 : fread(whole, 1, sizeof whole, file), loaded = 0, refused = 0, sink = 0;
  uint8_t *kept = block(whole, bytes);
  if (bytes == 0) return 2;
  (void)fclose(file);
  for (long left = atol(argv[2]); left > 0; left--) {
    uint64_t size = draw(8) == 0 ? draw(bytes + 1) : bytes, changes = 1 + draw(3), changed[3] = {0, 0, 0};
    uint8_t *data = size == bytes ? kept : block(whole, size);
    for (uint64_t n = 0; n < changes; n++) changed[n] = mutate(data, size);
    if (size < bytes && size >= 136 && draw(2)) memcpy(data + 8, &size, 8); /* a file that says it is as short as it is */
    if (size >= 136 && draw(8) != 0) repair(data, size);
    if (load(data, size, &sink)) loaded++;
    else refused++;
    if (data != kept) free(data);
    else {
      for (int n = 0; n < 3; n++) memcpy(kept + changed[n], whole + changed[n], bytes - changed[n] < 8 ? bytes - changed[n] : 8);
      memcpy(kept, whole, 136);
    }
  }
  free(kept);
  printf("%llu %llu\n", (unsigned long long)loaded, (unsigned long long)refused);
  return sink == 0;
}
