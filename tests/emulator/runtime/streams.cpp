/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, events, and graphs. Work is done when it is enqueued; what a captured stream is given becomes a
 * node of a graph instead, which depends on what the stream's next one would depend on, and runs at
 * cudaGraphLaunch(). */
#include "runtime.h"
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

using node = CUgraphNode_st;

struct CUgraphNode_st {
  std::function<void()> work;
  std::vector<node *> after;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<node>> nodes; /* in an order in which they may run */
};

/* A capture: streams join it by waiting for events of it. */
struct capture {
  cudaGraph_t graph = new CUgraph_st;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::vector<cudaStream_t> streams;
  bool broken = false;
};

struct CUstream_st {
  std::shared_ptr<capture> captured;
  std::vector<node *> tail; /* captured: what the next node depends on */
};

struct CUevent_st {
  std::shared_ptr<capture> captured;
  std::vector<node *> tail;
};

struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};

namespace {

std::recursive_mutex lock;
CUstream_st default_stream;
std::vector<std::weak_ptr<capture>> captures; /* that are under way */
thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

cudaStream_t known(cudaStream_t stream) { return stream ? stream : &default_stream; }

void add(std::vector<node *> &to, const std::vector<node *> &more) {
  for (node *n : more)
    if (std::find(to.begin(), to.end(), n) == to.end()) to.push_back(n);
}

void leave(cudaStream_t stream) {
  stream->captured.reset();
  stream->tail.clear();
}

bool under_way() {
  for (const auto &c : captures)
    if (!c.expired() && c.lock()->mode != cudaStreamCaptureModeRelaxed) return true;
  return false;
}

} // namespace

cudaError_t emulator::check_no_capture() {
  std::lock_guard<std::recursive_mutex> hold(lock);
  if (mode_of_thread == cudaStreamCaptureModeRelaxed || !under_way()) return cudaSuccess;
  for (const auto &c : captures)
    if (auto one = c.lock()) one->broken = true;
  return result(cudaErrorStreamCaptureUnsupported);
}

cudaError_t emulator::enqueue(cudaStream_t stream, std::function<void()> work) {
  {
    std::lock_guard<std::recursive_mutex> hold(lock);
    stream = known(stream);
    if (stream->captured) {
      auto &nodes = stream->captured->graph->nodes;
      nodes.push_back(std::make_unique<node>(node{std::move(work), stream->tail}));
      stream->tail = {nodes.back().get()};
      return cudaSuccess;
    }
    if (stream == &default_stream && under_way()) return result(cudaErrorStreamCaptureImplicit);
  }
  work();
  return cudaSuccess;
}

using namespace emulator;

extern "C" {

cudaError_t cudaDeviceSynchronize(void) { return check_no_capture(); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::lock_guard<std::recursive_mutex> hold(lock);
  if (known(stream)->captured) return check_no_capture();
  return stream ? cudaSuccess : check_no_capture();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  std::lock_guard<std::recursive_mutex> hold(lock);
  stream = known(stream);
  if (stream == &default_stream && under_way()) return result(cudaErrorStreamCaptureImplicit);
  event->captured = stream->captured;
  event->tail = stream->tail;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->captured ? check_no_capture() : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  std::lock_guard<std::recursive_mutex> hold(lock);
  stream = known(stream);
  if (!event->captured) return cudaSuccess;
  if (stream->captured && stream->captured != event->captured) return result(cudaErrorInvalidValue);
  if (!stream->captured) {
    stream->captured = event->captured;
    stream->captured->streams.push_back(stream);
  }
  add(stream->tail, event->tail);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  std::lock_guard<std::recursive_mutex> hold(lock);
  if (!stream || stream->captured) return result(cudaErrorStreamCaptureUnsupported);
  auto c = std::make_shared<capture>();
  c->origin = stream;
  c->mode = mode;
  c->streams = {stream};
  stream->captured = c;
  captures.push_back(c);
  return cudaSuccess;
}

/* Whether what other streams were given is behind something in `tail`. */
static bool joined(const cudaGraph_t graph, const std::vector<node *> &tail) {
  std::vector<node *> ends;
  for (const auto &n : graph->nodes) ends.push_back(n.get());
  for (const auto &n : graph->nodes)
    for (node *before : n->after) ends.erase(std::remove(ends.begin(), ends.end(), before), ends.end());
  return std::all_of(ends.begin(), ends.end(),
                     [&](node *n) { return std::find(tail.begin(), tail.end(), n) != tail.end(); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  std::lock_guard<std::recursive_mutex> hold(lock);
  *graph = nullptr;
  if (!stream || !stream->captured || stream->captured->origin != stream)
    return result(cudaErrorStreamCaptureUnsupported);
  const std::shared_ptr<capture> c = stream->captured;
  const bool whole = joined(c->graph, stream->tail);
  for (cudaStream_t s : c->streams)
    if (s->captured == c) leave(s);
  captures.erase(std::remove_if(captures.begin(), captures.end(),
                                [&](const auto &other) { return other.expired() || other.lock() == c; }),
                 captures.end());
  if (!c->broken && whole) {
    *graph = c->graph;
    return cudaSuccess;
  }
  delete c->graph;
  return result(c->broken ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
  std::lock_guard<std::recursive_mutex> hold(lock);
  *status = known(stream)->captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return !stream && under_way() ? result(cudaErrorStreamCaptureImplicit) : cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  std::swap(*mode, mode_of_thread);
  return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                const cudaGraphEdgeData *, size_t count, unsigned flags) {
  std::lock_guard<std::recursive_mutex> hold(lock);
  if (!stream || !stream->captured) return result(cudaErrorStreamCaptureUnsupported);
  if (flags == cudaStreamSetCaptureDependencies) stream->tail.clear();
  add(stream->tail, std::vector<node *>(nodes, nodes + count));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long) {
  *executable = new CUgraphExec_st;
  for (const auto &n : graph->nodes) (*executable)->work.push_back(n->work);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return enqueue(stream, [work = executable->work] {
    for (const auto &one : work) one();
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

/* Up to *count of them, where there is room; *count is how many there are. */
static cudaError_t give(const std::vector<node *> &found, cudaGraphNode_t *nodes, size_t *count) {
  if (nodes) std::copy_n(found.begin(), std::min(found.size(), *count), nodes);
  *count = found.size();
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  std::vector<node *> all;
  for (const auto &n : graph->nodes) all.push_back(n.get());
  return give(all, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  std::vector<node *> roots;
  for (const auto &n : graph->nodes)
    if (n->after.empty()) roots.push_back(n.get());
  return give(roots, nodes, count);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *, size_t *count) {
  std::vector<node *> before, behind;
  for (const auto &n : graph->nodes)
    for (node *b : n->after) {
      before.push_back(b);
      behind.push_back(n.get());
    }
  size_t room = *count;
  give(before, from, &room);
  return give(behind, to, count);
}

} // extern "C"
