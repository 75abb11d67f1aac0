// NCCL: the library, opened at run time, and an owner of one of its communicators. What includes this header
// needs no nccl.h; a build without it has nccl_absent.cpp in place of NCCL.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "collectives/cuda/gpu.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

struct NcclCalls;

/// A library that was opened, or the reason why there is none. It stays open until the process ends.
class NcclLibrary {
 public:
  /// The one that $POLYRING_NCCL names, else libnccl.so.2, opened at the first call.
  static const NcclLibrary& of_process();

  /// Opens this file, as dlopen() finds it.
  explicit NcclLibrary(const std::string& file);
  ~NcclLibrary();
  NcclLibrary(NcclLibrary&&) noexcept;

  bool found() const { return calls_ != nullptr; }
  /// One sentence with the remedy; empty if it was found.
  const std::string& why_not() const { return why_not_; }
  /// "2.28.9"; empty if it was not found.
  const std::string& version() const { return version_; }
  /// As ncclGetVersion() says it, such as 22809; 0 if it was not found.
  int version_code() const { return version_code_; }
  /// The file that was opened.
  const std::string& path() const { return path_; }

  /// Whether reductions of these are known to this version: bfloat16 and avg came with 2.10.
  bool reduces(ElementKind kind, ReduceOp op) const;

  /// Only if it was found.
  const NcclCalls& calls() const { return *calls_; }

 private:
  std::unique_ptr<const NcclCalls> calls_;
  std::string why_not_;
  std::string version_;
  int version_code_ = 0;
  std::string path_;
};

/// 22809 is "2.28.9"; up to 2.8 the code was shorter: 2708 is "2.7.8".
std::string nccl_version_text(int code);

/// The GPU of a rank.
struct NcclDevice {
  int index = 0;       // the calling thread's current device
  std::string bus_id;  // as cudaDeviceGetPCIBusId() gives it
  std::string uuid;    // of the GPU, or of the part of it that this process sees (MIG)
};

struct NcclOptions {
  /// For each wait: for the start, for a call, for what wait() waits for.
  Seconds limit{60};
  /// Calls return when the work is enqueued. Otherwise NCCL starts a thread for each call or group, which
  /// takes some 10 us, but a hung start or call can be ended in order. If blocking, a hung start leaves a
  /// thread behind, so that the process should end. Always so before NCCL 2.14.
  bool blocking = false;
  /// How wait() waits; false: it spins, as other transports do where ranks have cores of their own. Times are
  /// compared with theirs.
  bool yields = true;
};

/// Owns a communicator. One thread makes the calls; abort() may be called from any. Operations run on CUDA
/// streams; a call returns when its operation is enqueued. A failed call ends the communicator: it throws
/// Error(ExitCode::nccl) with what NCCL says, or Error(ExitCode::timeout) after the limit, and so does every
/// call after it. Both name the rank, its host, its GPU and the call.
class NcclCommunicator {
 public:
  /// Collective. Keeps the library's reference. Throws the same AgreedError on all ranks if one has no NCCL
  /// (ExitCode::not_available), if versions differ (ExitCode::nccl), or if two ranks have one GPU and NCCL
  /// does not permit it (ExitCode::not_available).
  NcclCommunicator(const NcclLibrary& library, const Bootstrap& bootstrap, const NcclDevice& device,
                   const NcclOptions& options);
  /// Waits for the other ranks' ends, up to the limit, if there was no error.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  Rank rank() const;
  int size() const;

  /// All buffers are device memory of this rank's GPU. Throws Error(ExitCode::not_available) for a kind or
  /// an operation that is newer than this NCCL.
  void all_reduce(const void* from, void* to, Count count, ElementKind kind, ReduceOp op,
                  cudaStream_t stream);
  /// `count` elements of each rank's result; `from` has size() times as many.
  void reduce_scatter(const void* from, void* to, Count count, ElementKind kind, ReduceOp op,
                      cudaStream_t stream);
  /// `count` elements of each rank's contribution; `to` has size() times as many.
  void all_gather(const void* from, void* to, Count count, ElementKind kind, cudaStream_t stream);
  /// Matched in the order of issue. Several make progress together only in one group.
  void send(const void* from, Count count, ElementKind kind, Rank to, cudaStream_t stream);
  void receive(void* to, Count count, ElementKind kind, Rank from, cudaStream_t stream);
  /// All calls on this communicator that `calls` makes, as one operation. Groups do not nest. If `calls`
  /// throws, the communicator is aborted.
  void group(const std::function<void()>& calls);

  /// Memory of NCCL's own on this rank's GPU, which it may use without copies; at least one byte. Local: from
  /// NCCL 2.19 on. Symmetric: from 2.27 on; all ranks allocate the same in the same order. Throws
  /// Error(ExitCode::not_available) for an older one, or where NCCL does not take it.
  Memory allocate(Bytes bytes, NcclMemory kind);

  /// For a graph that has captured calls: NCCL ends no communicator while there is one. Is called before an
  /// abort, unless the handle's end comes first.
  std::shared_ptr<void> before_abort(std::function<void()> destroy_graph);

  /// Throws if NCCL has reported an error since, or abort() was called.
  void check();
  /// Polls until `done` returns true. Ends the communicator when it does not within the limit for each of so
  /// many operations, or as check() does; then the streams run on, and results are undefined.
  void wait(const std::function<bool()>& done, int operations = 1);

  /// Ends what runs on the streams. Any number of times, from any thread.
  void abort();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace polyring
