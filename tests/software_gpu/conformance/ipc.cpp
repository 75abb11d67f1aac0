// Questions on memory and events between processes.
#include <cuda_runtime_api.h>

#include <map>

#include "tests/software_gpu/conformance/child.hpp"
#include "tests/software_gpu/conformance/launches.hpp"
#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

/// CUDA shares whole blocks of memory: with this many words nothing else is in the block.
constexpr unsigned kWords = 1 << 20;
/// Until another process has started.
constexpr std::chrono::seconds kLongHold{30};

template <typename Handle>
std::string_view bytes_of(const Handle& handle) {
  return {reinterpret_cast<const char*>(&handle), sizeof handle};
}

cudaIpcMemHandle_t handle_of(void* pointer) {
  cudaIpcMemHandle_t handle;
  NEED(cudaIpcGetMemHandle(&handle, pointer));
  return handle;
}

// --- In the other process
// -------------------------------------------------------------------------------------------

template <typename Handle>
Handle read_handle() {
  Handle handle{};
  if (std::fread(&handle, 1, sizeof handle, stdin) != sizeof handle) std::_Exit(1);
  return handle;
}

void wait_to_go_on() { std::fgetc(stdin); }

void say_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

cudaError_t open_memory(unsigned** words, const cudaIpcMemHandle_t& handle,
                        unsigned flags = cudaIpcMemLazyEnablePeerAccess) {
  return cudaIpcOpenMemHandle(reinterpret_cast<void**>(words), handle, flags);
}

unsigned* opened_memory() {
  unsigned* words = nullptr;
  NEED(open_memory(&words, read_handle<cudaIpcMemHandle_t>()));
  return words;
}

std::string first_word(const unsigned* words) {
  unsigned word = 0;
  NEED(cudaMemcpy(&word, words, sizeof word, cudaMemcpyDeviceToHost));
  return std::to_string(word);
}

std::string child_reads() {
  unsigned* const words = opened_memory();
  const std::string answer = first_word(words);
  NEED(cudaIpcCloseMemHandle(words));
  return answer;
}

std::string child_adds() {
  unsigned* const words = opened_memory();
  launch_add({words, words, 5, 1}, nullptr);
  NEED(cudaDeviceSynchronize());
  NEED(cudaIpcCloseMemHandle(words));
  return "added";
}

std::string child_opens_twice() {
  const auto handle = read_handle<cudaIpcMemHandle_t>();
  unsigned *first = nullptr, *second = nullptr;
  NEED(open_memory(&first, handle));
  const cudaError_t code = open_memory(&second, handle);
  if (code != cudaSuccess) return named(code);
  NEED(cudaIpcCloseMemHandle(first));
  const std::string word = first_word(second);
  NEED(cudaIpcCloseMemHandle(second));
  return (first == second ? "same address, " : "other address, ") + word + " after one close";
}

std::string child_closes_twice() {
  unsigned* const words = opened_memory();
  NEED(cudaIpcCloseMemHandle(words));
  return named(cudaIpcCloseMemHandle(words));
}

std::string child_frees() {
  unsigned* const words = opened_memory();
  return named(cudaFree(words));
}

std::string child_opens_later() {
  const auto handle = read_handle<cudaIpcMemHandle_t>();
  wait_to_go_on();
  unsigned* words = nullptr;
  const cudaError_t code = open_memory(&words, handle);
  named(code);
  return code == cudaSuccess ? "opened" : "refused";
}

std::string child_opens_without_flag() {
  unsigned* words = nullptr;
  return named(open_memory(&words, read_handle<cudaIpcMemHandle_t>(), 0));
}

std::string child_type_of_memory() {
  cudaPointerAttributes attributes{};
  NEED(cudaPointerGetAttributes(&attributes, opened_memory()));
  return attributes.type == cudaMemoryTypeDevice ? "device" : "other";
}

std::string child_on_other_device() {
  NEED(cudaSetDevice(1));
  unsigned* const words = opened_memory();
  launch_add({words, words, 5, 1}, nullptr);
  NEED(cudaDeviceSynchronize());
  return first_word(words);
}

std::string child_waits_for_event() {
  unsigned* const words = opened_memory();
  cudaEvent_t event = nullptr;
  NEED(cudaIpcOpenEventHandle(&event, read_handle<cudaIpcEventHandle_t>()));
  const OwnStream stream;
  const PinnedWords seen(1);
  NEED(cudaStreamWaitEvent(stream, event, 0));
  NEED(cudaMemcpyAsync(seen.get(), words, sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  say_line(named(cudaEventQuery(event)));
  NEED(cudaStreamSynchronize(stream));
  return std::to_string(seen.get()[0]);
}

/// Its record is what the parent waits for.
std::string child_records_event() {
  unsigned* const words = opened_memory();
  cudaEvent_t event = nullptr;
  NEED(cudaIpcOpenEventHandle(&event, read_handle<cudaIpcEventHandle_t>()));
  const OwnStream stream;
  Hold hold(stream, kLongHold);
  launch_add({words, words, 5, 1}, stream);
  NEED(cudaEventRecord(event, stream));
  say_line("recorded");
  wait_to_go_on();
  hold.release();
  NEED(cudaStreamSynchronize(stream));
  return "done";
}

const std::map<std::string, std::string (*)()> kRoles = {
    {"reads", child_reads},
    {"adds", child_adds},
    {"opens_twice", child_opens_twice},
    {"closes_twice", child_closes_twice},
    {"frees", child_frees},
    {"opens_later", child_opens_later},
    {"opens_without_flag", child_opens_without_flag},
    {"type_of_memory", child_type_of_memory},
    {"on_other_device", child_on_other_device},
    {"waits_for_event", child_waits_for_event},
    {"records_event", child_records_event},
};

// --- In the first process
// -------------------------------------------------------------------------------------------

std::string child_with_memory(const char* role) {
  const DeviceWords words(kWords);
  words.add(7, nullptr);
  NEED(cudaDeviceSynchronize());
  Child child(role, bytes_of(handle_of(words.get())));
  return child.line();
}

std::string child_adds_to_memory() {
  const DeviceWords words(kWords);
  words.add(7, nullptr);
  NEED(cudaDeviceSynchronize());
  Child child("adds", bytes_of(handle_of(words.get())));
  child.line();
  return std::to_string(words.first());
}

std::string handle_of_inside() {
  const DeviceWords words(kWords);
  const unsigned values[] = {1, 2, 3, 4};
  NEED(cudaMemcpy(words.get(), values, sizeof values, cudaMemcpyHostToDevice));
  NEED(cudaDeviceSynchronize());  // a copy from pageable memory may still be on its way
  Child child("reads", bytes_of(handle_of(words.get() + 2)));
  return child.line();
}

std::string open_in_same_process() {
  const DeviceWords words(kWords);
  unsigned* opened = nullptr;
  return named(open_memory(&opened, handle_of(words.get())));
}

std::string freed_before_open() {
  void* memory = nullptr;
  NEED(cudaMalloc(&memory, 4 << 20));
  Child child("opens_later", bytes_of(handle_of(memory)));
  NEED(cudaFree(memory));
  child.go_on();
  return child.line();
}

std::string handle_of_host() {
  const PinnedWords words(1);
  cudaIpcMemHandle_t handle;
  return named(cudaIpcGetMemHandle(&handle, words.get()));
}

std::string handle_of_stream_ordered() {
  const OwnStream stream;
  void* memory = nullptr;
  NEED(cudaMallocAsync(&memory, 4, stream));
  NEED(cudaStreamSynchronize(stream));
  cudaIpcMemHandle_t handle;
  const std::string answer = named(cudaIpcGetMemHandle(&handle, memory));
  NEED(cudaFreeAsync(memory, stream));
  return answer;
}

std::string handle_of_plain_event() {
  const OwnEvent event(cudaEventDisableTiming);
  cudaIpcEventHandle_t handle;
  return named(cudaIpcGetEventHandle(&handle, event));
}

struct SharedEventHandle {
  SharedEventHandle() { NEED(cudaIpcGetEventHandle(&handle, event)); }
  OwnEvent event{cudaEventDisableTiming | cudaEventInterprocess};
  cudaIpcEventHandle_t handle;
};

std::string event_of_parent() {
  const DeviceWords words(kWords);
  const SharedEventHandle shared;
  const OwnStream stream;
  Hold hold(stream, kLongHold);
  words.add(1, stream);
  NEED(cudaEventRecord(shared.event, stream));
  const cudaIpcMemHandle_t memory = handle_of(words.get());
  Child child("waits_for_event", std::string(bytes_of(memory)) + std::string(bytes_of(shared.handle)));
  const std::string query = child.line();
  hold.release();
  return query + ", then " + child.line();
}

std::string event_of_child() {
  const DeviceWords words(kWords);
  const SharedEventHandle shared;
  const OwnStream stream;
  const cudaIpcMemHandle_t memory = handle_of(words.get());
  Child child("records_event", std::string(bytes_of(memory)) + std::string(bytes_of(shared.handle)));
  if (child.line() != "recorded") return "not recorded";
  const PinnedWords seen(1);
  NEED(cudaStreamWaitEvent(stream, shared.event, 0));
  NEED(cudaMemcpyAsync(seen.get(), words.get(), sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  child.go_on();
  NEED(cudaStreamSynchronize(stream));
  return std::to_string(seen.get()[0]);
}

std::string event_in_same_process() {
  const SharedEventHandle shared;
  cudaEvent_t opened = nullptr;
  return named(cudaIpcOpenEventHandle(&opened, shared.handle));
}

const Question kQuestions[] = {
    {"ipc.child_reads", [] { return child_with_memory("reads"); }},
    {"ipc.child_adds", child_adds_to_memory},
    {"ipc.handle_of_inside_names", handle_of_inside},
    {"ipc.open_in_same_process", open_in_same_process},
    {"ipc.open_twice", [] { return child_with_memory("opens_twice"); }},
    {"ipc.close_twice", [] { return child_with_memory("closes_twice"); }},
    {"ipc.free_opened", [] { return child_with_memory("frees"); }},
    {"ipc.open_freed", freed_before_open},
    {"ipc.open_without_flag", [] { return child_with_memory("opens_without_flag"); }},
    {"ipc.type_of_opened", [] { return child_with_memory("type_of_memory"); }},
    {"ipc.open_on_other_device", [] { return child_with_memory("on_other_device"); }, 2},
    {"ipc.handle_of_host", handle_of_host},
    {"ipc.handle_of_stream_ordered", handle_of_stream_ordered},
    {"ipc.handle_of_plain_event", handle_of_plain_event},
    {"ipc.event_of_parent", event_of_parent},
    {"ipc.event_of_child", event_of_child},
    {"ipc.event_in_same_process", event_in_same_process},
};

}  // namespace

std::span<const Question> ipc_questions() { return kQuestions; }

std::string answer_of_child(const std::string& role) {
  const auto found = kRoles.find(role);
  return found == kRoles.end() ? "no such role" : found->second();
}

}  // namespace polyring::software_gpu
