/* What a model says of itself. */
#include <stddef.h>

#include "internal.h"

static const struct {
  const char *name;
  int32_t bytes;
} DTYPES[] = {{"bool", 1}, {"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8},  {"u8", 1},  {"u16", 2},
              {"u32", 4},  {"u64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"handle", 8},
              {"f8e4m3fn", 1}, {"f8e4m3fnuz", 1}, {"f8e5m2", 1}, {"f8e5m2fnuz", 1}, {"f8e8m0fnu", 1},
              {"f4e2m1fn", 1}, {"int4", 1}, {"uint4", 1}, {"int2", 1}, {"uint2", 1}};

const char *weft_dtype_name(int32_t dtype) { return dtype < 0 || dtype > WEFT_UINT2 ? "?" : DTYPES[dtype].name; }
int32_t weft_dtype_bytes(int32_t dtype) { return dtype < 0 || dtype > WEFT_UINT2 ? 0 : DTYPES[dtype].bytes; }

int64_t weft_tensor_bytes(const weft_tensor *tensor) {
  int64_t bytes = weft_dtype_bytes(tensor->dtype);
  for (int32_t i = 0; i < tensor->ndim; i++) {
    int64_t extent = tensor->shape[i];
    if (extent < 0 || (extent > 0 && bytes > INT64_MAX / extent)) return -1;
    bytes *= extent;
  }
  return bytes;
}

int32_t weft_inputs(const weft_model *model) { return model->inputs - model->states; }

int32_t weft_outputs(const weft_model *model) { return model->outputs - model->states; }

int32_t weft_states(const weft_model *model) { return model->states; }

const weft_spec *weft_state_spec(const weft_model *model, int32_t number) {
  return number < 0 || number >= model->states ? NULL : &model->specs[weft_inputs(model) + number];
}

const weft_spec *weft_input(const weft_model *model, int32_t number) {
  return number < 0 || number >= weft_inputs(model) ? NULL : &model->specs[number];
}

const weft_spec *weft_output(const weft_model *model, int32_t number) {
  return number < 0 || number >= weft_outputs(model) ? NULL : &model->specs[model->inputs + number];
}

const char *weft_check_at(const weft_model *m, int32_t number, uint32_t *check) {
  const uint8_t *row = m->tables + PAIR_ROW * (int64_t)number;
  *check = weft_u32_at(row);
  return (const char *)m->header + weft_u32_at(row + 4);
}

const char *weft_feature_at(const weft_model *m, int32_t number) {
  return (const char *)m->header + weft_u32_at(m->tables + PAIR_ROW * (int64_t)m->checks + 4 * (int64_t)number);
}

int32_t weft_note_at(const weft_model *m, int32_t number, const char **key, const char **text) {
  const uint8_t *row = m->tables + PAIR_ROW * ((int64_t)m->checks + number) + 4 * (int64_t)m->features;
  if (number < 0 || number >= m->notes) return 0;
  *key = (const char *)m->header + weft_u32_at(row);
  *text = (const char *)m->header + weft_u32_at(row + 4);
  return 1;
}

const char *weft_note(const weft_model *model, const char *key) {
  const char *found, *text;
  for (int32_t i = 0; weft_note_at(model, i, &found, &text); i++)
    if (weft_same(found, key)) return text;
  return NULL;
}

int64_t weft_arena_bytes(const weft_model *model) { return model->arena_bytes; }
