#include "bench/rivals.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "collectives/catalogue.hpp"
#include "collectives/executor.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

/// Large enough that a message's cost does not count, small enough to stay in a core's cache; see
/// docs/performance.md.
constexpr Bytes kDefaultChunk{1 << 20};

/// A chunk is so large that the longest messages between hosts are as these: nearly the 64 KiB from where
/// Open MPI's TCP first asks the receiver, since hosts that are busy pay for each message; see
/// docs/performance.md.
constexpr Bytes kMessage{56 << 10};

/// Up to here steps count and bytes do not: in a host one step to everybody beats two of less, since all that
/// it sends is copied once and nobody waits until others have read it; between hosts log2 n steps of
/// everything beat twice as many of less. See docs/performance.md.
constexpr Bytes kTiny{2 << 10};
/// Up to here messages count: between hosts 2·log2 n beat the 2(n − 1) of rings, and a host's ranks leave
/// them to one of theirs.
constexpr Bytes kSmall{16 << 10};

// A baseline's algorithm is asked for as mpi:ring or gloo:ring, and all of them as mpi:all.
constexpr std::string_view kMpiPrefix = "mpi:";
constexpr std::string_view kGlooPrefix = "gloo:";
constexpr std::string_view kAll = "all";

/// What comes after the prefix, if `name` begins with it.
std::optional<std::string> after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return std::string(name.substr(prefix.size()));
}

/// The names that `asked` stands for, with their prefix. Throws a usage Error that lists `known`.
std::vector<std::string> baseline_names(std::string_view prefix, const std::string& asked,
                                        const std::vector<std::string>& known) {
  if (asked != kAll && std::find(known.begin(), known.end(), asked) == known.end()) {
    usage_error("unknown algorithm '{0}{1}'; choose from {0}{2}, or {0}all", prefix, asked,
                fmt::join(known, fmt::format(", {}", prefix)));
  }
  std::vector<std::string> names;
  for (const std::string& name : known) {
    if (asked == kAll || asked == name) names.push_back(fmt::format("{}{}", prefix, name));
  }
  return names;
}

}  // namespace

void RivalOptions::add_to(CLI::App& app) {
  plan.add_to(app, {"multi-ring", std::string(kMpiAlgorithm)}, true);
  auto* algorithm = app.get_option("--algorithm");
  algorithm->description(
      fmt::format("{}; mpi for MPI_Allreduce as the library chooses, mpi:NAME for one of its algorithms; "
                  "gloo:NAME for {} over TCP; mpi:all, gloo:all",
                  algorithm->get_description(), fmt::join(gloo_algorithms(), ", ")));
  app.add_option(
         "--tcp-interface", tcp_interface,
         "The network interface for TCP connections; without, that of the default route, or the first")
      ->type_name("NAME");
  add_transport_option(app, transport);
  add_partials_option(app, partials);
  app.add_option(
         "--tuned", tuned,
         "Where multi-ring's plan is from that no option chooses: a file of polyring tune's, or none; "
         "without, its default file if there is one")
      ->type_name("FILE");
  app.add_option(
         "--calibration", calibration,
         "Multi-ring's lanes and chunks, where no option chooses them, by the price of its schedule on this "
         "machine, its links as this file of polyring calibrate has them")
      ->type_name("FILE")
      ->excludes(app.get_option("--tuned"));
}

void add_transport_option(CLI::App& app, std::string& transport) {
  app.add_option("--transport", transport,
                 "shared: memory inside hosts and MPI between them; mpi: MPI everywhere; auto: shared where "
                 "it can be had")
      ->capture_default_str();
}

void RivalOptions::check_build() const {
  parse_transport(transport);
  parse_partials(partials);
  for (const std::string& name : plan.algorithms) {
    if (has_gloo() || !after(kGlooPrefix, name)) continue;
    throw Error(
        ExitCode::not_available,
        fmt::format("{} is not available: this build has no Gloo; install libgloo-dev and build again",
                    name));
  }
}

namespace {

std::string pattern_between_hosts(Bytes payload) {
  return payload <= kTiny ? "doubling" : payload <= kSmall ? "halving" : "ring";
}

/// For each dimension of a multi-ring: what fits the memory or the wires that it runs over.
std::vector<std::string> default_patterns(const std::vector<int>& dims, const MpiWorld& world,
                                          const Transport& transport, Bytes payload) {
  const int per_host = world.ranks_per_node();
  const std::string where_they_meet = world.nodes() > 1 && payload <= kSmall ? "star"
                                      : dims.size() == 1 && payload <= kTiny ? "one-shot"
                                                                             : "direct";
  std::vector<std::string> patterns;
  int stride = 1;
  for (const int dim : dims) {
    stride *= dim;
    const bool in_host = per_host > 0 && per_host % stride == 0;
    // Either all ranks meet the others of their host, or none does.
    const Rank first = in_host ? world.rank() / per_host * per_host : 0;
    const bool meets = in_host && dim > 1 && transport.meets(world.rank() == first ? first + 1 : first);
    patterns.push_back(meets ? where_they_meet : in_host ? "ring" : pattern_between_hosts(payload));
  }
  return patterns;
}

/// The longest message between hosts that a rank of the first host sends, as a part of a chunk; 0 when there
/// is none.
double longest_message(Plan plan, const MpiWorld& world) {
  constexpr Count kCount = 1 << 20;
  plan.chunk = {};
  const Schedule schedule = make_schedule(plan, world.size(), kCount, 1);
  const int per_host = std::max(1, world.ranks_per_node());
  Count longest = 0;
  std::vector<Transfer> sends;
  for (Rank rank = 0; rank < per_host; ++rank) {
    for (int stage = 0; stage < stage_count(schedule.lanes.front()); ++stage) {
      for (int step = 0; step < step_count(schedule.lanes.front(), stage); ++step) {
        sends.clear();
        append_sends(schedule, {}, stage, step, rank, sends);
        for (const Transfer& send : sends)
          if (send.destination >= per_host) longest = std::max(longest, send.slice.count);
      }
    }
  }
  return static_cast<double>(longest) / static_cast<double>(stream_slice(schedule, {}).count);
}

Bytes default_chunk(const Plan& plan, const MpiWorld& world, Bytes payload) {
  const double longest = world.nodes() == 1 ? 0 : longest_message(plan, world);
  if (longest == 0) return kDefaultChunk;
  const auto of_messages = static_cast<std::uint64_t>(static_cast<double>(kMessage.value) / longest);
  return {std::max(of_messages, payload.value / kMostUsefulChunks)};
}

/// Ranks that carry out different schedules would wait for each other for ever, or be wrong.
void check_agreement(const Plan& plan, const MpiWorld& world) {
  const auto own = static_cast<std::int64_t>(std::hash<std::string>{}(to_text(plan)));
  const bool differs = world.broadcast(own) != own;
  if (world.sum(differs ? 1 : 0) == 0) return;
  throw Error(
      ExitCode::internal,
      fmt::format("the ranks do not agree about a plan; this one has {}. Please report this as a fault",
                  to_text(plan)));
}

}  // namespace

Plan default_plan(const std::string& algorithm, const PlanWishes& wishes, const MpiWorld& world,
                  const Transport* transport, Bytes payload) {
  Plan plan{algorithm, wishes.dims, wishes.patterns, 1, {}};
  const int in_host = world.ranks_per_node();
  if (plan.dims.empty() && in_host > 1 && world.nodes() > 1) plan.dims = {in_host, world.nodes()};
  if (plan.dims.empty()) plan.dims = {world.size()};
  if (algorithm == kTunedAlgorithm && transport != nullptr) {
    if (plan.patterns.empty()) plan.patterns = default_patterns(plan.dims, world, *transport, payload);
  }
  // Nothing overlaps with a single meeting.
  const bool one_meeting = algorithm == kTunedAlgorithm && transport != nullptr && world.nodes() == 1 &&
                           plan.patterns.size() == 1 && plan.patterns.front() != "ring";
  if (!one_meeting && wishes.chunk.value == 0) plan.chunk = default_chunk(plan, world, payload);
  plan = with_wishes(std::move(plan), wishes);
  check_agreement(plan, world);
  return plan;
}

Rival make_planned(Plan plan, const WorldTransport& transport, ElementKind kind, ReduceOp op, Count count,
                   Partials partials) {
  Schedule schedule = make_schedule(plan, transport.transport->size(), count, size_of(kind));
  const bool rounds = partials == Partials::in_output && exact_partial(kind, op) != kind;
  const std::string messages =
      transport.message.value > 0 ? fmt::format(" in messages of {}", to_text(transport.message)) : "";
  const std::string implementation =
      fmt::format("polyring over {}{}{}", transport.name, messages, rounds ? ", rounded at each step" : "");
  auto executor = std::make_unique<Executor>(std::move(schedule), kind, op, *transport.transport,
                                             ExecutorOptions{kDefaultWindow, implementation, partials});
  std::string name = plan.algorithm;
  return {std::move(name), std::move(plan), std::move(executor)};
}

WorldTransport open_transport(const MpiWorld& world, const std::string& choice) {
  WorldTransport transport = make_world_transport(world, parse_transport(choice));
  if (world.rank() == 0 && !transport.fallback.empty()) {
    fmt::print(stderr, "polyring: messages go through MPI inside hosts, too: {}\n", transport.fallback);
  }
  return transport;
}

RivalMaker::RivalMaker(const RivalOptions& options, const MpiWorld& world, Seconds timeout)
    : options_(options), world_(world), timeout_(timeout) {
  for (const std::string& asked : options.plan.algorithms) add_names(asked);
  const bool multi_ring = std::find(names_.begin(), names_.end(), kTunedAlgorithm) != names_.end();
  const bool free = multi_ring && options.plan.wishes(kTunedAlgorithm) == PlanWishes{};
  // A file that is named must be right even where there is nothing that it could choose.
  if (!options.calibration.empty()) {
    priced_.emplace(options.calibration, world);
  } else if (free || !options.tuned.empty()) {
    tuned_ = TunedPlans(options.tuned, world);
  }
}

void RivalMaker::add_names(const std::string& asked) {
  std::vector<std::string> names{asked};
  if (const auto of_mpi = after(kMpiPrefix, asked)) {
    if (!mpi().why_none().empty()) {
      throw Error(ExitCode::not_available, fmt::format("{} is not available: {}", asked, mpi().why_none()));
    }
    names = baseline_names(kMpiPrefix, *of_mpi, mpi().names());
  } else if (const auto of_gloo = after(kGlooPrefix, asked)) {
    names = baseline_names(kGlooPrefix, *of_gloo, gloo_algorithms());
  } else if (asked != kMpiAlgorithm) {
    check_plan(default_plan(asked, options_.plan.wishes(asked), world_, nullptr, {}), world_.size());
  }
  names_.insert(names_.end(), names.begin(), names.end());
}

void RivalMaker::check(ElementKind kind, Count largest) const {
  for (const std::string& name : names_) {
    if (const auto of_gloo = after(kGlooPrefix, name)) check_gloo(*of_gloo, kind, largest);
  }
}

std::vector<Rival> RivalMaker::make(const WorldTransport& transport, ElementKind kind, ReduceOp op,
                                    Count count) {
  std::vector<Rival> rivals;
  for (const std::string& name : names_) rivals.push_back(make_one(name, transport, kind, op, count));
  return rivals;
}

Rival RivalMaker::make_one(const std::string& name, const WorldTransport& transport, ElementKind kind,
                           ReduceOp op, Count count) {
  if (name == kMpiAlgorithm) return {name, std::nullopt, make_mpi_allreduce(world_, kind, op, count)};
  if (const auto of_mpi = after(kMpiPrefix, name)) {
    return {name, std::nullopt, mpi().make(*of_mpi, kind, op, count)};
  }
  if (const auto of_gloo = after(kGlooPrefix, name)) {
    return {name, std::nullopt, gloo().make(*of_gloo, kind, op, count)};
  }
  return make_planned(plan_for(name, transport, kind, op, count), transport, kind, op, count,
                      parse_partials(options_.partials));
}

Plan RivalMaker::plan_for(const std::string& algorithm, const WorldTransport& transport, ElementKind kind,
                          ReduceOp op, Count count) {
  const Bytes payload{static_cast<std::uint64_t>(count * size_of(kind))};
  const PlanWishes wishes = options_.plan.wishes(algorithm);
  if (algorithm == kTunedAlgorithm && wishes == PlanWishes{}) {
    if (const auto tuned = tuned_.plan_for(transport.name, payload)) {
      tuned_payloads_.insert(payload);
      return *tuned;
    }
  }
  Plan plan = default_plan(algorithm, wishes, world_, transport.transport.get(), payload);
  check_plan(plan, world_.size());
  if (algorithm != kTunedAlgorithm || !priced_) return plan;
  // Which ranks meet is known here, and so which patterns suit; how to cut the payload, the price tells.
  return priced_->plan_for({plan.dims, plan.patterns, wishes.lanes, wishes.chunk, wishes.orders}, count,
                           ElementSizes(kind, op, parse_partials(options_.partials)));
}

std::optional<std::string> RivalMaker::note() const {
  if (priced_ && std::find(names_.begin(), names_.end(), kTunedAlgorithm) != names_.end()) {
    return fmt::format(
        "The lanes and chunks of {} are those with the least price on this machine as calibrated: {}.",
        kTunedAlgorithm, priced_->file());
  }
  if (tuned_payloads_.empty()) return std::nullopt;
  const std::size_t sizes = tuned_payloads_.size();
  return fmt::format("The plan of {} for {} size{} is what polyring tune chose: {}.", kTunedAlgorithm, sizes,
                     sizes == 1 ? "" : "s", tuned_.file());
}

MpiAlgorithms& RivalMaker::mpi() {
  if (!mpi_) mpi_ = std::make_unique<MpiAlgorithms>(world_);
  return *mpi_;
}

Gloo& RivalMaker::gloo() {
  if (!gloo_) gloo_ = std::make_unique<Gloo>(world_, options_.tcp_interface, timeout_);
  return *gloo_;
}

}  // namespace polyring
