#include "collectives/runtime/hosts.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/boot_id.hpp"

namespace polyring {
namespace {

/// Where a rank runs.
struct Presence {
  std::array<char, 256> host;
  std::array<char, 64> kernel;  // the same for all of a machine's containers and network namespaces
  cpu_set_t cores;              // that it may use
};

Presence own_presence() {
  Presence own{};
  gethostname(own.host.data(), own.host.size() - 1);
  boot_id(own.host.data()).copy(own.kernel.data(), own.kernel.size() - 1);
  if (sched_getaffinity(0, sizeof(own.cores), &own.cores) != 0) {
    const long online = std::min<long>(sysconf(_SC_NPROCESSORS_ONLN), CPU_SETSIZE);
    for (long core = 0; core < online; ++core) CPU_SET(static_cast<std::size_t>(core), &own.cores);
  }
  return own;
}

bool outnumber_their_cores(const Presence& own, const std::vector<Presence>& all) {
  int ranks = 0;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const Presence& presence : all) {
    if (presence.kernel != own.kernel) continue;
    ++ranks;
    CPU_OR(&cores, &cores, &presence.cores);
  }
  return ranks > CPU_COUNT(&cores);
}

}  // namespace

GroupHosts find_hosts(const Bootstrap& bootstrap) {
  const Presence own = own_presence();
  std::vector<Presence> all;
  for (const std::vector<std::byte>& bytes : bootstrap.allgather(std::as_bytes(std::span(&own, 1))))
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof(Presence));
  std::vector<HostKey> keys;
  for (const Presence& presence : all) keys.push_back({presence.kernel.data(), presence.host.data()});
  return {rank_hosts(keys), outnumber_their_cores(own, all)};
}

}  // namespace polyring
