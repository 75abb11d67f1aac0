#include "tests/software_gpu/nccl/communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/software_gpu/software_gpu.hpp"

namespace polyring::software_nccl {
namespace {

constexpr std::chrono::milliseconds kTick{5};
constexpr std::uint64_t kMostPolls = 4;

bool shares_gpu() {
  const char* const value = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

Bytes gather_inputs(const Work& work) {
  Bytes all;
  polyring_software_gpu_allow();
  for (const Issued& issued : work.operations) {
    const auto* const from = static_cast<const std::byte*>(issued.input);
    if (issued.operation.input_bytes > 0) all.insert(all.end(), from, from + issued.operation.input_bytes);
  }
  polyring_software_gpu_forbid();
  return all;
}

void scatter_outputs(const Work& work, const Bytes& all) {
  const std::byte* from = all.data();
  polyring_software_gpu_allow();
  for (const Issued& issued : work.operations) {
    const std::size_t bytes = issued.operation.output_bytes;
    if (bytes > 0) std::memcpy(issued.output, from, bytes);
    from += bytes;
  }
  polyring_software_gpu_forbid();
}

}  // namespace

/// Work in a stream.
struct Communicator::Enqueued {
  std::shared_ptr<Communicator> communicator;
  Work work;
  std::uint64_t turn = 0;
  bool captured = false;  // runs any number of times, whenever its graph does

  ~Enqueued() {
    if (captured) --communicator->captured_;
  }
};

Communicator::Communicator(int rank, int size, int device, bool blocking, std::string root_path)
    : rank_(rank),
      size_(size),
      device_(device),
      blocking_(blocking),
      root_path_(std::move(root_path)),
      faults_(faults_of(rank)),
      random_(faults_.seed * 1000003 + static_cast<std::uint64_t>(rank)) {}

Communicator::~Communicator() { close(); }

void Communicator::set_phase(Phase phase) {
  phase_ = phase;
  changed_.notify_all();
}

void Communicator::start() {
  const std::lock_guard lock(mutex_);
  if (!blocking_) polls_left_ = static_cast<int>(random_() % kMostPolls);
  server_ = std::thread([this] { serve(); });
}

ncclResult_t Communicator::wait_until_ready() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return phase_ != Phase::starting; });
  return phase_ == Phase::failed ? fault_.code : ncclSuccess;
}

/// The thread that reads what the root says.
void Communicator::serve() {
  if (faults_.hung_start) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return phase_ == Phase::aborted; });
    return;
  }
  if (!greet()) return fail({ncclRemoteError, fmt::format("rank {} cannot reach the root", rank_)});
  while (std::optional<Message> message = connection_.read()) take(std::move(*message));
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::leaving) set_phase(Phase::left);
  const bool expected = phase_ == Phase::left || phase_ == Phase::failed || phase_ == Phase::aborted;
  lock.unlock();
  if (!expected) fail({ncclRemoteError, fmt::format("rank {} has lost the root", rank_)});
}

bool Communicator::greet() {
  Hello hello{rank_, size_, faults_.version, shares_gpu() ? 1 : 0, {}, {}};
  gethostname(hello.host, sizeof hello.host - 1);
  if (cudaDeviceGetPCIBusId(hello.bus_id, sizeof hello.bus_id, device_) != cudaSuccess) return false;
  Message message{Kind::hello, ncclSuccess, 0, Bytes(sizeof hello)};
  std::memcpy(message.content.data(), &hello, sizeof hello);
  Connection connection = connect_to(root_path_);
  if (!connection.is_open()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::aborted) return false;
    connection_ = std::move(connection);
  }
  return connection_.write(message);
}

void Communicator::take(Message message) {
  if (message.kind == Kind::fault) {
    const auto* const text = reinterpret_cast<const char*>(message.content.data());
    return fail({message.code, {text, message.content.size()}});
  }
  const std::lock_guard lock(mutex_);
  if (message.kind == Kind::welcome && phase_ == Phase::starting) set_phase(Phase::ready);
  if (message.kind == Kind::farewell && phase_ == Phase::leaving) set_phase(Phase::left);
  if (message.kind == Kind::result) answer_ = std::move(message.content);
  changed_.notify_all();
}

void Communicator::fail(const Fault& fault) {
  say(fmt::format("rank {}: {}", rank_, fault.text));
  end_with(fault);
}

void Communicator::end_with(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::failed || phase_ == Phase::aborted || phase_ == Phase::left) return;
  fault_ = fault;
  set_phase(Phase::failed);
}

std::string Communicator::last_fault() const {
  const std::lock_guard lock(mutex_);
  return fault_.text;
}

ncclResult_t Communicator::progress() {
  std::optional<Work> work;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::failed) return fault_.code;
    if (phase_ == Phase::starting || phase_ == Phase::leaving) return ncclInProgress;
    if (polls_left_ > 0) {
      --polls_left_;
      return ncclInProgress;
    }
    if (phase_ == Phase::ready && finalizing_) {
      if (turn_ == launched_) say_goodbye();
      return ncclInProgress;
    }
    work = std::exchange(put_off_, std::nullopt);
  }
  if (work) launch_now(std::move(*work));
  return ncclSuccess;
}

ncclResult_t Communicator::may_issue() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::failed) return fault_.code;
  if (phase_ == Phase::ready && !finalizing_ && polls_left_ == 0 && !put_off_) return ncclSuccess;
  say(fmt::format("rank {} used a communicator {}", rank_,
                  finalizing_ ? "after ncclCommFinalize" : "before its last call was complete"));
  return ncclInvalidArgument;
}

ncclResult_t Communicator::number(Operation& operation) {
  const std::lock_guard lock(mutex_);
  operation.number = ++operations_;
  return operation.number == faults_.refused_operation ? faults_.code : ncclSuccess;
}

void Communicator::launch(Work work) {
  if (blocking_) return launch_now(std::move(work));
  const std::lock_guard lock(mutex_);
  put_off_ = std::move(work);
  polls_left_ = static_cast<int>(random_() % kMostPolls);
}

void Communicator::launch_now(Work work) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(work.stream, &status);
  cudaStream_t const stream = work.stream;
  auto enqueued = std::make_unique<Enqueued>();
  enqueued->communicator = shared_from_this();
  enqueued->work = std::move(work);
  enqueued->captured = status == cudaStreamCaptureStatusActive;
  if (enqueued->captured) {
    ++captured_;
  } else {
    const std::lock_guard lock(mutex_);
    enqueued->turn = launched_++;
  }
  const auto run = [](void* context) {
    const auto* const each = static_cast<Enqueued*>(context);
    each->communicator->run(*each);
  };
  const auto destroy = [](void* context) { delete static_cast<Enqueued*>(context); };
  if (polyring_software_gpu_enqueue(stream, run, destroy, enqueued.release()) != cudaSuccess)
    fail({ncclUnhandledCudaError, "the stream takes no operation"});
}

/// As NCCL's commDestroySync() does, which also ncclCommAbort() comes to.
void Communicator::wait_for_graphs() const {
  constexpr int kPolls = 5000;
  for (int poll = 0; captured_ > 0 && poll < kPolls; ++poll)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (captured_ > 0)
    fail_loudly(
        fmt::format("rank {} ends a communicator while {} of its calls are in graphs: NCCL waits until these "
                    "are destroyed",
                    rank_, captured_.load()));
}

bool Communicator::is_over() {
  return phase_ == Phase::aborted || phase_ == Phase::left ||
         polyring_software_gpu_error(device_) != cudaSuccess;
}

/// What a kernel does that nobody ends: it stays until the communicator is aborted or the device is lost.
void Communicator::stay(std::unique_lock<std::mutex>& lock) {
  while (!is_over()) changed_.wait_for(lock, kTick);
}

bool Communicator::wait_for_turn(std::unique_lock<std::mutex>& lock, const Enqueued& enqueued) {
  while (running_ || (!enqueued.captured && turn_ != enqueued.turn)) {
    if (is_over()) return false;
    changed_.wait_for(lock, kTick);
  }
  return !is_over();
}

void Communicator::run(const Enqueued& enqueued) {
  std::unique_lock lock(mutex_);
  if (!wait_for_turn(lock, enqueued)) return note_lost_device();  // nobody waits for a turn any more
  running_ = true;
  if (has_planned_fault(enqueued.work)) {
    stay(lock);
  } else if (const std::optional<Bytes> outputs = ask_root(enqueued.work, lock)) {
    scatter_outputs(enqueued.work, *outputs);
  } else {
    stay(lock);
  }
  note_lost_device();
  running_ = false;
  if (!enqueued.captured) ++turn_;
  changed_.notify_all();
}

void Communicator::note_lost_device() {
  if (phase_ != Phase::ready || polyring_software_gpu_error(device_) == cudaSuccess) return;
  fault_ = {ncclUnhandledCudaError, fmt::format("device {} has an error", device_)};
  set_phase(Phase::failed);
}

bool Communicator::has_planned_fault(const Work& work) {
  const auto has = [&](std::uint64_t number) {
    return std::any_of(work.operations.begin(), work.operations.end(),
                       [&](const Issued& issued) { return issued.operation.number == number; });
  };
  if (has(faults_.failed_operation)) {
    fault_ = {faults_.code, fmt::format("operation {} failed, as the plan says", faults_.failed_operation)};
    set_phase(Phase::failed);
    return true;
  }
  return has(faults_.hung_operation);
}

std::optional<Bytes> Communicator::ask_root(const Work& work, std::unique_lock<std::mutex>& lock) {
  if (phase_ != Phase::ready) return std::nullopt;
  answer_.reset();
  lock.unlock();
  Message message{Kind::group, ncclSuccess, work.operations.size(), {}};
  for (const Issued& issued : work.operations) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&issued.operation);
    message.content.insert(message.content.end(), bytes, bytes + sizeof issued.operation);
  }
  const Bytes inputs = gather_inputs(work);
  message.content.insert(message.content.end(), inputs.begin(), inputs.end());
  connection_.write(message);  // where it fails, the reader knows
  lock.lock();
  while (!answer_ && phase_ == Phase::ready && !is_over()) changed_.wait_for(lock, kTick);
  return std::exchange(answer_, std::nullopt);
}

void Communicator::say_goodbye() {
  set_phase(Phase::leaving);
  connection_.write({Kind::goodbye, ncclSuccess, 0, {}});
}

ncclResult_t Communicator::finalize() {
  if (const ncclResult_t result = may_issue(); result != ncclSuccess) return result;
  std::unique_lock lock(mutex_);
  finalizing_ = true;
  if (!blocking_) return ncclInProgress;
  changed_.wait(lock, [&] { return turn_ == launched_ || phase_ != Phase::ready; });
  if (phase_ == Phase::ready) say_goodbye();
  changed_.wait(lock, [&] { return phase_ != Phase::leaving; });
  return phase_ == Phase::failed ? fault_.code : ncclSuccess;
}

void Communicator::abort() {
  {
    const std::lock_guard lock(mutex_);
    set_phase(Phase::aborted);
    put_off_.reset();
  }
  wait_for_graphs();
  close();
}

void Communicator::destroy() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> longest(limit());
  if (!changed_.wait_for(lock, longest, [&] { return turn_ == launched_ || phase_ != Phase::ready; })) {
    say(fmt::format("rank {} destroys a communicator with an operation that does not end", rank_));
  }
  if (phase_ == Phase::starting || phase_ == Phase::failed) {
    say(fmt::format("rank {} destroys a communicator that is only to be aborted", rank_));
  }
  if (phase_ == Phase::ready) say_goodbye();
  set_phase(Phase::aborted);
  lock.unlock();
  wait_for_graphs();
  close();
}

void Communicator::close() {
  {
    const std::lock_guard lock(mutex_);
    connection_.shut_down();
  }
  if (server_.joinable() && server_.get_id() != std::this_thread::get_id()) server_.join();
}

}  // namespace polyring::software_nccl
