/* What failed in a thread, until it is asked for. */
#include "call.h"

static __thread weft_cuda_failure failed;
static __thread int has_failed;

void weft_cuda_fail(weft_cuda_failure failure) {
  if (!has_failed) failed = failure; /* the first explains the others */
  has_failed = 1;
}

int32_t weft_cuda_checked(const char *function, int32_t status) {
  weft_cuda_failure failure = {function, status, 0, 0};
  if (status == 0) return WEFT_OK;
  weft_cuda_fail(failure);
  return DEVICE_FAILED;
}

int weft_cuda_take_failure(weft_cuda_failure *failure) {
  int was = has_failed;
  *failure = failed;
  has_failed = 0;
  return was;
}
