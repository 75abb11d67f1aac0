// Group: a Communicator for C programs. Any thread may use it; each call holds it for itself.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "collectives/cuda/gpu.hpp"
#include "collectives/library/c/options.hpp"
#include "collectives/library/topology/topology.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/processes.hpp"

namespace polyring::library {

/// What a rank calls, for the others to compare.
struct Called;

class Group {
 public:
  /// Collective. Throws Error(ExitCode::not_available) where there is no such GPU, or no CUDA.
  Group(std::unique_ptr<Bootstrap> bootstrap, GroupOptions options);
  /// Gives up what is under way.
  ~Group() { give_up(); }

  /// Never changes, so it needs no lock.
  const Communicator& communicator() const { return communicator_; }

  /// "by rules, since all ranks share one host"
  const std::string& planning() const { return planning_.text; }

  /// A number for test() and wait(), which no other operation of the group has.
  using Request = std::uint64_t;

  /// `count`: elements of the longer of the two buffers. Throws a usage Error for null pointers and counts
  /// that cannot be.
  Request start(CollectiveOf what, const void* input, void* output);
  void run(CollectiveOf what, const void* input, void* output);
  Request start_broadcast(void* buffer, Count count, ElementKind kind, int root);
  Request start_barrier();
  void barrier();

  /// Whether it is over, or never was. What it throws has ended the operation.
  bool test(Request request);
  void wait(Request request);
  /// Collective where nothing is under way: waits until no rank needs this one any more. From now on all
  /// calls fail, also where this throws.
  void end();
  /// Not collective: breaks the communicator, so that all calls fail, also one that waits in another thread.
  void abort();

  /// On a cudaStream_t, by GpuCollective. Throws Error(ExitCode::not_available) where that cannot be.
  void enqueue(const CollectiveOf& what, const void* input, void* output, void* stream);
  void wait_for_enqueued();
  /// Until a stream of the program has done what it was given.
  void wait_for_stream(void* stream);

  void* allocate(Bytes bytes);
  /// Throws a usage Error for memory that is not allocate()'s.
  void free(void* memory);

  /// Throws a usage Error for what Communicator::register_memory() refuses, and for what overlaps
  /// allocate()'s or other registered memory, or is used by an operation that has not been waited for.
  void register_memory(void* buffer, std::size_t bytes);
  /// Throws a usage Error for what is not registered, or in use.
  void deregister_memory(void* buffer);

 private:
  CommunicatorOptions completed(CommunicatorOptions options);
  void give_up() noexcept;
  void deregister_all();
  void check_unused(const void* buffer, std::size_t bytes) const;
  void agree(const Called& own);
  void agree(const CollectiveOf& what, int root);
  void meet();
  void run_small(const CollectiveOf& what, std::span<const std::byte> input, std::span<std::byte> output);
  void set_to_zero(std::span<std::byte> data) const;
  GpuCollective& enqueued(const CollectiveOf& what);
  void finish_enqueued();
  template <typename Action>
  void attempt_enqueued(Action&& action);
  void check(const CollectiveOf& what, const void* input, const void* output) const;
  struct Buffers {
    std::span<const std::byte> input;
    std::span<std::byte> output;
  };
  Buffers buffers_of(const CollectiveOf& what, const void* input, void* output) const;
  void check_places(const CollectiveOf& what, const void* input, void* output);
  void check_allocated(std::span<const std::byte> buffer) const;
  void run_now(const CollectiveOf& what, const std::byte* input, std::byte* output);

  /// What was started, what its end leaves to be done, and the program's buffers that it uses until then.
  struct Started {
    Operation operation;
    std::function<void()> finish{};
    std::array<std::span<const std::byte>, 2> buffers{};
  };

  Started started(const CollectiveOf& what, const std::byte* input, std::byte* output);
  void finish(Started now);
  template <typename Action>
  void breaking(Action&& action);
  Started started_broadcast(std::byte* data, std::size_t bytes, bool sends);
  Request keep(Started started);

  struct Allocated {
    Memory memory;
    Bytes bytes;
  };

  std::mutex mutex_;
  std::unique_ptr<Bootstrap> bootstrap_;
  bool check_;
  std::optional<GpuDevice> gpu_;
  Processes processes_;
  std::atomic<bool> aborted_ = false;
  bool is_created_ = false;
  Planning planning_;
  Communicator communicator_;
  std::map<void*, Allocated> memory_;
  std::map<void*, std::size_t> registered_;  // their bytes
  Request last_ = 0;
  std::map<Request, Started> operations_;
  std::map<CollectiveOf, std::unique_ptr<GpuCollective>> on_stream_;
};

}  // namespace polyring::library
