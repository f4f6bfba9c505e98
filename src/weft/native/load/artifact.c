/* Saved models: what a file says of itself, read and checked; docs/design/0031-artifacts.md has the format. Nothing in a file is
 * believed before it is checked: every offset, count and size, so that even one with a right checksum can do no harm here. */
#include <stddef.h>

#include "internal.h"

#define PAGE 4096
#define TENSOR_ROW 12
#define DIM_ROW 12
#define DEVICE "weft.device" /* the feature of a model whose kernels run on one, which a Weft without devices lacks */

static int32_t inconsistent(weft_error *error) {
  return weft_fail(error, WEFT_DAMAGED, "the file was altered: what it says of itself is impossible", NULL, NULL);
}

static void unpack(prefix *p, const uint8_t *at) {
  uint64_t *wide[] = {&p->size, &p->header_sum, &p->image_sum, &p->constants_sum, &p->image_at, &p->image_bytes,
                      &p->readonly, &p->plan, &p->main, &p->constants_at, &p->constant_bytes};
  uint32_t *narrow[] = {&p->abi, &p->inputs, &p->outputs, &p->dims, &p->checks, &p->features, &p->notes, &p->flags};
  p->format = weft_u32_at(at + 4);
  for (int k = 0; k < 11; k++) *wide[k] = weft_u64_at(at + 8 + 8 * k);
  p->arena_bytes = (int64_t)weft_u64_at(at + 96);
  for (int k = 0; k < 8; k++) *narrow[k] = weft_u32_at(at + 104 + 4 * k);
}

/* Where the texts begin, if the tables are as large as the prefix says; counts are of 32 bits, so that nothing overflows. */
static uint64_t end_of_tables(const prefix *p) {
  return PREFIX_BYTES + TENSOR_ROW * ((uint64_t)p->inputs + p->outputs) + DIM_ROW * (uint64_t)p->dims +
         PAIR_ROW * ((uint64_t)p->checks + p->notes) + 4 * (uint64_t)p->features;
}

int32_t weft_prefix_read(prefix *p, const uint8_t *bytes, weft_error *error) {
  if (bytes[0] != 'W' || bytes[1] != 'E' || bytes[2] != 'F' || bytes[3] != 'T')
    return weft_fail(error, WEFT_NOT_A_MODEL, "the file is not a model saved by Weft", NULL, NULL);
  unpack(p, bytes);
  if (p->format != WEFT_FORMAT)
    return weft_fail(error, WEFT_OTHER_VERSION, "the file has format {0}, and this Weft reads {1}", NULL,
                     (int64_t[]){p->format, WEFT_FORMAT});
  if (p->size > INT64_MAX || p->constants_at > p->size || p->constant_bytes != p->size - p->constants_at ||
      p->image_at > p->constants_at || p->image_bytes > p->constants_at - p->image_at || p->image_at % PAGE != 0 ||
      p->constants_at % PAGE != 0 || end_of_tables(p) >= p->image_at)
    return inconsistent(error);
  return WEFT_OK;
}

/* Describes the inputs and outputs; 0 where a row is impossible. */
static int describe(weft_model *m, const prefix *p) {
  uint32_t tensors = p->inputs + p->outputs, dims_left = p->dims;
  const uint8_t *row = m->header + PREFIX_BYTES, *dim = row + (uint64_t)TENSOR_ROW * tensors;
  weft_dim *dims = (weft_dim *)(void *)(m->specs + tensors);
  for (uint32_t i = 0; i < tensors; i++, row += TENSOR_ROW) {
    uint32_t name = weft_u32_at(row), dtype = weft_u32_at(row + 4), ndim = weft_u32_at(row + 8);
    weft_spec spec = {(const char *)m->header + name, (int32_t)dtype, (int32_t)ndim, dims};
    if (name >= p->image_at || dtype > WEFT_UINT2 || ndim > WEFT_MAX_RANK || ndim > dims_left) return 0;
    m->specs[i] = spec;
    dims_left -= ndim;
    for (; ndim > 0; ndim--, dims++, dim += DIM_ROW) {
      dims->size = (int64_t)weft_u64_at(dim);
      dims->name = dims->size >= 0 ? "" : (const char *)m->header + weft_u32_at(dim + 8);
      if (dims->size < (i < p->inputs ? -1 : WEFT_LATE) || weft_u32_at(dim + 8) >= p->image_at) return 0;
    }
  }
  return dims_left == 0;
}

/* Whether every text that the other tables refer to is inside the header. */
static int texts_are_inside(const weft_model *m, const prefix *p) {
  const uint8_t *at = m->tables;
  for (uint32_t i = 0; i < p->checks; i++, at += PAIR_ROW)
    if (weft_u32_at(at + 4) >= p->image_at) return 0;
  for (uint32_t i = 0; i < p->features + 2 * (uint64_t)p->notes; i++, at += 4)
    if (weft_u32_at(at) >= p->image_at) return 0;
  return 1;
}

const char *weft_machine(void) {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
  return "riscv64";
#else
  return "";
#endif
}

static int32_t check_machine(const weft_model *m, weft_error *error) {
  const char *made_for = weft_note(m, "machine"), *here = weft_machine();
  if (made_for == NULL || *made_for == 0 || weft_same(made_for, here)) return WEFT_OK;
  (void)weft_fail(error, WEFT_OTHER_MACHINE, "the model is for {s}, and this is ", made_for, NULL);
  if (error != NULL) weft_say(error, *here != 0 ? here : "another machine");
  return WEFT_OTHER_MACHINE;
}

/* Whether the kernels are a device's: those who load such a model launch them, as Python does. */
static int32_t check_device(weft_model *m, int32_t flags, weft_error *error) {
  for (int32_t i = 0; i < m->features; i++) m->on_device |= weft_same(weft_feature_at(m, i), DEVICE);
  if (!m->on_device || flags & WEFT_LAUNCHES) return WEFT_OK;
  return weft_fail(error, WEFT_OTHER_MACHINE, "its kernels are for {s}, and only Python launches those of devices",
                   weft_note(m, "target") == NULL ? "a device" : weft_note(m, "target"), NULL);
}

/* What is behind "weft." in a feature of Weft's runtime, which says what a model needs of it; NULL for one of a processor. */
static const char *of_runtime(const char *feature) {
  const char *begin = "weft.";
  for (; *begin; begin++, feature++)
    if (*feature != *begin) return NULL;
  return feature;
}

static int32_t check_features(const weft_model *m, weft_error *error) {
  int32_t status = WEFT_OK;
  weft_processor processor;
  if (m->features == 0) return WEFT_OK; /* to ask costs a virtual machine some microseconds */
  weft_processor_read(&processor);
  for (int32_t i = 0; i < m->features; i++) {
    if (weft_same(weft_feature_at(m, i), "weft.state") || weft_same(weft_feature_at(m, i), "weft.initial")) continue; /* as some lack */
    if (m->on_device && (weft_same(weft_feature_at(m, i), DEVICE) || weft_same(weft_feature_at(m, i), "weft.processor"))) continue;
    if (weft_same(weft_feature_at(m, i), "weft.random")) continue;
#ifndef WEFT_FREESTANDING
    if (weft_same(weft_feature_at(m, i), "weft.strings") || weft_same(weft_feature_at(m, i), "weft.tokens") ||
        weft_same(weft_feature_at(m, i), "weft.texts")) continue;
#endif
    if (weft_processor_has(&processor, weft_feature_at(m, i))) continue;
    const char *need = of_runtime(weft_feature_at(m, i));
    if (need != NULL)
      return weft_fail(error, WEFT_OTHER_VERSION, "it needs {s}, which this runtime of Weft does not have", need, NULL);
    if (status == WEFT_OK) status = weft_fail(error, WEFT_OTHER_MACHINE, "this processor lacks", NULL, NULL);
    if (error == NULL) break;
    weft_say(error, " ");
    weft_say(error, weft_feature_at(m, i));
  }
  return status;
}

/* A number of 16 hexadecimal digits. */
static int64_t number_at(const char *text) {
  uint64_t n = 0;
  for (int i = 0; i < 16; i++) n = n << 4 | (uint64_t)(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10) % 16;
  return (int64_t)n;
}

/* Whether the value that a state begins with is in the constants, and has room in it; all its sizes are known then. */
static int initial_fits(const weft_spec *spec, const weft_state_row *row, uint64_t constant_bytes) {
  int64_t shape[WEFT_MAX_RANK], bytes;
  weft_tensor value = {NULL, shape, spec->ndim, spec->dtype};
  for (int32_t d = 0; d < spec->ndim; d++) {
    shape[d] = d == row->axis ? row->initial_rows : spec->dims[d].size;
    if (shape[d] < 0 || shape[d] > spec->dims[d].size) return 0;
  }
  bytes = weft_tensor_bytes(&value);
  return bytes >= 0 && row->initial >= 0 && (uint64_t)row->initial <= constant_bytes &&
         (uint64_t)bytes <= constant_bytes - (uint64_t)row->initial;
}

/* Two numbers a state: one more than where the value is in the constants that it begins with, or 0, and the rows of that. */
static int read_initial(weft_model *m, uint64_t constant_bytes) {
  const char *text = weft_note(m, "initial");
  int32_t length = 0;
  if (text == NULL) return 1;
  while (length < 32 * m->states && text[length] != 0) length++;
  if (length < 32 * m->states || text[length] != 0) return 0;
  for (int32_t k = 0; k < m->states; k++, text += 32) {
    weft_state_row *row = &m->state_rows[k];
    if (number_at(text) == 0) continue;
    row->initial = number_at(text) - 1;
    row->initial_rows = number_at(text + 16);
    if (!initial_fits(&m->specs[m->inputs - m->states + k], row, constant_bytes)) return 0;
  }
  return 1;
}

/* Two characters a state: '0' and the axis along which it grows, or '.'; and '=' where it is written in place, or '2'. */
static int32_t read_states(weft_model *m, uint64_t constant_bytes, weft_error *error) {
  const char *text = weft_note(m, "states");
  int32_t count = 0;
  if (text == NULL) return WEFT_OK;
  while (count < INT32_MAX / 2 && text[2 * count] != 0 && text[2 * count + 1] != 0) count++;
  if (text[2 * count] != 0 || count > m->inputs || count > m->outputs) return inconsistent(error);
  m->state_rows = (weft_state_row *)weft_alloc((int64_t)sizeof *m->state_rows * count + 1);
  if (m->state_rows == NULL) return weft_no_memory(error);
  m->states = count;
  for (int32_t k = 0; k < count; k++) {
    const weft_spec *taken = &m->specs[m->inputs - count + k], *left = &m->specs[m->inputs + m->outputs - count + k];
    weft_state_row row = {taken->ndim, taken->dtype, text[2 * k] == '.' ? -1 : text[2 * k] - '0', text[2 * k + 1] == '=',
                          -1, 0};
    if (row.axis < -1 || row.axis >= row.ndim || left->ndim != row.ndim || left->dtype != row.dtype)
      return inconsistent(error);
    m->state_rows[k] = row;
  }
  return read_initial(m, constant_bytes) ? WEFT_OK : inconsistent(error);
}

int32_t weft_header_read(weft_model *m, const prefix *p, const uint8_t *header, int32_t flags, weft_error *error) {
  uint64_t tensors = (uint64_t)p->inputs + p->outputs;
  int32_t status;
  if (weft_checksum(header + 24, (int64_t)p->image_at - 24) != p->header_sum) return weft_damaged(error);
  if (p->abi != WEFT_ABI)
    return weft_fail(error, WEFT_OTHER_VERSION, "its code has ABI {0}, and this Weft has {1}", NULL,
                     (int64_t[]){p->abi, WEFT_ABI});
  if (header[p->image_at - 1] != 0 || p->readonly > p->image_bytes || p->plan >= p->readonly ||
      p->main >= p->readonly || p->arena_bytes < -1 || (p->flags & ~FLAG_FLUSH) != 0)
    return inconsistent(error);
  m->header = header;
  m->tables = header + PREFIX_BYTES + TENSOR_ROW * tensors + DIM_ROW * (uint64_t)p->dims;
  m->readonly = (int64_t)p->readonly;
  m->flush = (p->flags & FLAG_FLUSH) != 0;
  m->plan_at = (int64_t)p->plan;
  m->main_at = (int64_t)p->main;
  m->arena_bytes = p->arena_bytes;
  m->inputs = (int32_t)p->inputs; /* each has a row in the header, which is in memory: there are fewer than 2^31 */
  m->outputs = (int32_t)p->outputs;
  m->checks = (int32_t)p->checks;
  m->features = (int32_t)p->features;
  m->notes = (int32_t)p->notes;
  m->specs = (weft_spec *)weft_alloc((int64_t)(tensors * sizeof(weft_spec) + p->dims * sizeof(weft_dim)));
  if (m->specs == NULL) return weft_no_memory(error);
  if (!describe(m, p) || !texts_are_inside(m, p)) return inconsistent(error);
  status = read_states(m, p->constant_bytes, error);
  if (status == WEFT_OK) status = check_device(m, flags, error);
  if (status != WEFT_OK) return status;
  if (m->on_device) m->readonly = 0; /* nothing of it is ever executable */
  status = check_machine(m, error);
  return status != WEFT_OK ? status : check_features(m, error);
}
