#include "tests/software_gpu/capture.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/graph.hpp"
#include "tests/software_gpu/process.hpp"

namespace polyring::software_gpu {
namespace {

std::set<std::shared_ptr<Capture>>& captures() {
  static auto* const going_on = new std::set<std::shared_ptr<Capture>>;
  return *going_on;
}

unsigned long long captures_made = 0;
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

void end(const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  capture->streams.clear();
  captures().erase(capture);
}

/// Whether the first stream waits for all that the others were given.
bool is_joined(const Capture& capture) {
  std::vector<bool> awaited(capture.graph.nodes.size(), false);
  for (const int node : capture.origin->tail) awaited[static_cast<std::size_t>(node)] = true;
  for (std::size_t node = capture.graph.nodes.size(); node-- > 0;)
    if (awaited[node])
      for (const int before : capture.graph.nodes[node].after)
        awaited[static_cast<std::size_t>(before)] = true;
  for (const Stream* stream : capture.streams)
    for (const int node : stream->tail)
      if (!awaited[static_cast<std::size_t>(node)]) return false;
  return true;
}

void require_valid(const Capture& capture) { require(!capture.invalid, cudaErrorStreamCaptureInvalidated); }

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return cudaStreamCaptureStatusNone;
  return stream.capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

}  // namespace

void add_to_capture(Stream& stream, Operation operation) {
  Capture& capture = *stream.capture;
  require_valid(capture);
  capture.graph.nodes.push_back({std::move(operation), &stream.device, stream.tail});
  stream.tail = {static_cast<int>(capture.graph.nodes.size()) - 1};
}

CapturedPoint captured_point(const Stream& stream) {
  require_valid(*stream.capture);
  return {stream.capture, stream.tail};
}

void join_capture(Stream& stream, const CapturedPoint& point) {
  Capture& capture = *point.capture;
  require_valid(capture);
  require(!capture.streams.empty(), cudaErrorCapturedEvent);  // it has ended
  if (stream.capture != nullptr && stream.capture != point.capture) {
    stream.capture->invalid = true;
    refuse_in_capture(capture, cudaErrorStreamCaptureMerge);
  }
  if (stream.kind == Stream::Kind::legacy) refuse_in_capture(capture, cudaErrorStreamCaptureImplicit);
  stream.capture = point.capture;
  capture.streams.insert(&stream);
  std::set<int> nodes(stream.tail.begin(), stream.tail.end());
  nodes.insert(point.nodes.begin(), point.nodes.end());
  stream.tail.assign(nodes.begin(), nodes.end());
}

void refuse_in_capture(Capture& capture, cudaError_t code) {
  capture.invalid = true;
  throw Failure{code};
}

void refuse_if_capturing(const Stream& stream, cudaError_t code) {
  if (stream.capture == nullptr) return;
  require_valid(*stream.capture);
  refuse_in_capture(*stream.capture, code);
}

void refuse_if_device_captures(const Device& device) {
  for (const auto& stream : device.streams) refuse_if_capturing(*stream);
}

void refuse_default_stream_in_capture(const Stream& stream) {
  if (stream.kind != Stream::Kind::legacy) return;
  for (const auto& other : stream.device.streams)
    if (other->kind == Stream::Kind::blocking) refuse_if_capturing(*other, cudaErrorStreamCaptureImplicit);
}

void refuse_unsafe_call() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return;
  bool refused = false;
  for (const auto& capture : captures()) {
    const bool own =
        capture->thread == std::this_thread::get_id() && capture->mode != cudaStreamCaptureModeRelaxed;
    const bool others =
        thread_mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (!own && !others) continue;
    capture->invalid = true;
    refused = true;
  }
  require(!refused, cudaErrorStreamCaptureUnsupported);
}

void invalidate_capture(const Stream& stream) {
  if (stream.capture == nullptr) return;
  stream.capture->invalid = true;
  stream.capture->streams.erase(const_cast<Stream*>(&stream));
}

}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    Stream& stream = stream_of(handle);
    require(stream.kind != Stream::Kind::legacy, cudaErrorStreamCaptureUnsupported);
    require(stream.capture == nullptr, cudaErrorIllegalState);
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed,
            cudaErrorInvalidValue);
    auto capture = std::make_shared<Capture>();
    capture->id = ++captures_made;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = &stream;
    capture->streams = {&stream};
    captures().insert(capture);
    stream.capture = std::move(capture);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(graph != nullptr, cudaErrorInvalidValue);
    *graph = nullptr;
    Stream& stream = stream_of(handle);
    const std::shared_ptr<Capture> capture = stream.capture;
    require(capture != nullptr, cudaErrorIllegalState);
    if (capture->origin != &stream) refuse_in_capture(*capture, cudaErrorStreamCaptureUnmatched);
    const bool own =
        capture->mode == cudaStreamCaptureModeRelaxed || capture->thread == std::this_thread::get_id();
    if (!own) refuse_in_capture(*capture, cudaErrorStreamCaptureWrongThread);
    const bool joined = is_joined(*capture);
    end(capture);
    require_valid(*capture);
    require(joined, cudaErrorStreamCaptureUnjoined);
    *graph = keep_graph(std::make_shared<Graph>(std::move(capture->graph)));
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(status != nullptr, cudaErrorInvalidValue);
    const Stream& stream = stream_of(handle);
    refuse_default_stream_in_capture(stream);
    *status = status_of(stream);
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
#if CUDART_VERSION >= 13000
                                     const cudaGraphEdgeData** edges,
#endif
                                     size_t* dependency_count) {
#if CUDART_VERSION >= 13000
  if (edges != nullptr) fail_loudly("cudaStreamGetCaptureInfo does not hand out edges");
#endif
  if (graph != nullptr || dependencies != nullptr)
    fail_loudly("cudaStreamGetCaptureInfo does not hand out nodes");
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(status != nullptr, cudaErrorInvalidValue);
    const Stream& stream = stream_of(handle);
    refuse_default_stream_in_capture(stream);
    *status = status_of(stream);
    if (stream.capture == nullptr) return;
    if (id != nullptr) *id = stream.capture->id;
    if (dependency_count != nullptr) *dependency_count = stream.tail.size();
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call(Needs::nothing, [&] {
    require(mode != nullptr, cudaErrorInvalidValue);
    std::swap(*mode, thread_mode);
  });
}
}
