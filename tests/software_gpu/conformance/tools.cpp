#include "tests/software_gpu/conformance/tools.hpp"

#include <cstdio>
#include <cstdlib>

#include "tests/software_gpu/conformance/launches.hpp"

namespace polyring::software_gpu {
namespace {

constexpr unsigned kHolds = 4096;

/// A word for each Hold: allocating pinned memory may wait for the device.
unsigned* next_word() {
  static unsigned* const words = [] {
    unsigned* made = nullptr;
    NEED(cudaHostAlloc(reinterpret_cast<void**>(&made), kHolds * sizeof *made, cudaHostAllocMapped));
    for (unsigned index = 0; index < kHolds; ++index) made[index] = 0;
    return made;
  }();
  static unsigned used = 0;
  if (used == kHolds) std::abort();
  return words + used++;
}

void set_word(unsigned* word) { __atomic_store_n(word, 1u, __ATOMIC_SEQ_CST); }

}  // namespace

std::string named(cudaError_t code) {
  cudaGetLastError();
  return cudaGetErrorName(code);
}

void need(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(code));
  std::_Exit(1);
}

std::string yes_or_no(bool holds) { return holds ? "yes" : "no"; }

void warm_up() {
  DeviceWords words(1);
  words.add(0, nullptr);
  unsigned* const word = next_word();
  set_word(word);
  launch_wait(word, nullptr);
  NEED(cudaGetLastError());
  NEED(cudaDeviceSynchronize());
}

DeviceWords::DeviceWords(unsigned count) : count_(count) {
  NEED(cudaMalloc(reinterpret_cast<void**>(&words_), count * sizeof *words_));
  NEED(cudaMemset(words_, 0, count * sizeof *words_));
  NEED(cudaDeviceSynchronize());
}

DeviceWords::~DeviceWords() { cudaFree(words_); }

unsigned DeviceWords::first() const {
  unsigned word = 0;
  NEED(cudaDeviceSynchronize());
  NEED(cudaMemcpy(&word, words_, sizeof word, cudaMemcpyDeviceToHost));
  return word;
}

void DeviceWords::add(unsigned value, cudaStream_t stream) const {
  launch_add({words_, words_, value, count_}, stream);
}

PinnedWords::PinnedWords(unsigned count) {
  NEED(cudaMallocHost(reinterpret_cast<void**>(&words_), count * sizeof *words_));
  for (unsigned index = 0; index < count; ++index) words_[index] = 0;
}

PinnedWords::~PinnedWords() { cudaFreeHost(words_); }

OwnStream::OwnStream(unsigned flags) { NEED(cudaStreamCreateWithFlags(&stream_, flags)); }
OwnStream::~OwnStream() { cudaStreamDestroy(stream_); }

OwnEvent::OwnEvent(unsigned flags) { NEED(cudaEventCreateWithFlags(&event_, flags)); }
OwnEvent::~OwnEvent() { cudaEventDestroy(event_); }

Hold::Hold(cudaStream_t stream, std::chrono::milliseconds longest) : word_(next_word()) {
  launch_wait(word_, stream);
  NEED(cudaGetLastError());
  guard_ = std::thread([this, longest] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, longest, [this] { return released_; })) return;
    too_late_ = true;
    set_word(word_);
  });
}

bool Hold::release() {
  {
    const std::lock_guard lock(mutex_);
    released_ = true;
    set_word(word_);
  }
  changed_.notify_one();
  if (guard_.joinable()) guard_.join();
  return !too_late_;
}

std::string waits_for(cudaStream_t stream, const std::function<void()>& call) {
  for (int trial = 0; trial < 3; ++trial) {
    Hold hold(stream);
    call();
    const bool was_held = hold.release();
    NEED(cudaDeviceSynchronize());
    if (was_held) return "does not wait";
  }
  return "waits";
}

std::string done_after(cudaStream_t held, cudaStream_t other) {
  const DeviceWords words(1);
  const OwnEvent event;
  return waits_for(held, [&] {
    words.add(1, other);
    NEED(cudaEventRecord(event, other));
    NEED(cudaEventSynchronize(event));
  });
}

}  // namespace polyring::software_gpu
