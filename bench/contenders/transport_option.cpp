#include "bench/contenders/transport_option.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "bench/cli/output.hpp"
#include "collectives/runtime/transports/mpi.hpp"

namespace polyring {
namespace {

struct Known {
  const char* name;
  TransportChoice choice;
  bool tcp;
};

constexpr std::array kKnown{
    Known{"auto", TransportChoice::automatic, false},   Known{"shared", TransportChoice::shared, false},
    Known{"mpi", TransportChoice::network, false},      Known{"tcp", TransportChoice::network, true},
    Known{"shared+tcp", TransportChoice::shared, true},
};

const Known& find_known(const std::string& name) {
  const auto* const found = std::ranges::find(kKnown, name, &Known::name);
  if (found != kKnown.end()) return *found;
  std::array<const char*, kKnown.size()> names{};
  std::ranges::transform(kKnown, names.begin(), &Known::name);
  usage_error("unknown transport '{}'; choose from {}", name, fmt::join(names, ", "));
}

}  // namespace

void TransportOptions::add_to(Subcommand command) {
  command
      .add_option("--transport", transport,
                  "shared: memory inside hosts and MPI between them; mpi: MPI everywhere; tcp: TCP "
                  "connections of our own everywhere; shared+tcp: memory inside hosts and these between "
                  "them; auto: shared where it can be had")
      .show_default();
  command
      .add_option(
          "--tcp-interface", interface,
          "The network interface for TCP connections; without, that of the default route, or the first")
      .type_name("NAME");
}

void TransportOptions::check() const { find_known(transport); }

std::unique_ptr<Communicator> open_communicator(const MpiWorld& world, const TransportOptions& options) {
  const Known& known = find_known(options.transport);
  CommunicatorOptions how = over_mpi(world, known.choice);
  how.interface = options.interface;
  if (known.tcp) how.network = {};
  auto communicator = std::make_unique<Communicator>(world, std::move(how));
  const std::string& fallback = communicator->joined().fallback;
  if (world.rank() == 0 && !fallback.empty()) warn("messages go through MPI inside hosts, too: {}", fallback);
  return communicator;
}

}  // namespace polyring
