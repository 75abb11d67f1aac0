#include <fmt/format.h>

#include <utility>

#include "collectives/cuda/gpu.hpp"

namespace polyring {

MoveToDevice to_gpu(GpuPlugin& plugin, const Bootstrap& bootstrap, GpuDevice gpu) {
  return [&plugin, &bootstrap, gpu = std::move(gpu)](JoinedTransport& joined, const RankHosts& hosts,
                                                     const WaitRules& rules) {
    GpuTransport made =
        plugin.make_transport(std::move(joined.transport), bootstrap, hosts, gpu.index, rules);
    joined.transport = std::move(made.transport);
    joined.fallback = std::move(made.fallback);
    if (!made.peers) {
      joined.name = fmt::format("{}, pinned memory and {}", gpu.name, joined.name);
    } else if (hosts.count() == 1) {
      joined.name = fmt::format("{}, peer memory", gpu.name);
    } else {
      joined.name = fmt::format("{}, peer memory inside hosts, pinned memory and {}", gpu.name, joined.name);
    }
  };
}

}  // namespace polyring
