// Whether the ranks' data are on GPUs: the options, and which rank has which GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_room.hpp"
#include "bench/cli/command_line.hpp"
#include "bench/plans/job_hosts.hpp"
#include "collectives/cuda/gpu.hpp"
#include "collectives/runtime/world.hpp"
#include "collectives/schedule/data_device.hpp"
#include "reports/result.hpp"

namespace polyring {

struct GpuOptions {
  std::string device = "cpu";  // or "cuda"
  bool share = false;          // ranks of a host may have one GPU
  std::string gpus;            // indices, for the ranks of each host; empty: all

  bool on_gpu() const { return data_device() == DataDevice::cuda; }
  DataDevice data_device() const { return polyring::data_device(device).value_or(DataDevice::cpu); }

  /// Adds --device, --gpus and --share-gpu.
  void add_to(Subcommand command);
  /// For before MPI is started: throws a usage Error for a list that is none, and
  /// Error(ExitCode::not_available) where this build has no plug-in, or none can be loaded.
  void check() const;
  /// For before MPI is started, too: what probe_with_gpus() says of this host; empty where none
  /// are used.
  std::string probe(Seconds limit) const;
  /// Whether the GPUs are tests' software, whose times say nothing.
  bool is_software() const;
  /// Where GPUs are used: adds the version of CUDA, the first GPU's name, which rank had which, and what the
  /// result does not tell; `hosts` are gpu_hosts(), and `timed` says how things were timed, a sentence.
  void describe(ResultFile& result, const std::optional<JobHosts>& hosts,
                std::string_view timed = kCallsTimed) const;
  static constexpr std::string_view kCallsTimed =
      "Calls that are enqueued on streams are timed by CUDA's events, unless they are timed in blocks, and "
      "all others by the host's clock.";
};

/// A rank, and the GPUs that its process sees.
struct RankGpus {
  int host = 0;
  std::string host_name;
  std::vector<std::string> ids;  // of its GPUs, in the order of their indices; empty: it sees none
  std::string why_none;
};

/// The index of each rank's GPU, among those that its process sees. The ranks of a host that see the same
/// GPUs take them in turn. `wanted`: the indices that they may take; empty: all. Throws an AgreedError where
/// a rank sees none or an index does not exist, and unless `share` where two ranks would have one.
std::vector<int> assign_gpus(const std::vector<RankGpus>& ranks, const std::vector<int>& wanted, bool share);

/// Collective. This rank's GPU.
GpuDevice choose_gpu(const World& world, GpuPlugin& plugin, const GpuOptions& options);

/// Collective. The ranks on their GPUs; nothing where their data are in the hosts' memory. `own_host` is what
/// GpuOptions::probe() said. Throws as choose_gpu() does, and for a host that could not be probed.
std::optional<JobHosts> gpu_hosts(const World& world, const GpuOptions& options, const std::string& own_host);

/// Collective. What memory this rank may still take, with that of its GPU where it has one.
MemoryRoom memory_room(const World& world, const GpuOptions& options);

}  // namespace polyring
