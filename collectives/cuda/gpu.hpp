// GPUs, as the program sees them: a plug-in that is opened at run time, so that the program itself needs no
// CUDA. Nothing of CUDA is in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/transport.hpp"
#include "collectives/runtime/transports/joined.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring {

/// One that this process may use.
struct GpuDevice {
  int index = 0;     // from 0, as CUDA counts them here
  std::string id;    // no other GPU, nor slice of one (MIG), has it
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string pci;   // "0000:1b:00.0"; of a slice (MIG), its GPU's
  int major = 0;     // of the compute capability
  int minor = 0;
  Bytes memory;
};

/// The ranks' transport on memory of their GPUs.
struct GpuTransport {
  std::unique_ptr<Transport> transport;
  bool peers = false;    // ranks of a host reach each other's GPU memory
  std::string fallback;  // why they do not, although there are several
};

/// Calls that were captured as a CUDA graph, and are launched together. While they run, nothing else does on
/// their GPU.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;

  /// Launches them, behind those before them.
  virtual void start() = 0;
  /// As that of the collective, which lives longer.
  virtual void wait() = 0;
};

/// A collective that is enqueued on a stream of the rank's GPU, all of it at once: ours by one plan, or
/// NCCL's. All ranks run the same ones in the same order. It ends before its transport, or its NCCL.
class GpuCollective {
 public:
  virtual ~GpuCollective() = default;

  /// As Executor::run(), on GPU memory (ours: of the transport's allocate()), without waiting. On a stream of
  /// its own, behind those before it. Where buffers are new, those of all ranks are.
  virtual void start(const std::byte* input, std::byte* output) = 0;
  /// The same on a cudaStream_t, which may be captured if the buffers are known.
  virtual void start_on(void* stream, const std::byte* input, std::byte* output) = 0;
  /// Until all that was started is over, except for graphs; the time limit is that of one, times their
  /// number. Throws Error(ExitCode::timeout), where it is ours with the ranks that were waited for, and
  /// Error(ExitCode::nccl); after any failure the transport, or NCCL, is broken.
  virtual void wait() = 0;
  /// Of the last start() that was waited for: from its begin to its end on this GPU, in microseconds.
  virtual double last_us() const = 0;
  /// So many calls. All ranks capture the same, after start() on the same buffers.
  virtual std::unique_ptr<GpuGraph> capture(int calls, const std::byte* input, std::byte* output) = 0;

  /// What carries it: "NVIDIA H100, peer memory", "NVIDIA H100, peer memory and NCCL 2.28.9", or
  /// "NCCL 2.28.9".
  virtual std::string way() const = 0;
};

/// How memory of NCCL's own is registered: for this rank, or as a part of one window of all ranks.
enum class NcclMemory { local, symmetric };

/// NCCL's own collectives, on this rank's GPU.
class NcclCollectives {
 public:
  virtual ~NcclCollectives() = default;

  /// way() says it where there has been an allocate().
  virtual std::unique_ptr<GpuCollective> make(const CollectiveOf& what) = 0;

  /// Collective, in the same order on all ranks. Memory that NCCL uses without copies of its own; it ends
  /// before this. Throws Error(ExitCode::not_available) where this NCCL has none (before 2.19, and 2.27 for
  /// symmetric memory), or there is not as much.
  virtual Memory allocate(Bytes size, NcclMemory kind) = 0;
};

/// A place of data that is no GPU's index: pinned host memory, near the GPU at the copy's other end.
inline constexpr int kHostMemory = -1;

/// From and to where: indices of GPUs of this process, or kHostMemory for one of them. From a GPU to itself
/// it is copied inside its memory.
struct GpuCopy {
  int from = kHostMemory;
  int to = kHostMemory;
};

/// Where an address of this process leads to.
struct GpuAddress {
  int gpu = kHostMemory;  // whose memory it is
  Bytes allocated;  // from there to the end of what a transport's allocate() gave; 0: it gave nothing there
};

struct GpuCopyWork {
  Bytes size{64 << 20};  // of each copy, rounded down to whole words
  Seconds time{0.2};     // about so long, but `fewest` samples at least
  int fewest = 12;
  Seconds limit{60};  // of a sample, then Error(ExitCode::timeout) is thrown
};

struct GpuCopyRates {
  std::vector<double> GBps;       // samples; 1e9 bytes per second
  std::uint64_t wrong_bytes = 0;  // of what was copied
  bool direct = true;             // between GPUs: not through host memory
};

/// Copies by GPUs' copy engines.
class GpuCopies {
 public:
  virtual ~GpuCopies() = default;

  /// What each reaches while all of these are made at the same time, each on a stream of its own, timed by
  /// the GPU. No two of them are the same. Throws Error(ExitCode::cuda) where CUDA does, and
  /// Error(ExitCode::not_available) where memory is lacking.
  virtual std::vector<GpuCopyRates> run(std::span<const GpuCopy> at_once) = 0;
};

/// Products of two known matrices, side x side, of float16, added up in float32.
struct GpuProductWork {
  int side = 8192;     // kMostProductSide at most
  Seconds warm_up{1};  // at least so long; then
  Seconds time{1};     // about so long, but `fewest` samples at least
  int fewest = 12;
  Seconds limit{60};  // of a sample, then Error(ExitCode::timeout) is thrown
};
inline constexpr int kMostProductSide = 8192;
/// What these take of each GPU's memory: two matrices of float16, the result, and what it must be.
constexpr Bytes memory_of_products(int side) {
  return {std::uint64_t{12} * static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side)};
}

struct GpuProductRates {
  std::vector<double> TFLOPs;        // samples; 1e12 multiplications and additions per second
  std::uint64_t wrong_elements = 0;  // of all results, compared bit by bit
  std::int64_t products = 0;         // whose results were compared
};

struct GpuProducts {
  std::string why_not;                 // half a sentence; empty: they were made
  std::string way;                     // "products of 8192 x 8192 matrices of float16 by cuBLAS 13.0.2"
  std::vector<GpuProductRates> rates;  // of each GPU
};

/// Something that a GPU did, in time since GpuCompute::begin().
struct GpuActivity {
  enum class Kind { kernel, to_gpu, to_host, on_gpu };  // a kernel, or a copy and its direction
  Kind kind = Kind::kernel;
  Seconds begin;
  Seconds end;
};

/// What stands for the computation of a training step: kernels of no use, on a stream of their own, that take
/// as long as wanted while the GPU does nothing else. It also takes the time, by events, and has a stream for
/// the communication beside it.
class GpuCompute {
 public:
  enum class Stream { computing, communicating };
  /// The number of a moment on a stream, from 0 since begin().
  using Moment = std::size_t;

  virtual ~GpuCompute() = default;

  /// "products of 4096 x 4096 matrices by cuBLAS 13.0.2", or a loop of arithmetic and why there is no cuBLAS.
  virtual std::string way() const = 0;

  /// A step begins. Forgets all moments; nothing may be under way.
  virtual void begin() = 0;
  /// Enqueues what is still missing of this much computation since begin().
  virtual void compute_until(Seconds computed) = 0;
  /// How many kernels that were since begin().
  virtual std::uint64_t launches() const = 0;
  /// When the stream has done all that it was given.
  virtual Moment mark(Stream stream) = 0;
  /// What the stream is given from now on comes after the moment.
  virtual void order(Moment moment, Stream stream) = 0;
  /// The cudaStream_t for the communication.
  virtual void* communicating() = 0;
  /// Until the moment has passed. Throws Error(ExitCode::timeout) where that takes longer.
  virtual void wait(Moment moment, Seconds limit) = 0;
  /// From begin() to a moment that has passed.
  virtual Seconds at(Moment moment) = 0;

  /// Whether the transport's copies and kernels take their own times, too, which costs some.
  virtual void record(bool on) = 0;
  /// Those since begin(). All must be over.
  virtual std::vector<GpuActivity> activities() = 0;
};

/// The most that one takes of a GPU's memory.
inline constexpr Bytes kGpuComputeMemory{std::uint64_t{640} << 20};

class GpuPlugin {
 public:
  virtual ~GpuPlugin() = default;

  /// Of the CUDA runtime that is loaded: "13.0".
  virtual std::string cuda_version() const = 0;
  /// Throws Error(ExitCode::not_available) where there are none, or no driver, or one that is too old.
  virtual std::vector<GpuDevice> gpus() const = 0;
  /// Of this GPU's memory.
  virtual Bytes free_memory(int gpu) const = 0;

  /// Collective. Keeps the reference to the bootstrap. This rank's data are on the GPU of this index. `host`
  /// joins the same ranks on host memory; it carries what GPUs cannot pass to each other, and who has
  /// finished what. Several ranks may have one GPU. Throws Error(ExitCode::cuda) where CUDA does.
  virtual GpuTransport make_transport(std::unique_ptr<Transport> host, const Bootstrap& bootstrap,
                                      const RankHosts& hosts, int gpu, const WaitRules& rules) = 0;

  /// Asks CUDA. Throws Error(ExitCode::cuda) where it fails.
  virtual GpuAddress locate(const void* address) const = 0;
  /// On a transport of make_transport(): copies inside its GPU's memory, done on return.
  virtual void copy(Transport& transport, std::byte* to, std::span<const std::byte> from) = 0;
  /// On a transport of make_transport(): until a cudaStream_t of its GPU has done all that it was given.
  /// Throws Error(ExitCode::timeout) where that takes longer than the limit.
  virtual void finish(Transport& transport, void* stream) = 0;

  /// The version of the NCCL that this process would load, "2.28.9"; else why there is none: a sentence.
  struct Nccl {
    std::string version;
    std::string why_not;
  };
  virtual Nccl nccl() const = 0;
  /// "nccl", or "nccl:ring" where the environment (NCCL_ALGO) leaves one algorithm for this collective.
  virtual std::string nccl_name(Collective collective) const = 0;
  /// Collective. Throws an AgreedError where a rank has no NCCL, versions differ, or two ranks have one GPU
  /// and NCCL does not allow it; Error(ExitCode::timeout) where its start takes longer than the limit.
  virtual std::unique_ptr<NcclCollectives> make_nccl(const Bootstrap& bootstrap, const GpuDevice& gpu,
                                                     const WaitRules& rules) = 0;

  /// Collective, on a transport of make_transport(). Null where the collective cannot be enqueued, with the
  /// reason, half a sentence, the same on all ranks: then an Executor on the transport does it.
  virtual std::unique_ptr<GpuCollective> make_collective(Transport& transport, const Plan& plan,
                                                         const CollectiveOf& what, std::string& why_not) = 0;

  virtual std::unique_ptr<GpuCopies> make_copies(const GpuCopyWork& work) = 0;
  /// What each of these GPUs reaches while all of them multiply, timed by the GPU. Throws as GpuCopies does.
  virtual GpuProducts multiply(std::span<const int> gpus, const GpuProductWork& work) = 0;
  /// On the GPU of a transport of make_transport(), which it keeps. Finds out how long the kernels take
  /// there, for steps with about this much computation.
  virtual std::unique_ptr<GpuCompute> make_compute(Transport& transport, Seconds step) = 0;
};

/// For CommunicatorOptions::device: the buffers of a communicator of these ranks are on this GPU of the
/// rank's. Keeps the references.
MoveToDevice to_gpu(GpuPlugin& plugin, const Bootstrap& bootstrap, GpuDevice gpu);

/// What the plug-in exports: kGpuPluginEntry, of this type. Null where it is of another build than `build`.
using GpuPluginEntry = GpuPlugin* (*)(const char* build);
inline constexpr const char* kGpuPluginEntry = "polyring_gpu_plugin";

struct LoadedGpuPlugin {
  GpuPlugin* plugin = nullptr;
  std::string path;     // where it is, or was sought first
  std::string why_not;  // half a sentence; empty: it is loaded
};

/// The plug-in of this process: POLYRING_CUDA_PLUGIN, or what lies where this program was built or installed.
const LoadedGpuPlugin& gpu_plugin();

/// The same. Throws Error(ExitCode::not_available) where it cannot be had.
GpuPlugin& need_gpu_plugin();

}  // namespace polyring
