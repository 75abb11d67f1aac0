// CollectiveCall: what a benchmark times. Either a collective of our own by one plan, or a vendor's call.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "collectives/cuda/gpu.hpp"

namespace polyring {

class CollectiveCall {
 public:
  virtual ~CollectiveCall() = default;

  /// The catalogue's algorithm, or the vendor's name: "multi-ring", "mpi".
  virtual std::string algorithm() const = 0;
  /// What carries it out: "polyring over MPI", "Open MPI 4.1.4".
  virtual std::string implementation() const = 0;

  /// Whether run() throws when another rank hangs. Otherwise somebody has to watch it.
  virtual bool keeps_time_limit() const = 0;

  /// All ranks must call it. Computes this rank's `output` of the collective from all ranks' `input`. Returns
  /// when `output` is complete and `input` is no longer read. The two are disjoint or, in place, where the
  /// shorter is the rank's block of the longer: the same address for an allreduce. An alltoall is not done in
  /// place.
  virtual void run(const std::byte* input, std::byte* output) = 0;

  /// run() without waiting, behind those before it, where a device goes on by itself; else run().
  virtual void start(const std::byte* input, std::byte* output) { run(input, output); }
  /// Whether a device goes on by itself.
  virtual bool is_enqueued() const { return false; }
  /// start() on a cudaStream_t, for those that are enqueued.
  virtual void start_on(void* /*stream*/, const std::byte* input, std::byte* output) { start(input, output); }
  /// Until all that start() began is over.
  virtual void finish() {}
  /// So many calls on these buffers, on which it was run before, as a CUDA graph; null where they cannot be
  /// one.
  virtual std::unique_ptr<GpuGraph> capture(int, const std::byte*, std::byte*) { return nullptr; }
  /// Of the last run(), by the clock of the device that did it, in microseconds; nothing: its caller's clock
  /// must do.
  virtual std::optional<double> device_us() const { return std::nullopt; }
};

}  // namespace polyring
