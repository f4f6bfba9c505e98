/* The table of a context's strings. */
#include "string_table.h"

#ifndef WEFT_FREESTANDING

#include <stddef.h>
#include <string.h>


enum { FIRST_PIECE = 1 << 16, FIRST_ROOM = 256 };

static const weft_text empty = {"", 0};

static uint64_t hash_of(const char *data, int64_t bytes) {
  uint64_t h = 0x9e3779b97f4a7c15u ^ (uint64_t)bytes;
  for (int64_t i = 0; i < bytes; i++) h = (h ^ (uint8_t)data[i]) * 0x100000001b3u;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  return h ^ h >> 29;
}

const weft_text *weft_string_at(const weft_strings *s, int64_t id) {
  return id < 0 || id >= s->count ? &empty : &s->blocks[id / WEFT_STRING_BLOCK][id % WEFT_STRING_BLOCK];
}

/* The slot of a string in the table: its own, or the free one where it belongs. */
static int32_t *slot_of(const weft_strings *s, const char *data, int64_t bytes) {
  uint64_t mask = (uint64_t)s->room - 1;
  for (uint64_t at = hash_of(data, bytes) & mask;; at = (at + 1) & mask) {
    const weft_text *t;
    if (s->table[at] == 0) return &s->table[at];
    t = weft_string_at(s, s->table[at] - 1);
    if (t->bytes == bytes && (bytes == 0 || memcmp(t->data, data, (size_t)bytes) == 0)) return &s->table[at];
  }
}

/* Makes the table have room for one more at least; 0 when there is no memory. */
static int grow_table(weft_strings *s) {
  int64_t room = s->room == 0 ? FIRST_ROOM : s->room;
  int32_t *made;
  if (2 * (s->count + 1) <= s->room) return 1;
  if (s->count >= INT32_MAX / 4) return 0;
  while (room < 2 * (s->count + 1)) room *= 2;
  made = (int32_t *)weft_alloc(room * (int64_t)sizeof *made);
  if (made == NULL) return 0;
  if (s->table != NULL) weft_free(s->table);
  memset(made, 0, (size_t)room * sizeof *made);
  s->table = made;
  s->room = room;
  for (int64_t id = 0; id < s->count; id++) {
    const weft_text *t = weft_string_at(s, id);
    int32_t *slot = slot_of(s, t->data, t->bytes);
    if (*slot == 0) *slot = (int32_t)id + 1;
  }
  return 1;
}

/* Makes the description of the next id have a place; 0 when there is no memory. */
static int grow_blocks(weft_strings *s) {
  weft_text **more;
  weft_text *block;
  if (s->count < s->block_count * WEFT_STRING_BLOCK) return 1;
  more = (weft_text **)weft_alloc((s->block_count + 1) * (int64_t)sizeof *more);
  block = (weft_text *)weft_alloc(WEFT_STRING_BLOCK * (int64_t)sizeof *block);
  if (more == NULL || block == NULL) {
    if (more != NULL) weft_free(more);
    if (block != NULL) weft_free(block);
    return 0;
  }
  for (int64_t i = 0; i < s->block_count; i++) more[i] = s->blocks[i];
  more[s->block_count++] = block;
  if (s->blocks != NULL) weft_free(s->blocks);
  s->blocks = more;
  return 1;
}

char *weft_string_room(weft_strings *s, int64_t bytes) {
  weft_piece *p = s->bytes;
  if (bytes < 0 || bytes > INT64_MAX / 4) return NULL;
  if (p == NULL || p->bytes - p->used < bytes) {
    int64_t size = bytes > FIRST_PIECE ? bytes : FIRST_PIECE;
    p = (weft_piece *)weft_alloc((int64_t)sizeof *p + size);
    if (p == NULL) return NULL;
    p->before = s->bytes;
    p->used = 0;
    p->bytes = size;
    s->bytes = p;
  }
  return (char *)(p + 1) + p->used;
}

/* Enters a string that stays where it is, under the next id, whether there is an equal one or not; 0 when there is no memory. */
static int enter(weft_strings *s, const char *data, int64_t bytes) {
  weft_text *t;
  int32_t *slot;
  if (!grow_table(s) || !grow_blocks(s)) return 0;
  t = &s->blocks[s->count / WEFT_STRING_BLOCK][s->count % WEFT_STRING_BLOCK];
  slot = slot_of(s, data, bytes);
  t->data = data;
  t->bytes = bytes;
  if (*slot == 0) *slot = (int32_t)s->count + 1;
  s->count++;
  return 1;
}

int64_t weft_string_id(weft_strings *s, const char *data, int64_t bytes) {
  char *copy;
  int32_t *slot;
  if (!grow_table(s)) return -1;
  slot = slot_of(s, data, bytes);
  if (*slot != 0) return *slot - 1;
  copy = weft_string_room(s, bytes);
  if (copy == NULL) return -1;
  if (copy != data && bytes > 0) memcpy(copy, data, (size_t)bytes);
  s->bytes->used += bytes;
  return enter(s, copy, bytes) ? s->count - 1 : -1;
}

/* Forgets all strings but the first `count`. */
static void forget(weft_strings *s, int64_t count) {
  while (s->bytes != NULL && s->bytes->before != NULL) {
    weft_piece *before = s->bytes->before;
    weft_free(s->bytes);
    s->bytes = before;
  }
  if (s->bytes != NULL) s->bytes->used = 0;
  if (s->count == count) return;
  if (s->room > 4 * FIRST_ROOM && 16 * count < s->room) { /* of a call of very many: the next is the likelier to have few */
    weft_free(s->table);
    s->table = NULL;
    s->room = 0;
  } else if (s->table != NULL) {
    memset(s->table, 0, (size_t)s->room * sizeof *s->table);
  }
  s->count = count;
  for (int64_t id = 0; id < count && s->table != NULL; id++) {
    const weft_text *t = weft_string_at(s, id);
    int32_t *slot = slot_of(s, t->data, t->bytes);
    if (*slot == 0) *slot = (int32_t)id + 1;
  }
}

static int32_t i32_at(const uint8_t *pool, int64_t number) {
  int32_t found;
  memcpy(&found, pool + 4 * number, sizeof found);
  return found;
}

/* Enters the pool in place of another; strings whose offsets lie outside of it are "". 0 when there is no memory. */
static int enter_pool(weft_strings *s, const uint8_t *pool, int64_t bytes) {
  int64_t count = bytes < 8 ? 0 : i32_at(pool, 0), head;
  forget(s, 0);
  s->pool_count = 0; /* until all are entered */
  if (count < 0 || count > bytes / 4 - 2) count = 0;
  head = 4 * (count + 2);
  for (int64_t k = 0; k < count; k++) {
    int64_t begin = i32_at(pool, 1 + k), end = i32_at(pool, 2 + k);
    int is_inside = 0 <= begin && begin <= end && end <= bytes - head;
    if (!enter(s, is_inside ? (const char *)pool + head + begin : "", is_inside ? end - begin : 0)) return 0;
  }
  s->pool = pool;
  s->pool_bytes = bytes;
  s->pool_count = count;
  return 1;
}

weft_strings *weft_strings_of(weft_ctx *ctx, const uint8_t *pool, int64_t bytes) {
  weft_strings *s = ctx->strings;
  if (s == NULL) {
    s = (weft_strings *)weft_alloc((int64_t)sizeof *s);
    if (s == NULL) return NULL;
    memset(s, 0, sizeof *s);
    ctx->strings = s;
  }
  if (s->pool == pool && s->pool_bytes == bytes) return s;
  if (enter_pool(s, pool, bytes)) return s;
  s->pool = NULL;
  return NULL;
}

void weft_strings_forget(weft_ctx *ctx) {
  if (ctx->strings != NULL) forget(ctx->strings, ctx->strings->pool_count);
}

void weft_strings_free(weft_ctx *ctx) {
  weft_strings *s = ctx->strings;
  if (s == NULL) return;
  forget(s, 0);
  for (int64_t i = 0; i < s->block_count; i++) weft_free(s->blocks[i]);
  if (s->blocks != NULL) weft_free(s->blocks);
  if (s->table != NULL) weft_free(s->table);
  if (s->bytes != NULL) weft_free(s->bytes);
  weft_free(s);
  ctx->strings = NULL;
}

#endif
