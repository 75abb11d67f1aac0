// StreamCollective: a collective that a rank enqueues on a CUDA stream, all of it at once: no step waits on
// the CPU. Exchanges and messages inside a host are kernels that wait for each other's words in GPU memory;
// messages may also be NCCL's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "collectives/cuda/graph.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/rank_gpu.hpp"
#include "collectives/cuda/spin_queue.hpp"
#include "collectives/cuda/stream_binding.hpp"
#include "collectives/cuda/stream_plan.hpp"

namespace polyring::cuda {

/// What is computed, by what.
struct StreamSchedule {
  Schedule schedule;
  StaticOrder order;  // this rank's
  ElementKind kind = ElementKind::float32;
  ReduceOp op = ReduceOp::sum;
  Partials partials = Partials::apart;  // with which the order was made
};

/// Why this rank cannot do it on a stream, half a sentence; empty: it can. `by_nccl`: messages are NCCL's.
std::string why_not_on_stream(const RankGpu& gpu, const StreamSchedule& what, bool by_nccl);

/// All ranks launch the same collectives of their transport in the same order, repeated graphs included.
class StreamCollective {
 public:
  /// Collective. Only where no rank has a reason against it. Keeps the references; without NCCL, messages are
  /// kernels'.
  StreamCollective(RankGpu& gpu, NcclCommunicator* nccl, StreamSchedule what);
  /// Waits for what was launched, not for graphs.
  ~StreamCollective();
  StreamCollective(const StreamCollective&) = delete;
  StreamCollective& operator=(const StreamCollective&) = delete;

  /// Enqueues it behind what the stream has, and returns. The first time with these two buffers the ranks of
  /// a host tell each other their addresses: then, and only then, it waits for the others to launch it, too.
  /// So all ranks give buffers that are new together at the same launch; memory that is given again is what
  /// it was. Where the stream is being captured, the buffers must be known; the graph must not run beside
  /// other collectives of this GPU. Buffers are apart or in place, as for Executor::run(). After a failure it
  /// throws that.
  void launch(const std::byte* input, std::byte* output, cudaStream_t stream);

  /// Launches a graph of launches of this collective, and records the event behind it.
  void launch(const CapturedGraph& graph, cudaEvent_t ended, cudaStream_t stream);

  /// Until the last launch has ended. At the limit, or where an event says that the GPU or NCCL failed, ends
  /// what is under way and throws. Error(ExitCode::timeout) names those who were waited for. Then the
  /// transport is broken.
  void wait(Seconds limit);
  /// The same, for what an event stands for: behind a graph with this collective, for example.
  void wait(cudaEvent_t event, Seconds limit);

  /// What carries it between ranks: "peer memory", "NCCL 2.28.9", "peer memory and NCCL 2.28.9"; empty:
  /// nothing need be carried.
  std::string way() const;

  /// Null where no message is NCCL's.
  NcclCommunicator* nccl() const { return nccl_; }

  /// Behind the last launch; it has a time.
  cudaEvent_t ended() const { return ended_.get(); }

 private:
  using Buffers = std::pair<const std::byte*, std::byte*>;

  const StreamBinding& bound(const std::byte* input, std::byte* output, bool capturing);
  void enqueue(const StreamBinding& binding, cudaStream_t stream);
  void run(const CopyCommand& command, cudaStream_t stream) const;
  void run(const ReduceCommand& command, cudaStream_t stream) const;
  void run(const ExchangeCommand& command, cudaStream_t stream) const;
  void run(const MessageCommand& command, cudaStream_t stream) const;
  void run(const NcclCommand& command, cudaStream_t stream) const;
  void run(const ForkStep& fork, cudaStream_t stream) const;
  void run(const MarkStep& mark, cudaStream_t stream) const;
  void run(const JoinStep& join, cudaStream_t stream) const;

  bool ends(cudaEvent_t event, Seconds limit) const;
  void end_now(cudaEvent_t event) const;
  [[noreturn]] void fail(cudaEvent_t event, const Error& error);
  std::string sentence(Seconds limit) const;

  RankGpu& gpu_;
  NcclCommunicator* nccl_;
  StreamSchedule what_;
  StreamPlan plan_;
  Residency residency_;
  Memory slots_;
  Stream computing_;  // where the plan has two streams
  Event forked_;
  std::vector<Event> marks_;  // the last ones; who waits for an earlier one may wait for a later
  std::shared_ptr<CUevent_st> ended_;
  bool launched_ = false;
  SpinQueue& queue_;
  int most_blocks_;  // of kernels that do not wait
  std::map<Buffers, StreamBinding> bindings_;
  std::optional<Error> failure_;
};

}  // namespace polyring::cuda
