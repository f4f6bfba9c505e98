/* Launches and moves inside of the device's memory: written down as words, then handed over together, as a graph where that is known.
 *
 *     a launch: its count of arguments, kernel, grid (6), arguments...          a move: MOVE, to, from, bytes
 *
 * A graph is launched for the very words that it was captured from: with the same places, numbers and sizes. So it may be kept for
 * as long as its kernels are there, whoever has the memory meanwhile. */
#include "call.h"

#define MOVE ((int64_t)-1)
#define LAUNCH_WORDS 8
#define FEWEST_COMMANDS 4 /* of a graph: fewer are launched as fast one by one */
#define THIS_THREAD 1     /* a mode of capture: what other threads do is left alone */
#define PROGRAMMATIC_STREAM_SERIALIZATION 6 /* an attribute of a launch */

static const int64_t MOST_BLOCKS[3] = {INT32_MAX, 65535, 65535}; /* of a grid along x, y and z */

/* Returns room for so many more words, which count as written; NULL where there is no memory. */
static int64_t *write_words(segment *s, int64_t count) {
  if (s->length + count > s->room) {
    int64_t room = 2 * s->room > s->length + count ? 2 * s->room : s->length + count + 1024;
    int64_t *more = (int64_t *)weft_alloc(8 * room);
    if (more == NULL) return NULL;
    if (s->length > 0) memcpy(more, s->words, 8 * (size_t)s->length);
    if (s->words != NULL) weft_free(s->words);
    s->words = more, s->room = room;
  }
  s->length += count;
  s->commands++;
  return s->words + s->length - count;
}

int32_t weft_cuda_add_launch(call *c, int32_t kernel, const int64_t grid[6], const weft_argument *arguments, int32_t count) {
  int64_t *w;
  for (int32_t i = 0; i < 3; i++) {
    weft_cuda_failure failure = {NULL, 0, i, grid[i]};
    if (grid[i] > MOST_BLOCKS[i]) return weft_cuda_fail(failure), DEVICE_FAILED;
  }
  w = write_words(&c->segment, LAUNCH_WORDS + count);
  if (w == NULL) return WEFT_NO_MEMORY;
  w[0] = count, w[1] = kernel;
  for (int32_t i = 0; i < 6; i++) w[2 + i] = grid[i];
  for (int32_t i = 0; i < count; i++)
    w[LAUNCH_WORDS + i] = arguments[i].letter == 'b' ? (int64_t)weft_cuda_place(&arguments[i]) : arguments[i].at;
  return WEFT_OK;
}

int32_t weft_cuda_add_move(call *c, uint64_t to, uint64_t from, int64_t bytes) {
  int64_t *w = write_words(&c->segment, 4);
  if (w == NULL) return WEFT_NO_MEMORY;
  w[0] = MOVE, w[1] = (int64_t)to, w[2] = (int64_t)from, w[3] = bytes;
  return WEFT_OK;
}

/* Hands one launch to the driver; returns the driver's status. */
static int32_t launch(const call *c, int64_t *w) {
  void *arguments[WEFT_MOST_ARGUMENTS];
  for (int64_t i = 0; i < w[0]; i++) arguments[i] = &w[LAUNCH_WORDS + i];
  const weft_cuda_kernel *kernel = &c->device->kernels[w[1]];
  weft_cuda_attribute early = {PROGRAMMATIC_STREAM_SERIALIZATION, 0, {1}};
  weft_cuda_launch shape = {{0}, (unsigned)kernel->shared, c->stream, &early, kernel->waits != 0};
  for (int32_t i = 0; i < 6; i++) shape.grid[i] = (unsigned)w[2 + i];
  return c->device->driver.cuLaunchKernelEx(&shape, kernel->handle, arguments, NULL);
}

/* Hands the commands to the driver one by one; returns its status, and which function that is of. */
static int32_t issue(const call *c, const char **function) {
  int32_t status = 0;
  for (int64_t *w = c->segment.words, *end = w + c->segment.length; w < end && status == 0;) {
    int is_move = w[0] == MOVE;
    *function = is_move ? "cuMemcpyDtoDAsync_v2" : "cuLaunchKernelEx";
    status = is_move ? c->device->driver.cuMemcpyDtoDAsync_v2((uint64_t)w[1], (uint64_t)w[2], (size_t)w[3], c->stream)
                     : launch(c, w);
    w += is_move ? 4 : LAUNCH_WORDS + w[0];
  }
  return status;
}

/* Captures the commands as a graph; where the driver does not, they are issued one by one from now on. */
static void capture(call *c, graph *g) {
  const weft_cuda_driver *driver = &c->device->driver;
  const char *function = NULL;
  void *made = NULL;
  int32_t status = driver->cuStreamBeginCapture_v2(c->stream, THIS_THREAD);
  if (status == 0) {
    int32_t ended;
    status = issue(c, &function);
    ended = driver->cuStreamEndCapture(c->stream, &made);
    if (status == 0) status = ended;
  }
  if (status == 0) status = driver->cuGraphInstantiateWithFlags(&g->exec, made, 0);
  if (made != NULL) (void)driver->cuGraphDestroy(made);
  if (status != 0) g->exec = NULL;
  g->is_refused = status != 0;
  if (status != 0) return;
  g->number = ++c->captured;
  weft_lock();
  c->device->counts.captured++;
  weft_unlock();
}

static void forget(call *c, graph *g) {
  if (g->exec != NULL) (void)c->device->driver.cuGraphExecDestroy(g->exec); /* one that runs is ended when it is done */
  g->exec = NULL, g->is_refused = g->segment.commands = 0, g->segment.length = 0;
}

void weft_cuda_forget_graphs(call *c) {
  for (int32_t i = 0; i < c->graph_count; i++) {
    forget(c, c->graphs[i]);
    if (c->graphs[i]->segment.words != NULL) weft_free(c->graphs[i]->segment.words);
    weft_free(c->graphs[i]);
  }
  c->graph_count = 0;
}

static void move_to_front(call *c, int32_t at) {
  graph *g = c->graphs[at];
  for (; at > 0; at--) c->graphs[at] = c->graphs[at - 1];
  c->graphs[0] = g;
}

/* The graph of the commands, if they were seen before. */
static graph *find(call *c) {
  const segment *s = &c->segment;
  for (int32_t i = 0; i < c->graph_count; i++) {
    const segment *known = &c->graphs[i]->segment;
    if (known->length != s->length || memcmp(known->words, s->words, 8 * (size_t)s->length) != 0) continue;
    move_to_front(c, i);
    return c->graphs[0];
  }
  return NULL;
}

/* Remembers commands that were not seen before, in the place of those that are the least likely to come again: seen once, and not
 * for the longest time. */
static void remember(call *c) {
  static const graph empty;
  segment *kept;
  int32_t at = c->graph_count;
  if (at < MOST_GRAPHS) {
    graph *made = (graph *)weft_alloc((int64_t)sizeof *made);
    if (made == NULL) return;
    *made = empty;
    c->graphs[c->graph_count++] = made;
  } else {
    do at--;
    while (at > 0 && c->graphs[at]->exec != NULL);
    if (c->graphs[at]->exec != NULL) at = MOST_GRAPHS - 1;
    forget(c, c->graphs[at]);
  }
  move_to_front(c, at);
  kept = &c->graphs[0]->segment;
  if (write_words(kept, c->segment.length) != NULL) memcpy(kept->words, c->segment.words, 8 * (size_t)c->segment.length);
}

/* Counts what was handed over, and tells whether that was right. */
static int32_t handed_over(call *c, int is_graph, const char *function, int32_t status) {
  c->is_behind = 1;
  c->segment.length = c->segment.commands = 0;
  weft_lock();
  if (is_graph) c->device->counts.replayed++;
  else c->device->counts.plain++;
  weft_unlock();
  return weft_cuda_checked(function, status);
}

static int32_t replay(call *c, const graph *g) {
  return handed_over(c, 1, "cuGraphLaunch", c->device->driver.cuGraphLaunch(g->exec, c->stream));
}

int32_t weft_cuda_submit_known(call *c, int64_t *known) {
  const char *function = NULL;
  int32_t status;
  graph *g = NULL;
  *known = 0;
  if (c->segment.commands == 0) return WEFT_OK;
  if (c->segment.commands >= FEWEST_COMMANDS) {
    g = find(c);
    if (g == NULL) remember(c);
    else if (g->exec == NULL && !g->is_refused) capture(c, g);
  }
  if (g != NULL && g->exec != NULL) return *known = g->number, replay(c, g);
  status = issue(c, &function);
  return handed_over(c, 0, function, status);
}

int32_t weft_cuda_submit(call *c) {
  int64_t known;
  return weft_cuda_submit_known(c, &known);
}

int weft_cuda_again(call *c, int64_t known, int32_t *status) {
  for (int32_t i = 0; i < c->graph_count; i++) {
    if (c->graphs[i]->exec == NULL || c->graphs[i]->number != known) continue;
    move_to_front(c, i);
    *status = replay(c, c->graphs[0]);
    return 1;
  }
  return 0;
}
