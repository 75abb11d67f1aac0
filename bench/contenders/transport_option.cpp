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

const Known& find_known(const std::string& name) { return *std::ranges::find(kKnown, name, &Known::name); }

}  // namespace

void TransportOptions::add_to(Subcommand command) {
  std::vector<std::string> names;
  for (const Known& known : kKnown) names.emplace_back(known.name);
  command
      .add_option(
          "--transport", transport,
          "shared: memory inside hosts and MPI between them; mpi: MPI everywhere; tcp: TCP "
          "connections of our own everywhere; shared+tcp: memory inside hosts and these between "
          "them; auto: shared where it can be had. Ranks that are threads have TCP in the place of MPI")
      .show_default()
      .names({"transport", std::move(names)});
  command
      .add_option(
          "--tcp-interface", interface,
          "The network interface for TCP connections; without, that of the default route, or the first")
      .type_name("NAME");
}

std::unique_ptr<Communicator> open_communicator(const World& world, const TransportOptions& options,
                                                const std::optional<GpuDevice>& gpu) {
  const Known& known = find_known(options.transport);
  const MpiWorld* const mpi = as_mpi_world(world);
  if (mpi == nullptr && known.choice == TransportChoice::network && !known.tcp) {
    throw AgreedError(
        ExitCode::not_available,
        fmt::format("ranks that are {} have no MPI between them; choose transport shared or tcp, or start "
                    "them with mpirun",
                    world.kind()));
  }
  CommunicatorOptions how;
  if (mpi != nullptr) {
    how = over_mpi(*mpi, known.choice);
  } else {
    how.timeout = world.timeout();
    how.rules = world.wait_rules();
    how.transport = known.choice;
  }
  if (known.tcp) how.network = {};
  how.interface = options.interface;
  if (options.gpu.on_gpu()) {
    GpuPlugin& plugin = need_gpu_plugin();
    how.device = to_gpu(plugin, world, gpu ? *gpu : choose_gpu(world, plugin, options.gpu));
  }
  auto communicator = std::make_unique<Communicator>(world, std::move(how));
  const JoinedTransport& joined = communicator->joined();
  if (world.rank() == 0 && !joined.fallback.empty()) {
    if (options.gpu.on_gpu()) {
      warn("GPUs of a host do not reach each other's memory: {}", joined.fallback);
    } else {
      warn("messages go through {} inside hosts, too: {}", joined.name, joined.fallback);
    }
  }
  return communicator;
}

}  // namespace polyring
