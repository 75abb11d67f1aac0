// Streams: each does its operations one after the other, in a thread of its own, with delays.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "tests/software_gpu/device.hpp"
#include "tests/software_gpu/gate.hpp"
#include "tests/software_gpu/plan.hpp"

namespace polyring::software_gpu {

struct Capture;

struct Operation {
  const char* what = "";
  std::function<void()> run;  // throws Failure where the device fails by it
  bool counts = true;         // by the plan's faults; and is delayed
  bool on_lost_device = false;
  std::vector<Point> after = {};
  std::optional<Fault> fault = std::nullopt;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class Kind { legacy, blocking, non_blocking };

  Stream(Device& its_device, Kind its_kind, int its_priority);

  Device& device;
  const Kind kind;
  const int priority;
  const unsigned long long id;

  /// After all that it was given up to now.
  Point end() const;
  /// Ends its thread when all is done.
  void close();

  // Under Process::mutex.
  std::shared_ptr<Capture> capture;
  std::vector<int> tail;  // what the next captured operation depends on

 private:
  friend Point push(Stream& stream, Operation operation);
  void work();

  std::mt19937_64 random_;
  std::shared_ptr<Gate> done_ = std::make_shared<Gate>();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queue_;
  std::uint32_t enqueued_ = 0;
  bool has_thread_ = false;
  bool closing_ = false;
};

/// Makes a stream of a device. Process::mutex is held, as for all that follows.
std::shared_ptr<Stream> make_stream(Device& device, Stream::Kind kind, int priority);
/// The stream of a handle; throws Failure where there is none.
Stream& stream_of(cudaStream_t handle);
void destroy_stream(cudaStream_t handle);

/// Gives an operation to a stream: in its order, with the default stream's barrier; or to its capture.
Point submit(Stream& stream, Operation operation);
/// The same without barrier and capture.
Point push(Stream& stream, Operation operation);

/// After all that the device was given up to now.
std::vector<Point> ends_of(Device& device);

/// In a stream's thread: does an operation, or the fault that the plan has for it.
void perform(Device& device, Operation& operation, std::mt19937_64& random);

/// Waits without holding Process::mutex, and throws Failure if the device has an error then.
void wait_for(const std::vector<Point>& points, const Device& device);

}  // namespace polyring::software_gpu
