// What the questions of the conformance suite are made with.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace polyring::software_gpu {

/// The error's name. The thread has no last error afterwards, unless it stays.
std::string named(cudaError_t code);
/// Ends the program where a call fails that no question is about.
void need(cudaError_t code, const char* call);
#define NEED(call) need(call, #call)

std::string yes_or_no(bool holds);

/// Loads all kernels, so that no later launch has to wait for that.
void warm_up();

/// Unsigned words in device memory, all 0 at first.
class DeviceWords {
 public:
  explicit DeviceWords(unsigned count);
  ~DeviceWords();
  DeviceWords(const DeviceWords&) = delete;
  DeviceWords& operator=(const DeviceWords&) = delete;

  unsigned* get() const { return words_; }
  unsigned count() const { return count_; }
  /// The first word, when all that the device was given is done.
  unsigned first() const;
  /// Adds to all words in a stream.
  void add(unsigned value, cudaStream_t stream) const;

 private:
  unsigned* words_ = nullptr;
  unsigned count_;
};

class PinnedWords {
 public:
  explicit PinnedWords(unsigned count);
  ~PinnedWords();
  PinnedWords(const PinnedWords&) = delete;
  PinnedWords& operator=(const PinnedWords&) = delete;
  unsigned* get() const { return words_; }

 private:
  unsigned* words_ = nullptr;
};

class OwnStream {
 public:
  explicit OwnStream(unsigned flags = cudaStreamNonBlocking);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor)

 private:
  cudaStream_t stream_ = nullptr;
};

class OwnEvent {
 public:
  explicit OwnEvent(unsigned flags = cudaEventDefault);
  ~OwnEvent();
  OwnEvent(const OwnEvent&) = delete;
  OwnEvent& operator=(const OwnEvent&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT(google-explicit-constructor)

 private:
  cudaEvent_t event_ = nullptr;
};

/// A kernel holds the stream until release(); or until some time has passed, so that a call that waits for
/// the stream ends too.
class Hold {
 public:
  explicit Hold(cudaStream_t stream, std::chrono::milliseconds longest = std::chrono::milliseconds(120));
  ~Hold() { release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  /// Whether the stream was still held.
  bool release();

 private:
  unsigned* word_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  bool too_late_ = false;
  std::thread guard_;
};

/// "waits" if `call` only returns when the stream goes on that was held before it; else "does not wait".
/// A busy machine does not change the answer: a call that waits does so each time.
std::string waits_for(cudaStream_t stream, const std::function<void()>& call);

/// The same for what `give` gives to another stream: is it only done when the held one goes on?
std::string done_after(cudaStream_t held, cudaStream_t other);

}  // namespace polyring::software_gpu
