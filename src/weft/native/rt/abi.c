#include "weft.h"
int weft_abi(void);
int weft_abi(void) { return WEFT_ABI; }
