/* Scalars of host programs: elements in memory, and arithmetic. */
#ifndef WEFT_SCALARS_H
#define WEFT_SCALARS_H

#include <string.h>

#include "launch.h"

/* An element in memory, with its sign. */
static inline int64_t element(const uint8_t *at, uint32_t dtype) {
  union { int8_t i8; int16_t i16; int32_t i32; int64_t i64; uint8_t u8; uint16_t u16; uint32_t u32; } v;
  v.i64 = 0;
  memcpy(&v, at, (size_t)weft_dtype_bytes((int32_t)dtype));
  switch (dtype) {
  case WEFT_BOOL: return v.u8 != 0;
  case WEFT_I8: return v.i8;
  case WEFT_I16: return v.i16;
  case WEFT_I32: return v.i32;
  case WEFT_U8: return v.u8;
  case WEFT_U16: return v.u16;
  case WEFT_U32: return v.u32;
  default: return v.i64;
  }
}

/* A value cut to an element's bits. */
static inline void put(uint8_t *at, uint32_t dtype, int64_t value) {
  union { uint8_t u8; uint16_t u16; uint32_t u32; uint64_t u64; } v;
  int32_t bytes = weft_dtype_bytes((int32_t)dtype);
  if (dtype == WEFT_BOOL) v.u8 = value != 0;
  else if (bytes == 1) v.u8 = (uint8_t)value;
  else if (bytes == 2) v.u16 = (uint16_t)value;
  else if (bytes == 4) v.u32 = (uint32_t)value;
  else v.u64 = (uint64_t)value;
  memcpy(at, &v, (size_t)bytes);
}

/* A quotient or a remainder; by zero, 0. */
static inline int64_t divided(uint8_t op, int64_t a, int64_t b) {
  int64_t quotient, rest;
  int is_floor = op == WEFT_OP_FLOORDIV || op == WEFT_OP_FLOORMOD;
  if (b == 0) return 0;
  quotient = b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; /* the least number has no opposite */
  rest = b == -1 ? 0 : a % b;
  if (is_floor && rest != 0 && (rest < 0) != (b < 0)) quotient--, rest += b;
  return op == WEFT_OP_FLOORDIV || op == WEFT_OP_TRUNCDIV ? quotient : rest;
}

/* What an instruction of two operands gives. */
static inline int64_t combined(uint8_t op, int64_t a, int64_t b) {
  uint64_t u = (uint64_t)a, v = (uint64_t)b;
  switch (op) {
  case WEFT_OP_ADD: return (int64_t)(u + v);
  case WEFT_OP_SUB: return (int64_t)(u - v);
  case WEFT_OP_MUL: return (int64_t)(u * v);
  case WEFT_OP_MIN: return a < b ? a : b;
  case WEFT_OP_MAX: return a < b ? b : a;
  case WEFT_OP_AND: return a & b;
  case WEFT_OP_OR: return a | b;
  case WEFT_OP_XOR: return a ^ b;
  case WEFT_OP_SHL: return v > 63 ? 0 : (int64_t)(u << v);
  case WEFT_OP_SHR: return v > 63 ? 0 : a < 0 ? (int64_t)~(~u >> v) : (int64_t)(u >> v);
  case WEFT_OP_LT: return a < b;
  case WEFT_OP_LE: return a <= b;
  case WEFT_OP_EQ: return a == b;
  case WEFT_OP_NE: return a != b;
  default: return divided(op, a, b);
  }
}

#endif
