/* What the files of the runtime share, and nobody else sees. */
#ifndef WEFT_INTERNAL_H
#define WEFT_INTERNAL_H

#include "weft.h"

/* The calling thread's stack of working memory: blocks are popped in the opposite order. NULL when there is no memory. */
void *weft_scratch_push(int64_t bytes);
void weft_scratch_pop(void *block);

#ifdef WEFT_FREESTANDING

#define weft_lock() ((void)0)
#define weft_unlock() ((void)0)
#define weft_threads(requested) ((void)(requested), 1)

#else

/* One lock for all the short critical sections of the process. It is safe across fork: no other thread can hold it in
 * the instant that a child is made. */
void weft_lock(void);
void weft_unlock(void);

#endif
#endif
