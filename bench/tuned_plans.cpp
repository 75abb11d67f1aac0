#include "bench/tuned_plans.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/collective.hpp"
#include "bench/emulation.hpp"
#include "bench/tuned_file.hpp"
#include "reports/files.hpp"
#include "topology/probe.hpp"

namespace polyring {
namespace {

/// Where it is: the same for all choices that are compared.
TuningPlace with_transport(TuningPlace place, const std::string& transport) {
  place.transport = transport;
  return place;
}

/// What the file has for this place. An absent default file has nothing.
std::vector<TunedPlan> choices_here(const std::filesystem::path& file, bool by_default,
                                    const MpiWorld& world) {
  if (by_default && !std::filesystem::exists(file)) return {};
  std::vector<TunedPlan> choices;
  try {
    choices = parse_tuned(read_file(file), file.string());
  } catch (const Error& error) {
    if (!by_default) throw;
    fmt::print(stderr, "polyring: goes on without tuned plans: {}\n", error.what());
    return {};
  }
  const TuningPlace here = place_of(world);
  std::erase_if(choices, [&](const TunedPlan& choice) {
    return choice.place != with_transport(here, choice.place.transport);
  });
  if (choices.empty() && !by_default) {
    fmt::print(stderr, "polyring: nothing in '{}' is for {} ranks on {} host{} of this kind\n", file.string(),
               world.size(), world.nodes(), world.nodes() == 1 ? "" : "s");
  }
  return choices;
}

}  // namespace

TuningPlace place_of(const MpiWorld& world) {
  const Machine machine = probe_without_gpus();
  TuningPlace place{
      machine.packages.front().model, 0, emulation_note().value_or(""), world.size(), world.nodes(),
      world.ranks_per_node(),         ""};
  for (const Package& package : machine.packages) place.cores += package.cores;
  return place;
}

TunedPlans::TunedPlans(const std::string& option, const MpiWorld& world) {
  if (option == kNoTunedFile) return;
  std::string text;
  on_root(world, [&] {
    const auto file = option.empty() ? default_tuned_file() : std::filesystem::path(option);
    if (!file) return;
    file_ = file->string();
    const std::vector<TunedPlan> choices = choices_here(*file, option.empty(), world);
    if (!choices.empty()) text = tuned_text(choices);
  });
  const auto everyones = world.allgather(std::as_bytes(std::span(text)));
  const auto& roots = everyones.front();
  if (roots.empty()) return;
  choices_ = parse_tuned({reinterpret_cast<const char*>(roots.data()), roots.size()}, "rank 0's choices");
}

std::optional<Plan> TunedPlans::plan_for(const std::string& transport, Bytes payload) const {
  if (choices_.empty()) return std::nullopt;
  const TuningPlace place = with_transport(choices_.front().place, transport);
  const TunedPlan* choice = nearest(choices_, place, payload);
  if (choice == nullptr || choice->is_default) return std::nullopt;
  return choice->plan;
}

}  // namespace polyring
