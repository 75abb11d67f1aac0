#include "tests/software_gpu/stream.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <unordered_map>

#include "tests/software_gpu/capture.hpp"
#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/process.hpp"

namespace polyring::software_gpu {
namespace {

std::atomic<unsigned long long> streams_made{0};

/// The streams that programs have made, by handle.
std::unordered_map<cudaStream_t, std::shared_ptr<Stream>>& made_streams() {
  static auto* const streams = new std::unordered_map<cudaStream_t, std::shared_ptr<Stream>>;
  return *streams;
}

std::mt19937_64 random_of(const Device& device) {
  const Plan& plan = Process::get().plan;
  std::seed_seq seed{plan.delays.seed, static_cast<std::uint64_t>(plan.rank + 1),
                     static_cast<std::uint64_t>(device.physical),
                     static_cast<std::uint64_t>(device.streams_made)};
  return std::mt19937_64(seed);
}

/// Signals go to the program's own threads, except those that this thread's own instructions cause.
void block_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&signals, own);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
}

void delay(std::mt19937_64& random) {
  const Delays& delays = Process::get().plan.delays;
  if (delays.up_to_ns <= 0 || random() % delays.one_in != 0) return;
  std::this_thread::sleep_for(
      std::chrono::nanoseconds(random() % static_cast<std::uint64_t>(delays.up_to_ns)));
}

std::string place_of(const Device& device, const Operation& operation) {
  return "device " + std::to_string(device.physical) + ", operation " + std::to_string(operation.fault->at) +
         " (" + operation.what + ")";
}

void suffer(Device& device, const Operation& operation) {
  switch (operation.fault->kind) {
    case Fault::Kind::lost:
      say("as planned, the device is lost: " + place_of(device, operation));
      return device.fail(operation.fault->as);
    case Fault::Kind::hung:
      say("as planned, the stream hangs: " + place_of(device, operation));
      for (;;) pause();
    case Fault::Kind::killed:
      say("as planned, the process is killed: " + place_of(device, operation));
      kill(getpid(), SIGKILL);
      return;
    case Fault::Kind::failed_allocation:
      return;
  }
}

/// The stream that stands for the default one of each thread, where a program asks for that.
Stream& stream_of_thread(Device& device) {
  thread_local std::unordered_map<Device*, std::shared_ptr<Stream>> streams;
  auto& stream = streams[&device];
  if (stream == nullptr) stream = make_stream(device, Stream::Kind::blocking, 0);
  return *stream;
}

Stream& legacy_stream(Device& device) {
  if (device.legacy == nullptr) device.legacy = make_stream(device, Stream::Kind::legacy, 0);
  return *device.legacy;
}

/// What an operation waits for beside those before it in its own stream.
std::vector<Point> barrier_before(Stream& stream) {
  std::vector<Point> before;
  Device& device = stream.device;
  if (stream.kind == Stream::Kind::blocking && device.legacy != nullptr)
    before.push_back(device.legacy->end());
  if (stream.kind == Stream::Kind::legacy) {
    for (const auto& other : device.streams)
      if (other->kind == Stream::Kind::blocking) before.push_back(other->end());
    before.insert(before.end(), device.destroyed_streams.begin(), device.destroyed_streams.end());
  }
  std::erase_if(before, [](const Point& point) { return point.reached(); });
  return before;
}

}  // namespace

Stream::Stream(Device& its_device, Kind its_kind, int its_priority)
    : device(its_device),
      kind(its_kind),
      priority(its_priority),
      id(++streams_made),
      random_(random_of(its_device)) {}

Point Stream::end() const {
  const std::lock_guard lock(mutex_);
  return {done_, enqueued_};
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_one();
}

void Stream::work() {
  block_signals();
  for (;;) {
    Operation operation;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      operation = std::move(queue_.front());
      queue_.pop_front();
    }
    for (const Point& point : operation.after) point.wait();
    perform(device, operation, random_);
    operation = {};  // what it holds goes before the next thread knows that it is done
    std::uint32_t ticket = 0;
    {
      const std::lock_guard lock(mutex_);
      ticket = enqueued_ - static_cast<std::uint32_t>(queue_.size());
    }
    done_->advance(ticket);
  }
}

void perform(Device& device, Operation& operation, std::mt19937_64& random) {
  if (operation.counts) delay(random);
  if (device.error() != cudaSuccess && !operation.on_lost_device) return;
  if (operation.fault) return suffer(device, operation);
  try {
    operation.run();
  } catch (const Failure& failure) {
    device.fail(failure.code);
  }
}

std::shared_ptr<Stream> make_stream(Device& device, Stream::Kind kind, int priority) {
  ++device.streams_made;
  auto stream = std::make_shared<Stream>(device, kind, priority);
  device.streams.push_back(stream);
  made_streams().emplace(reinterpret_cast<cudaStream_t>(stream.get()), stream);
  return stream;
}

Stream& stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream(Process::get().current());
  if (handle == cudaStreamPerThread) return stream_of_thread(Process::get().current());
  const auto found = made_streams().find(handle);
  require(found != made_streams().end(), cudaErrorInvalidResourceHandle);
  return *found->second;
}

void destroy_stream(cudaStream_t handle) {
  const auto found = made_streams().find(handle);
  require(found != made_streams().end(), cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Stream> stream = found->second;
  require(stream->kind != Stream::Kind::legacy, cudaErrorInvalidResourceHandle);
  invalidate_capture(*stream);
  Device& device = stream->device;
  std::erase_if(device.destroyed_streams, [](const Point& point) { return point.reached(); });
  device.destroyed_streams.push_back(stream->end());
  std::erase(device.streams, stream);
  made_streams().erase(found);
  stream->close();
}

Point submit(Stream& stream, Operation operation) {
  refuse_default_stream_in_capture(stream);
  if (stream.capture != nullptr) {
    add_to_capture(stream, std::move(operation));
    return {};
  }
  const std::vector<Point> before = barrier_before(stream);
  operation.after.insert(operation.after.end(), before.begin(), before.end());
  return push(stream, std::move(operation));
}

Point push(Stream& stream, Operation operation) {
  if (operation.counts) operation.fault = stream.device.next_operation();
  const std::lock_guard lock(stream.mutex_);
  stream.queue_.push_back(std::move(operation));
  ++stream.enqueued_;
  if (!stream.has_thread_) {
    stream.has_thread_ = true;
    std::thread([self = stream.shared_from_this()] { self->work(); }).detach();
  }
  stream.changed_.notify_one();
  return {stream.done_, stream.enqueued_};
}

std::vector<Point> ends_of(Device& device) {
  std::vector<Point> ends = device.destroyed_streams;
  for (const auto& stream : device.streams) ends.push_back(stream->end());
  return ends;
}

void wait_for(const std::vector<Point>& points, const Device& device) {
  for (const Point& point : points) point.wait();
  require(device.error() == cudaSuccess, device.error());
}

}  // namespace polyring::software_gpu
