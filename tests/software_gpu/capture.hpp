// Streams that record their operations into a graph instead of doing them.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/software_gpu/stream.hpp"

namespace polyring::software_gpu {

struct GraphNode {
  Operation operation;
  Device* device;
  std::vector<int> after;  // nodes, by their index
};

struct Graph {
  std::vector<GraphNode> nodes;  // each after all that it depends on
};

struct Capture {
  unsigned long long id;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  Stream* origin;
  std::set<Stream*> streams;
  Graph graph;
  bool invalid = false;
};

/// Where an event was recorded in a capture.
struct CapturedPoint {
  std::shared_ptr<Capture> capture;  // null: it was not
  std::vector<int> nodes;
};

// Process::mutex is held in all of these.

void add_to_capture(Stream& stream, Operation operation);

/// What an event stands for that is recorded in this capturing stream.
CapturedPoint captured_point(const Stream& stream);
/// A stream waits for what an event stands for, and becomes part of its capture.
void join_capture(Stream& stream, const CapturedPoint& point);

/// After a call that is not allowed: throws `code`, and the captures are lost.
[[noreturn]] void refuse_in_capture(Capture& capture, cudaError_t code);
/// Throws where the stream captures: its state cannot be waited for or asked.
void refuse_if_capturing(const Stream& stream, cudaError_t code = cudaErrorStreamCaptureUnsupported);
/// Throws where a stream of the device captures.
void refuse_if_device_captures(const Device& device);
/// Throws where the default stream would be used while a stream captures that waits for it.
void refuse_default_stream_in_capture(const Stream& stream);
/// Throws where a capture forbids calls such as cudaMalloc to this thread.
void refuse_unsafe_call();
void invalidate_capture(const Stream& stream);

}  // namespace polyring::software_gpu
