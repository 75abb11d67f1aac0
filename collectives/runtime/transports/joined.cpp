#include "collectives/runtime/transports/joined.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "collectives/runtime/transports/composed.hpp"
#include "collectives/runtime/transports/shared.hpp"

namespace polyring {

JoinedTransport join(const Bootstrap& bootstrap, const RankHosts& hosts, TransportChoice choice,
                     const MakeNetwork& make_network, const WaitRules& rules) {
  JoinedTransport joined;
  std::unique_ptr<Transport> shared;
  if (choice != TransportChoice::network && hosts.count() < hosts.ranks()) {
    shared = make_shared_transport(bootstrap, hosts.neighbors(bootstrap.rank()), rules, joined.fallback);
  } else if (choice == TransportChoice::shared && hosts.ranks() > 1) {
    joined.fallback = "no two ranks are on one host";
  }
  if (choice == TransportChoice::shared && !joined.fallback.empty()) {
    throw AgreedError(
        ExitCode::not_available,
        fmt::format("shared memory cannot be used: {}; choose another transport", joined.fallback));
  }
  if (shared && hosts.count() == 1) {
    joined.transport = std::move(shared);
    joined.name = "shared memory";
    return joined;
  }
  Network network = make_network();
  joined.name = shared ? fmt::format("shared memory and {}", network.name) : network.name;
  joined.message = network.message;
  joined.unasked = network.unasked;
  joined.transport =
      shared ? compose(std::move(shared), std::move(network.transport), rules) : std::move(network.transport);
  return joined;
}

}  // namespace polyring
