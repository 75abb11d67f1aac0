// RankGpu: what collectives on CUDA streams need of their rank's transport on GPU memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/cuda/activity.hpp"
#include "collectives/cuda/memory.hpp"
#include "collectives/cuda/peers.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/transport.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring {
class NcclCommunicator;
}

namespace polyring::cuda {

class StreamWords;

class RankGpu {
 public:
  /// What one rank tells another; both know how long it is.
  struct Letter {
    Rank peer = 0;
    std::span<const std::byte> out;
    std::span<std::byte> in;
  };

  virtual ~RankGpu() = default;

  virtual Rank rank() const = 0;
  virtual int device() const = 0;
  virtual const Bootstrap& bootstrap() const = 0;
  virtual const RankHosts& hosts() const = 0;
  virtual const Peers& peers() const = 0;
  virtual const WaitRules& rules() const = 0;

  virtual ActivityLog& activities() = 0;

  virtual Memory allocate(Bytes size) = 0;
  /// See GpuPlugin.
  virtual void copy_inside(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void finish_stream(cudaStream_t stream) = 0;
  /// Throws a usage Error where this rank cannot reach the data.
  virtual GpuLocation locate(Rank for_whom, std::span<const std::byte> data) = 0;
  virtual std::byte* at(Rank rank, const GpuLocation& location) = 0;

  /// Returns when all are through. Throws Error(ExitCode::timeout) as the transport does.
  virtual void swap(std::span<const Letter> letters) = 0;
  /// Collective at the first call.
  virtual StreamWords& words() = 0;
  /// Of all ranks, made at the first call, which is collective. Null where there is none, with the reason,
  /// half a sentence, the same on all ranks.
  virtual NcclCommunicator* nccl(std::string& why_not) = 0;
  /// Something has failed: as Transport::abandon().
  virtual void break_off() = 0;
};

}  // namespace polyring::cuda
