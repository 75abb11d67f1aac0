// Questions on stream capture and graphs.
#include <cuda_runtime_api.h>

#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

constexpr auto kGlobal = cudaStreamCaptureModeGlobal;
constexpr auto kThread = cudaStreamCaptureModeThreadLocal;
constexpr auto kRelaxed = cudaStreamCaptureModeRelaxed;

/// A stream that captures, until the question ends.
class Capturing {
 public:
  explicit Capturing(cudaStreamCaptureMode mode = kRelaxed, unsigned flags = cudaStreamNonBlocking)
      : stream_(flags) {
    NEED(cudaStreamBeginCapture(stream_, mode));
  }
  ~Capturing() {
    if (!ended_) end();
  }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor)

  std::string end() {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    const std::string answer = named(cudaStreamEndCapture(stream_, &graph));
    if (graph != nullptr) cudaGraphDestroy(graph);
    return answer;
  }
  /// Ends it; launches the graph so many times, and waits.
  void launch(int times) {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    NEED(cudaStreamEndCapture(stream_, &graph));
    NEED(cudaGraphInstantiate(&executable, graph, 0));
    NEED(cudaGraphDestroy(graph));
    for (int time = 0; time < times; ++time) NEED(cudaGraphLaunch(executable, stream_));
    NEED(cudaStreamSynchronize(stream_));
    NEED(cudaGraphExecDestroy(executable));
  }

 private:
  OwnStream stream_;
  bool ended_ = false;
};

const char* status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  NEED(cudaStreamIsCapturing(stream, &status));
  const char* const names[] = {"none", "active", "invalidated"};
  return names[status];
}

/// What a call says in a capture, and what the end of the capture says then.
template <typename Call>
std::string refused(cudaStreamCaptureMode mode, const Call& call) {
  Capturing stream(mode);
  const std::string answer = named(call(static_cast<cudaStream_t>(stream)));
  return answer + ", then " + stream.end();
}

/// Never freed: that would be another question.
cudaError_t allocate(cudaStream_t) {
  void* memory = nullptr;
  return cudaMalloc(&memory, 4);
}

cudaError_t allocate_in_other_thread(cudaStream_t stream) {
  cudaError_t code = cudaSuccess;
  std::thread([&] { code = allocate(stream); }).join();
  return code;
}

cudaError_t wait_for_outside(cudaStream_t stream) {
  const OwnStream outside;
  const OwnEvent event;
  NEED(cudaEventRecord(event, outside));
  return cudaStreamWaitEvent(stream, event, 0);
}

/// An event that was recorded in the capture.
template <typename Call>
std::string captured_event(const Call& call) {
  return refused(kRelaxed, [&](cudaStream_t stream) {
    const OwnEvent event;
    NEED(cudaEventRecord(event, stream));
    return call(static_cast<cudaEvent_t>(event));
  });
}

std::string runs_at_launch(int times) {
  const DeviceWords words(1);
  Capturing stream;
  words.add(3, stream);
  stream.launch(times);
  return std::to_string(words.first());
}

std::string begin_twice() {
  Capturing stream;
  const std::string answer = named(cudaStreamBeginCapture(stream, kRelaxed));
  return answer + ", then " + stream.end();
}

std::string end_without_begin() {
  const OwnStream stream;
  cudaGraph_t graph = nullptr;
  return named(cudaStreamEndCapture(stream, &graph));
}

std::string fork_and_join() {
  const DeviceWords words(1), others(1);
  const OwnStream other;
  const OwnEvent forked, joined;
  Capturing stream;
  words.add(1, stream);
  NEED(cudaEventRecord(forked, stream));
  NEED(cudaStreamWaitEvent(other, forked, 0));
  others.add(2, other);
  NEED(cudaMemcpyAsync(others.get(), words.get(), sizeof(unsigned), cudaMemcpyDeviceToDevice, other));
  others.add(10, other);
  NEED(cudaEventRecord(joined, other));
  NEED(cudaStreamWaitEvent(stream, joined, 0));
  NEED(cudaMemcpyAsync(words.get(), others.get(), sizeof(unsigned), cudaMemcpyDeviceToDevice, stream));
  const std::string status = status_of(other);
  stream.launch(2);
  return "the other stream is " + status + ", then " + status_of(other) + "; result " +
         std::to_string(words.first());
}

/// A stream that was forked off in the capture and is not joined again.
struct Fork {
  explicit Fork(cudaStream_t stream) {
    NEED(cudaEventRecord(event, stream));
    NEED(cudaStreamWaitEvent(other, event, 0));
  }
  OwnStream other;
  OwnEvent event;
};

std::string not_joined() {
  const DeviceWords words(1);
  Capturing stream;
  words.add(1, stream);
  const Fork fork(stream);
  words.add(1, fork.other);
  const std::string answer = stream.end();
  return answer + ", then " + status_of(fork.other);
}

std::string end_in_forked() {
  const DeviceWords words(1);
  Capturing stream;
  words.add(1, stream);
  const Fork fork(stream);
  cudaGraph_t graph = nullptr;
  return named(cudaStreamEndCapture(fork.other, &graph));
}

std::string merge() {
  const DeviceWords words(1);
  Capturing first, second;
  words.add(1, first);
  words.add(1, second);
  const OwnEvent event;
  NEED(cudaEventRecord(event, first));
  const std::string answer = named(cudaStreamWaitEvent(second, event, 0));
  const std::string first_end = first.end();
  return answer + ", then " + first_end + " and " + second.end();
}

std::string end_in_other_thread(cudaStreamCaptureMode mode) {
  std::string answer;
  Capturing stream(mode);
  std::thread([&] {
    cudaGraph_t graph = nullptr;
    answer = named(cudaStreamEndCapture(stream, &graph));
    if (graph != nullptr) cudaGraphDestroy(graph);
  }).join();
  return answer;
}

std::string default_stream_used(unsigned flags) {
  const DeviceWords words(1);
  Capturing stream(kRelaxed, flags);
  words.add(1, nullptr);
  const std::string answer = named(cudaGetLastError());
  return answer + ", then " + stream.end();
}

std::string copy_while_capturing(unsigned flags) {
  const DeviceWords words(1);
  unsigned word = 0;
  Capturing stream(kRelaxed, flags);
  const std::string answer = named(cudaMemcpy(&word, words.get(), sizeof word, cudaMemcpyDeviceToHost));
  return answer + ", then " + stream.end();
}

std::string reads_pinned_at_launch() {
  const DeviceWords words(1);
  const PinnedWords host(1);
  Capturing stream;
  host.get()[0] = 1;
  NEED(cudaMemcpyAsync(words.get(), host.get(), sizeof(unsigned), cudaMemcpyHostToDevice, stream));
  host.get()[0] = 2;
  stream.launch(1);
  return std::to_string(words.first());
}

std::string host_function() {
  unsigned calls = 0;
  Capturing stream;
  NEED(cudaLaunchHostFunc(
      stream, [](void* data) { ++*static_cast<unsigned*>(data); }, &calls));
  const unsigned before = calls;
  stream.launch(3);
  return std::to_string(before) + ", then " + std::to_string(calls);
}

std::string node_count() {
  const DeviceWords words(1);
  const OwnStream stream;
  NEED(cudaStreamBeginCapture(stream, kRelaxed));
  words.add(1, stream);
  NEED(cudaMemsetAsync(words.get(), 0, sizeof(unsigned), stream));
  const OwnEvent event;
  NEED(cudaEventRecord(event, stream));
  cudaGraph_t graph = nullptr;
  NEED(cudaStreamEndCapture(stream, &graph));
  std::size_t count = 0;
  NEED(cudaGraphGetNodes(graph, nullptr, &count));
  NEED(cudaGraphDestroy(graph));
  return std::to_string(count);
}

std::string statuses() {
  const OwnStream stream;
  std::string answer = status_of(stream);
  NEED(cudaStreamBeginCapture(stream, kRelaxed));
  answer += std::string(", ") + status_of(stream);
  named(cudaStreamSynchronize(stream));
  answer += std::string(", ") + status_of(stream);
  cudaGraph_t graph = nullptr;
  named(cudaStreamEndCapture(stream, &graph));
  return answer + ", " + status_of(stream);
}

std::string launch_is_ordered() {
  const OwnStream held;
  const DeviceWords words(1);
  const OwnStream stream;
  NEED(cudaStreamBeginCapture(stream, kRelaxed));
  words.add(1, stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  NEED(cudaStreamEndCapture(stream, &graph));
  NEED(cudaGraphInstantiate(&executable, graph, 0));
  const std::string answer = waits_for(held, [&] {
    NEED(cudaGraphLaunch(executable, held));
    NEED(cudaGraphLaunch(executable, stream));  // not beside itself
    NEED(cudaStreamSynchronize(stream));
  });
  NEED(cudaGraphExecDestroy(executable));
  NEED(cudaGraphDestroy(graph));
  return answer;
}

const Question kQuestions[] = {
    {"capture.runs_nothing_itself", [] { return runs_at_launch(0); }},
    {"capture.runs_at_each_launch", [] { return runs_at_launch(3); }},
    {"capture.of_default_stream", [] { return named(cudaStreamBeginCapture(nullptr, kRelaxed)); }},
    {"capture.begin_twice", begin_twice},
    {"capture.end_without_begin", end_without_begin},
    {"capture.statuses", statuses},
    {"capture.node_count", node_count},
    {"capture.synchronize", [] { return refused(kRelaxed, cudaStreamSynchronize); }},
    {"capture.query", [] { return refused(kRelaxed, cudaStreamQuery); }},
    {"capture.device_synchronize",
     [] { return refused(kRelaxed, [](cudaStream_t) { return cudaDeviceSynchronize(); }); }},
    {"capture.malloc_in_global_mode", [] { return refused(kGlobal, allocate); }},
    {"capture.malloc_in_thread_mode", [] { return refused(kThread, allocate); }},
    {"capture.malloc_in_relaxed_mode", [] { return refused(kRelaxed, allocate); }},
    {"capture.malloc_in_other_thread_in_global_mode",
     [] { return refused(kGlobal, allocate_in_other_thread); }},
    {"capture.malloc_in_other_thread_in_thread_mode",
     [] { return refused(kThread, allocate_in_other_thread); }},
    {"capture.wait_for_event_outside", [] { return refused(kRelaxed, wait_for_outside); }},
    {"capture.query_captured_event", [] { return captured_event(cudaEventQuery); }},
    {"capture.synchronize_captured_event", [] { return captured_event(cudaEventSynchronize); }},
    {"capture.fork_and_join", fork_and_join},
    {"capture.fork_without_join", not_joined},
    {"capture.end_in_forked_stream", end_in_forked},
    {"capture.merge_two", merge},
    {"capture.end_in_other_thread_in_global_mode", [] { return end_in_other_thread(kGlobal); }},
    {"capture.end_in_other_thread_in_relaxed_mode", [] { return end_in_other_thread(kRelaxed); }},
    {"capture.default_stream_beside_blocking", [] { return default_stream_used(cudaStreamDefault); }},
    {"capture.default_stream_beside_non_blocking", [] { return default_stream_used(cudaStreamNonBlocking); }},
    {"capture.copy_beside_blocking", [] { return copy_while_capturing(cudaStreamDefault); }},
    {"capture.copy_beside_non_blocking", [] { return copy_while_capturing(cudaStreamNonBlocking); }},
    {"capture.reads_pinned_at_launch", reads_pinned_at_launch},
    {"capture.host_function", host_function},
    {"capture.launches_follow_each_other", launch_is_ordered},
};

}  // namespace

std::span<const Question> capture_questions() { return kQuestions; }

}  // namespace polyring::software_gpu
