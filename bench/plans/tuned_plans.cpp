#include "bench/plans/tuned_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bench/cli/output.hpp"
#include "bench/plans/tuned_file.hpp"
#include "bench/record/emulation.hpp"
#include "bench/session/collective.hpp"
#include "reports/environment.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring {
namespace {

/// Settings of MPI libraries that choose among a host's networks.
constexpr std::array kNetworkSettings{
    "OMPI_MCA_btl",
    "OMPI_MCA_btl_tcp_if_exclude",
    "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_pml",
    "UCX_NET_DEVICES",
    "UCX_TLS",
};

/// Where it is: the same for all choices that are compared.
TuningPlace with_transport(TuningPlace place, const std::string& transport) {
  place.transport = transport;
  return place;
}

/// What the file has for this place. An absent default file has nothing.
std::vector<TunedPlan> choices_here(const std::filesystem::path& file, bool by_default, const World& world,
                                    DataDevice device) {
  std::error_code unknown;  // then read_file() says why
  if (by_default && !std::filesystem::exists(file, unknown) && !unknown) return {};
  std::vector<TunedPlan> choices;
  try {
    choices = parse_tuned(read_file(file), file.string());
  } catch (const Error& error) {
    if (!by_default) throw;
    warn("goes on without tuned plans: {}", error.what());
    return {};
  }
  const TuningPlace here = place_of(world, device);
  std::erase_if(choices, [&](const TunedPlan& choice) {
    return choice.place != with_transport(here, choice.place.transport);
  });
  if (choices.empty() && !by_default) {
    warn("nothing in '{}' is for {} on {} of this kind", file.string(),
         counted(world.size(), device == DataDevice::cuda ? "GPU" : "rank"),
         world.nodes() == 1 ? "1 host" : fmt::format("{} hosts and a network", world.nodes()));
  }
  return choices;
}

}  // namespace

std::string network_text(const Machine& machine, const std::map<std::string, std::string>& settings) {
  std::map<std::string, int> ports;
  for (const Nic& nic : machine.nics) {
    for (const Port& port : nic.ports) {
      const std::string rate = port.bandwidth.known() ? to_text(port.bandwidth) : "an unknown rate";
      if (port.up) ++ports[fmt::format("{} of {}", to_text(nic.kind), rate)];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [kind, number] : ports) parts.push_back(fmt::format("{} x {}", number, kind));
  for (const char* name : kNetworkSettings) {
    const auto setting = settings.find(name);
    if (setting != settings.end()) parts.push_back(fmt::format("{}={}", name, setting->second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

TuningPlace place_of(const World& world, DataDevice device) {
  const Machine machine = probe_without_gpus();
  TuningPlace place{machine.packages.front().model,
                    0,
                    emulation_note().value_or(""),
                    world.size(),
                    world.nodes(),
                    world.ranks_per_node(),
                    "",
                    device};
  if (place.network.empty() && world.nodes() > 1)
    place.network = network_text(machine, recorded_environment());
  for (const Package& package : machine.packages) place.cores += package.cores;
  return place;
}

std::vector<TunedPlan> roots_choices(std::span<const TunedPlan> choices, const World& world) {
  const std::string own = choices.empty() ? std::string() : tuned_text(choices);
  const auto everyones = world.allgather(std::as_bytes(std::span(own)));
  const auto& roots = everyones.front();
  if (roots.empty()) return {};
  return parse_tuned({reinterpret_cast<const char*>(roots.data()), roots.size()}, "rank 0's choices");
}

TunedPlans::TunedPlans(const std::string& option, const World& world, DataDevice device) {
  if (option == kNoTunedFile) return;
  std::vector<TunedPlan> choices;
  on_root(world, [&] {
    const auto file = option.empty() ? default_tuned_file() : std::filesystem::path(option);
    if (!file) return;
    file_ = file->string();
    choices = choices_here(*file, option.empty(), world, device);
  });
  choices_ = roots_choices(choices, world);
}

}  // namespace polyring
