/* Checks the bytes of a host program, once, so that replaying them need not: every instruction and operand, where jumps go, and
 * that the stack has the same height whichever way an instruction is come to (as WebAssembly and Java do it). */
#include <stddef.h>

#include "internal.h"
#include "launch.h"

#define MOST_ROWS 65535u /* of locals, slots, callees, inputs, outputs */
#define UNKNOWN (-1)

/* What each instruction takes and puts, and a letter for each operand: l local, s slot, t type, c callee, j bytes forward,
 * J bytes back, v value, w which number of the context; b: a word and a number; d: a word, a number and a dimension; p space;
 * f: as FAIL has; o: the number of an output, and how many sizes it takes off; k: the number of kept memory. */
static const struct {
  int8_t takes, puts;
  char operands[4];
} OPS[WEFT_OPS] = {
    [WEFT_OP_END] = {0, 0, ""},      [WEFT_OP_CONST] = {0, 1, "v"},    [WEFT_OP_GET] = {0, 1, "l"},
    [WEFT_OP_SET] = {1, 0, "l"},     [WEFT_OP_ADD] = {2, 1, ""},       [WEFT_OP_SUB] = {2, 1, ""},
    [WEFT_OP_MUL] = {2, 1, ""},      [WEFT_OP_FLOORDIV] = {2, 1, ""},  [WEFT_OP_FLOORMOD] = {2, 1, ""},
    [WEFT_OP_TRUNCDIV] = {2, 1, ""}, [WEFT_OP_TRUNCMOD] = {2, 1, ""},  [WEFT_OP_MIN] = {2, 1, ""},
    [WEFT_OP_MAX] = {2, 1, ""},      [WEFT_OP_AND] = {2, 1, ""},       [WEFT_OP_OR] = {2, 1, ""},
    [WEFT_OP_XOR] = {2, 1, ""},      [WEFT_OP_SHL] = {2, 1, ""},       [WEFT_OP_SHR] = {2, 1, ""},
    [WEFT_OP_LT] = {2, 1, ""},       [WEFT_OP_LE] = {2, 1, ""},        [WEFT_OP_EQ] = {2, 1, ""},
    [WEFT_OP_NE] = {2, 1, ""},       [WEFT_OP_CAST] = {1, 1, "t"},     [WEFT_OP_SKIP] = {0, 0, "j"},
    [WEFT_OP_SKIP_ZERO] = {1, 0, "j"}, [WEFT_OP_BACK] = {0, 0, "J"},   [WEFT_OP_BIND] = {0, 0, "sb"},
    [WEFT_OP_SIZE] = {0, 1, "d"},    [WEFT_OP_CONTEXT] = {0, 1, "w"},  [WEFT_OP_LOAD] = {1, 1, "st"},
    [WEFT_OP_STORE] = {2, 0, "st"},  [WEFT_OP_VIEW] = {2, 0, "ss"},    [WEFT_OP_ALLOC] = {1, 0, "sp"},
    [WEFT_OP_FREE] = {0, 0, ""},     [WEFT_OP_COPY] = {3, 0, "ss"},    [WEFT_OP_BUFFER] = {2, 0, "s"},
    [WEFT_OP_VALUE] = {1, 0, ""},    [WEFT_OP_CALL] = {0, 0, "c"},     [WEFT_OP_LAUNCH] = {6, 0, "c"},
    [WEFT_OP_FAIL] = {0, 0, "f"},      [WEFT_OP_OUTPUT] = {0, 0, "so"}, [WEFT_OP_KEEP] = {1, 0, "sk"},
    [WEFT_OP_TWIN] = {1, 0, "sps"},
};

int32_t weft_launch_takes(uint8_t op) { return OPS[op].takes; }

int weft_launch_number(const uint8_t **at, const uint8_t *end, uint32_t *number) {
  uint64_t made = 0;
  for (int shift = 0; *at < end && shift < 35; shift += 7) {
    uint8_t byte = *(*at)++;
    made |= (uint64_t)(byte & 127) << shift;
    *number = (uint32_t)made;
    if (byte < 128) return made <= UINT32_MAX;
  }
  return 0;
}

int weft_launch_value(const uint8_t **at, const uint8_t *end, int64_t *value) {
  uint64_t made = 0;
  for (int shift = 0; *at < end && shift < 70; shift += 7) {
    uint8_t byte = *(*at)++;
    made |= (uint64_t)(byte & 127) << shift;
    if (byte >= 128) continue;
    if (byte & 64 && shift < 57) made |= ~(uint64_t)0 << (shift + 7);
    *value = (int64_t)made;
    return 1;
  }
  return 0;
}

typedef struct check {
  const weft_launch *program;
  const uint8_t *begin, *end, *at;
  int32_t *heights;                          /* before the instruction at each byte; UNKNOWN where none is known to begin */
  int32_t height, deepest, is_reached, lacks_device;
} check;

static int goes_to(check *c, const uint8_t *target) {
  int32_t *height = &c->heights[target - c->begin];
  if (*height == UNKNOWN) *height = c->height;
  return *height == c->height;
}

/* The argument of an entry that a word and a number name. */
static int is_argument(const weft_launch *p, uint32_t word, uint32_t number) {
  if (word == WEFT_IN || word == WEFT_IN_SHAPE) return number < p->inputs;
  if (word == WEFT_OUT || word == WEFT_OUT_SHAPE) return number < p->outputs;
  if (word == WEFT_CONSTANTS) return number <= MOST_ROWS;
  return word <= WEFT_ARENA_NEEDED && number == 0;
}

/* Reads one operand, and tells whether it is one that there can be. */
static int operand(check *c, char letter, uint8_t op) {
  const weft_launch *p = c->program;
  uint32_t n, number, dimension;
  int64_t value;
  if (letter == 'v') return weft_launch_value(&c->at, c->end, &value);
  if (!weft_launch_number(&c->at, c->end, &n)) return 0;
  switch (letter) {
  case 'l': return n < p->locals;
  case 's': return n < p->slots;
  case 't': return n <= WEFT_U64;
  case 'w': return n <= 1;
  case 'p':
    c->lacks_device |= n > (uint32_t)p->device_count;
    return n <= MOST_ROWS;
  case 'c':
    return n < p->callee_count && (op == WEFT_OP_CALL || p->callees[n].space > 0);
  case 'j': return n < (uint32_t)(c->end - c->at) && goes_to(c, c->at + n);
  case 'J': return n > 0 && n <= (uint32_t)(c->at - c->begin) && c->heights[c->at - n - c->begin] == c->height;
  case 'b':
    if (!weft_launch_number(&c->at, c->end, &number)) return 0;
    c->lacks_device |= n == WEFT_CONSTANTS && number > (uint32_t)p->device_count;
    return is_argument(p, n, number);
  case 'd':
    return weft_launch_number(&c->at, c->end, &number) && weft_launch_number(&c->at, c->end, &dimension) && n <= WEFT_OUT &&
           is_argument(p, n, number) && dimension < WEFT_MAX_RANK;
  case 'k': return n <= MOST_ROWS;
  case 'o':
    if (!weft_launch_number(&c->at, c->end, &dimension) || n >= p->outputs || dimension > WEFT_MAX_RANK) return 0;
    c->height -= (int32_t)dimension;
    return c->height >= 0;
  default: /* the number of a check, and how many values explain it */
    if (!weft_launch_number(&c->at, c->end, &number) || n > INT32_MAX || number > 4) return 0;
    c->height -= (int32_t)number;
    return c->height >= 0;
  }
}

/* Checks one instruction; what is within it is no place to jump to. */
static int instruction(check *c) {
  const uint8_t *start = c->at;
  int32_t known = c->heights[start - c->begin];
  uint8_t op = *c->at++;
  if (known != UNKNOWN && c->is_reached && known != c->height) return 0;
  if (known == UNKNOWN && !c->is_reached) return 0;
  if (known != UNKNOWN) c->height = known;
  c->heights[start - c->begin] = c->height;
  if (op >= WEFT_OPS || c->height < OPS[op].takes) return 0;
  c->height -= OPS[op].takes;
  for (const char *letter = OPS[op].operands; *letter != 0; letter++)
    if (!operand(c, *letter, op)) return 0;
  c->height += OPS[op].puts;
  if (c->height > c->deepest) c->deepest = c->height;
  for (const uint8_t *inside = start + 1; inside < c->at; inside++)
    if (c->heights[inside - c->begin] != UNKNOWN) return 0;
  c->is_reached = op != WEFT_OP_END && op != WEFT_OP_FAIL && op != WEFT_OP_SKIP && op != WEFT_OP_BACK;
  return 1;
}

/* Checks the code of a function; `heights` has room for a number for each byte. */
static int function(weft_launch *p, uint32_t begin, uint32_t end, int32_t *heights, int32_t *lacks_device) {
  check c = {p, p->bytes + begin, p->bytes + end, p->bytes + begin, heights, 0, 0, 1, 0};
  for (uint32_t i = 0; i < end - begin; i++) heights[i] = UNKNOWN;
  while (c.at < c.end)
    if (!instruction(&c)) return 0;
  if (c.deepest > p->stack) p->stack = c.deepest;
  *lacks_device |= c.lacks_device;
  return !c.is_reached;
}

/* Reads the row of each callee: its space, the number of its parameters, and their letters. */
static int callees(weft_launch *p, int32_t *lacks_device) {
  const uint8_t *at = p->bytes + WEFT_LAUNCH_HEAD, *end = p->bytes + p->plan_at;
  for (uint32_t i = 0; i < p->callee_count; i++) {
    uint32_t space, count;
    if (!weft_launch_number(&at, end, &space) || space > MOST_ROWS) return 0;
    if (!weft_launch_number(&at, end, &count) || count > WEFT_MOST_ARGUMENTS || count > (uint32_t)(end - at)) return 0;
    p->callees[i] = (weft_callee){at, (int32_t)count, (int32_t)space};
    *lacks_device |= space > (uint32_t)p->device_count;
    if ((int32_t)count > p->arguments) p->arguments = (int32_t)count;
    for (uint32_t k = 0; k < count; k++, at++)
      if (*at != 'b' && *at != 'v') return 0;
  }
  return at == end;
}

static int head(weft_launch *p) {
  const uint8_t *b = p->bytes;
  p->inputs = weft_u32_at(b + 12);
  p->outputs = weft_u32_at(b + 16);
  p->locals = weft_u32_at(b + 20);
  p->slots = weft_u32_at(b + 24);
  p->callee_count = weft_u32_at(b + 28);
  p->plan_at = weft_u32_at(b + 32);
  p->main_at = weft_u32_at(b + 36);
  return p->inputs <= MOST_ROWS && p->outputs <= MOST_ROWS && p->locals <= MOST_ROWS && p->slots <= MOST_ROWS &&
         p->callee_count <= MOST_ROWS && p->plan_at >= WEFT_LAUNCH_HEAD && p->main_at > p->plan_at && p->size > p->main_at;
}

static int32_t refused(weft_launch *p, int32_t status, weft_error *error, const char *why) {
  weft_launch_close(p);
  return weft_fail(error, status, why, NULL, NULL);
}

int32_t weft_launch_open(weft_launch *p, const void *bytes, int64_t size, weft_error *error) {
  static const char damaged[] = "the host program was altered: it is not well-formed";
  int32_t lacks_device = 0, is_right, *heights;
  uint32_t version;
  p->bytes = (const uint8_t *)bytes;
  p->callees = NULL;
  p->stack = p->arguments = 0;
  if (bytes == NULL || size < WEFT_LAUNCH_HEAD || weft_u32_at(p->bytes) != WEFT_LAUNCH_MAGIC)
    return refused(p, WEFT_DAMAGED, error, "these bytes are no host program");
  version = weft_u32_at(p->bytes + 4);
  if (version < WEFT_LAUNCH_OLDEST || version > WEFT_LAUNCH_VERSION)
    return refused(p, WEFT_OTHER_VERSION, error, "the host program is of another version of Weft");
  p->size = weft_u32_at(p->bytes + 8);
  if (size != (int64_t)p->size || !head(p)) return refused(p, WEFT_DAMAGED, error, damaged);
  p->callees = (weft_callee *)weft_alloc((int64_t)sizeof(weft_callee) * (p->callee_count + 1));
  heights = (int32_t *)weft_alloc((int64_t)sizeof(int32_t) * p->size);
  if (p->callees == NULL || heights == NULL) {
    if (heights != NULL) weft_free(heights);
    return weft_launch_close(p), weft_no_memory(error);
  }
  is_right = callees(p, &lacks_device) && function(p, p->plan_at, p->main_at, heights, &lacks_device) &&
             function(p, p->main_at, p->size, heights, &lacks_device);
  weft_free(heights);
  if (!is_right) return refused(p, WEFT_DAMAGED, error, damaged);
  if (lacks_device) return refused(p, WEFT_OTHER_MACHINE, error, "the host program uses a device that is not there");
  return weft_fail(error, WEFT_OK, "", NULL, NULL);
}

void weft_launch_close(weft_launch *p) {
  if (p->callees != NULL) weft_free(p->callees);
  p->callees = NULL;
}
