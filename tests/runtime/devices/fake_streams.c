/* The streams of the pretended driver: what is asked for waits in a queue until somebody waits for it, as on a device that is late.

   So memory that is changed too early, or read too early, is seen. A stream that is captured keeps its commands in a graph, with
   the arguments that they were given then. */
#include "fake_cuda.h"

enum { MOST_STREAMS = 64, THIS_THREAD = 1, EARLY = 6 };

typedef struct Command {
  struct Command *next;
  const Function *kernel; /* NULL: a copy */
  unsigned shape[6];
  uint64_t values[MOST_ARGUMENTS];
  void *to;
  const void *from;
  size_t size;
  int is_snapshot; /* `from` is the command's own */
} Command;

typedef struct { Command *first, **last; } Queue;
typedef struct Graph { int reset; Queue queue; } Graph; /* one that was made before the last reset is not counted */
typedef struct { int is_used, is_capturing, is_spoilt; Queue queue; Graph *graph; } Stream;
typedef struct { Stream *stream; } Event;

static Stream streams[MOST_STREAMS];
static int graphs, resets;
static __thread Stream *captured; /* by this thread */

static void clear(Queue *q) {
  for (Command *c = q->first, *next; c != NULL; c = next) {
    next = c->next;
    if (c->is_snapshot) free((void *)c->from);
    free(c);
  }
  q->first = NULL, q->last = &q->first;
}
static void add(Queue *q, const Command *command) {
  Command *made = malloc(sizeof *made);
  *made = *command, made->next = NULL;
  if (q->first == NULL) q->last = &q->first;
  *q->last = made, q->last = &made->next;
}
static void run(Stream *s) {
  for (Command *c = s->queue.first; c != NULL; c = c->next) {
    void *arguments[MOST_ARGUMENTS];
    for (int i = 0; c->kernel != NULL && i < c->kernel->arguments; i++) arguments[i] = &c->values[i];
    if (c->kernel != NULL) fake_begin_kernel(), grid_run(c->kernel->run, arguments, c->shape);
    else memmove(c->to, c->from, c->size);
  }
  clear(&s->queue);
}
void fake_run_all(void) {
  for (int i = 0; i < MOST_STREAMS; i++) run(&streams[i]);
}
void fake_reset_streams(void) {
  for (int i = 0; i < MOST_STREAMS; i++) clear(&streams[i].queue);
  memset(streams, 0, sizeof streams);
  graphs = 0, captured = NULL, resets++;
}
int fake_live_graphs(void) { return graphs; }
int fake_live_streams(void) {
  int count = 0;
  for (int i = 0; i < MOST_STREAMS; i++) count += streams[i].is_used;
  return count;
}
int fake_spoils_capture(void) {
  if (captured != NULL) captured->is_spoilt = 1;
  return captured != NULL;
}
static Graph *new_graph(void) {
  Graph *made = calloc(1, sizeof *made);
  graphs++;
  return made->reset = resets, made;
}
static void end_graph(Graph *graph) {
  graphs -= graph->reset == resets;
  clear(&graph->queue);
  free(graph);
}
static int is_stream(const Stream *s) { return s >= streams && s < streams + MOST_STREAMS && s->is_used; }

/* Puts a command in the stream's queue, or in the graph for which it is captured. */
static int ask(Stream *s, const Command *command) {
  if (!s->is_capturing) return add(&s->queue, command), 0;
  if (s->is_spoilt) return CAPTURE_INVALIDATED;
  return add(&s->graph->queue, command), 0;
}

int cuStreamCreate(Stream **made, unsigned flags) {
  NOT_CAPTURED(" %u", flags);
  for (int i = 0; i < MOST_STREAMS; i++) {
    if (streams[i].is_used) continue;
    streams[i] = (Stream){.is_used = 1};
    return *made = &streams[i], 0;
  }
  return OUT_OF_MEMORY;
}
int cuStreamDestroy_v2(Stream *s) {
  IN_CONTEXT("");
  if (!is_stream(s)) return INVALID_HANDLE;
  run(s);
  return s->is_used = 0;
}
int cuStreamSynchronize(Stream *s) {
  NOT_CAPTURED("");
  if (!is_stream(s)) return INVALID_HANDLE;
  return run(s), 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, Stream *s) {
  IN_CONTEXT(" %zu", size);
  if (!fake_is_on_device(to, size) || !is_stream(s)) return INVALID_VALUE;
  int is_pinned = fake_is_pinned(from, size);
  if (!is_pinned && s->is_capturing) return s->is_spoilt = 1, CAPTURE_UNSUPPORTED;
  Command copy = {.to = (void *)(uintptr_t)to, .from = from, .size = size, .is_snapshot = !is_pinned};
  if (!is_pinned) copy.from = memcpy(malloc(size), from, size);
  return ask(s, &copy);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, Stream *s) {
  IN_CONTEXT(" %zu", size);
  if (!fake_is_on_device(from, size) || !is_stream(s)) return INVALID_VALUE;
  int is_pinned = fake_is_pinned(to, size);
  if (!is_pinned && s->is_capturing) return s->is_spoilt = 1, CAPTURE_UNSUPPORTED;
  int status = ask(s, &(Command){.to = to, .from = (const void *)(uintptr_t)from, .size = size});
  if (!is_pinned) run(s);
  return status;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, Stream *s) {
  IN_CONTEXT(" %zu", size);
  if (!fake_is_on_device(from, size) || !fake_is_on_device(to, size) || !is_stream(s)) return INVALID_VALUE;
  return ask(s, &(Command){.to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .size = size});
}
typedef struct { int id, pad; union { int is_allowed; uint64_t all[8]; } value; } Attribute;
typedef struct { unsigned shape[6], shared; Stream *stream; const Attribute *attributes; unsigned count; } Launch;

/* A kernel that waits for those before it by itself may start early, and no other: what it reads might not be there yet. */
int cuLaunchKernelEx(const Launch *l, const Function *kernel, void **arguments, void **extra) {
  const unsigned *n = l->shape;
  IN_CONTEXT(" %u %u %u %u %u %u%s", n[0], n[1], n[2], n[3], n[4], n[5], l->count ? " early" : "");
  if (n[1] > 65535 || n[2] > 65535 || n[3] * n[4] * n[5] > MOST_THREADS || extra || !is_stream(l->stream)) return INVALID_VALUE;
  if (l->shared > 48 << 10 && l->shared > kernel->shared) return INVALID_VALUE;
  if (l->count > 1 || (l->count && (l->attributes->id != EARLY || !l->attributes->value.is_allowed))) return INVALID_VALUE;
  if (l->count && !kernel->waits) return LAUNCH_FAILED;
  Command launch = {.kernel = kernel};
  memcpy(launch.shape, n, sizeof launch.shape);
  for (int i = 0; i < kernel->arguments; i++) memcpy(&launch.values[i], arguments[i], sizeof launch.values[i]);
  return ask(l->stream, &launch);
}

int cuStreamBeginCapture_v2(Stream *s, int mode) {
  IN_CONTEXT(" %d", mode);
  if (!is_stream(s) || mode != THIS_THREAD || s->is_capturing) return INVALID_VALUE;
  s->is_capturing = 1, s->is_spoilt = 0, s->graph = new_graph();
  captured = s;
  return 0;
}
int cuStreamEndCapture(Stream *s, Graph **graph) { /* one that fails ends the capture, too */
  __attribute__((cleanup(fake_unlock))) int locked = fake_lock();
  int status = fake_begin(__func__, "");
  if (!is_stream(s) || !s->is_capturing || captured != s) return INVALID_VALUE;
  s->is_capturing = 0, captured = NULL, *graph = s->graph;
  if (status == 0 && s->is_spoilt) status = CAPTURE_INVALIDATED;
  if (status != 0) return end_graph(s->graph), *graph = NULL, status;
  return 0;
}
static void append(Queue *q, const Queue *more) {
  for (const Command *c = more->first; c != NULL; c = c->next) add(q, c);
}
int cuGraphInstantiateWithFlags(Graph **made, const Graph *graph, uint64_t flags) {
  NOT_CAPTURED("");
  if (flags) return INVALID_VALUE;
  *made = new_graph();
  append(&(*made)->queue, &graph->queue);
  return 0;
}
int cuGraphUpload(const Graph *graph, const Stream *s) {
  IN_CONTEXT("");
  return graph != NULL && is_stream(s) ? 0 : INVALID_HANDLE;
}
static int length(const Graph *graph) {
  int count = 0;
  for (const Command *c = graph == NULL ? NULL : graph->queue.first; c != NULL; c = c->next) count++;
  return count;
}
int cuGraphLaunch(const Graph *graph, Stream *s) {
  NOT_CAPTURED(" %d", length(graph));
  if (graph == NULL || !is_stream(s)) return INVALID_HANDLE;
  return append(&s->queue, &graph->queue), 0;
}
int cuGraphExecDestroy(Graph *graph) {
  IN_CONTEXT("");
  return end_graph(graph), 0;
}
int cuGraphDestroy(Graph *graph) { return cuGraphExecDestroy(graph); }

/* A millisecond passes between any two events. */
int cuEventCreate(Event **event, unsigned flags) { return *event = calloc(1, sizeof **event), flags & ~2u ? INVALID_VALUE : 0; }
int cuEventRecord(Event *event, Stream *s) { return event->stream = s, s == NULL || is_stream(s) ? 0 : INVALID_HANDLE; }
int cuStreamWaitEvent(Stream *s, const Event *event, unsigned flags) { /* what is waited for is done at once, others wait on */
  NOT_CAPTURED("");
  if (!is_stream(s) || flags) return INVALID_VALUE;
  if (event->stream != NULL) run(event->stream);
  return 0;
}
int cuEventSynchronize(const Event *event) { return cuStreamSynchronize(event->stream); }
int cuEventElapsedTime(float *made, const Event *begin, const Event *end) { return *made = 1.0f, begin && end ? 0 : INVALID_HANDLE; }
int cuEventDestroy_v2(Event *event) { return free(event), 0; }
