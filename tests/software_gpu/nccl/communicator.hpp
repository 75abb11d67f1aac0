// One rank's side of a communicator of the fake NCCL.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/software_gpu/nccl/matching.hpp"
#include "tests/software_gpu/nccl/operation.hpp"
#include "tests/software_gpu/nccl/plan.hpp"
#include "tests/software_gpu/nccl/wire.hpp"

namespace polyring::software_nccl {

/// An operation and its buffers.
struct Issued {
  Operation operation;
  const void* input = nullptr;  // null where there is none
  void* output = nullptr;
};

/// The operations of a group on one communicator.
struct Work {
  std::vector<Issued> operations;
  cudaStream_t stream = nullptr;
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(int rank, int size, int device, bool blocking, std::string root_path);
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int device() const { return device_; }
  bool blocks() const { return blocking_; }

  /// Begins to look for the others.
  void start();
  /// Until start() has come to its end.
  ncclResult_t wait_until_ready();
  /// What ncclCommGetAsyncError() says. Work that was put off is launched here.
  ncclResult_t progress();
  /// ncclSuccess if operations may be issued.
  ncclResult_t may_issue();
  /// The number of the next operation; the code of a refusal by plan.
  ncclResult_t number(Operation& operation);
  /// A communicator that does not block may put it off until it is polled.
  void launch(Work work);
  /// In progress until its work is done and all ranks have called it; one that blocks waits for that.
  ncclResult_t finalize();
  void abort();
  /// Ends what finalize() has not.
  void destroy();
  void fail(const Fault& fault);
  /// The same, of what was said.
  void end_with(const Fault& fault);
  std::string last_fault() const;

 private:
  enum class Phase { starting, ready, leaving, left, failed, aborted };
  struct Enqueued;

  void serve();
  bool greet();
  void take(Message message);
  void launch_now(Work work);
  void wait_for_graphs() const;
  void run(const Enqueued& enqueued);
  bool wait_for_turn(std::unique_lock<std::mutex>& lock, const Enqueued& enqueued);
  bool is_over();
  void note_lost_device();
  void say_goodbye();
  bool has_planned_fault(const Work& work);
  std::optional<Bytes> ask_root(const Work& work, std::unique_lock<std::mutex>& lock);
  void stay(std::unique_lock<std::mutex>& lock);
  void close();
  void set_phase(Phase phase);

  const int rank_;
  const int size_;
  const int device_;
  const bool blocking_;
  const std::string root_path_;
  const Faults faults_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::starting;
  Fault fault_{ncclSuccess, ""};
  Connection connection_;
  std::thread server_;
  std::mt19937_64 random_;
  int polls_left_ = 0;           // that still say ncclInProgress
  std::optional<Work> put_off_;  // until then
  std::uint64_t operations_ = 0;
  std::uint64_t launched_ = 0;    // works with a turn
  std::atomic<int> captured_{0};  // works that graphs have
  std::uint64_t turn_ = 0;        // whose it is
  bool running_ = false;          // a work
  std::optional<Bytes> answer_;
  bool finalizing_ = false;
};

}  // namespace polyring::software_nccl
