#include "bench/contenders/contenders.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "bench/cli/output.hpp"
#include "bench/contenders/gpu_calls.hpp"
#include "bench/contenders/staged_call.hpp"
#include "bench/session/memory_need.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring {
namespace {

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
    std::vector<std::string> listed = known;
    listed.emplace_back(kAll);
    for (std::string& name : listed) name.insert(0, prefix);
    throw Error(ExitCode::usage, unknown_name("algorithm", fmt::format("{}{}", prefix, asked), listed));
  }
  std::vector<std::string> names;
  for (const std::string& name : known) {
    if (asked == kAll || asked == name) names.push_back(fmt::format("{}{}", prefix, name));
  }
  return names;
}

/// Whether this vendor's call that the host carries out does.
bool takes_gpu_memory(std::string_view name, const CollectiveOf& what) {
  return !after(kGlooPrefix, name) && mpi_takes_gpu_memory(what.collective, what.kind, what.op);
}

/// What a name says of it, behind the rest.
std::string rounding(const CollectiveOf& what) {
  const bool rounds = what.partials == Partials::in_output && exact_partial(what.kind, what.op) != what.kind;
  return rounds ? ", rounded at each step" : "";
}

class PlannedCall final : public CollectiveCall {
 public:
  PlannedCall(PersistentCollective collective, std::string implementation)
      : collective_(std::move(collective)), implementation_(std::move(implementation)) {}

  std::string algorithm() const override { return collective_.algorithm(); }
  std::string implementation() const override { return implementation_; }
  bool keeps_time_limit() const override { return true; }  // communicators do
  void run(const std::byte* input, std::byte* output) override { collective_.run(input, output); }

 private:
  PersistentCollective collective_;
  std::string implementation_;
};

}  // namespace

void ContenderOptions::add_to(Subcommand command, Collective collective) {
  const char* const first = collective == Collective::alltoall ? "direct" : "multi-ring";
  std::vector<std::string> vendors{std::string(kMpiAlgorithm), std::string(kNcclAlgorithm)};
  if (collective == Collective::allreduce) {
    for (const std::string_view family : {"mpi:NAME", "mpi:all"}) vendors.emplace_back(family);
    for (const std::string& name : gloo_algorithms())
      vendors.push_back(fmt::format("{}{}", kGlooPrefix, name));
    vendors.push_back(fmt::format("{}{}", kGlooPrefix, kAll));
  }
  // Those of another collective, of another library or of a model are known, and refused with the reason.
  std::vector<std::string> refused = modelled_algorithms();
  for (const std::string_view name : algorithm_names()) refused.emplace_back(name);
  for (const std::string_view family : {kMpiPrefix, kGlooPrefix}) refused.emplace_back(family);
  plan.add_to(command, {first, std::string(kMpiAlgorithm)}, true, collective, vendors, std::move(refused));
  transport.add_to(command);
  if (reduces(collective)) add_partials_option(command, partials);
  if (collective != Collective::allreduce) {
    command.option("--algorithm")
        .append_description(fmt::format("; nccl for NCCL's own call, with --device cuda; mpi for {}",
                                        mpi_function(collective)));
    return;
  }
  command.option("--algorithm")
      .append_description(fmt::format("; nccl for NCCL's own call, with --device cuda; mpi for MPI_Allreduce "
                                      "as the library chooses, mpi:NAME for one of its algorithms; "
                                      "gloo:NAME for {} over TCP; mpi:all, gloo:all",
                                      fmt::join(gloo_algorithms(), ", ")));
  command
      .add_option(
          "--tuned", tuned,
          "A file of polyring tune's choices for multi-ring, or none; without, its default file if there is "
          "one; options that fix a part of the plan come first")
      .type_name("FILE");
  command
      .add_option(
          "--calibration", calibration,
          "Choose plans by their price on this machine, with the speeds of links from this file of polyring "
          "calibrate")
      .type_name("FILE")
      .excludes({"--tuned"});
  command
      .add_option(
          "--plan-for", plan_for,
          "Run the plans of another machine here: a preset of polyring probe, or a file that it reads")
      .type_name("MACHINE")
      .excludes({"--tuned", "--calibration"});
}

void ContenderOptions::add_registration_to(Subcommand command) {
  command
      .add_option("-R,--local_register", registration,
                  "The buffers of nccl. 0: those of all contenders; 1: its own, registered with NCCL (2.19 "
                  "or later); "
                  "2: its own, symmetric (2.27 or later)")
      .range(0, 2);
}

void ContenderOptions::check_build() const {
  plan.refuse_modelled();
  transport.gpu.check();
  const bool nccl = std::ranges::find(plan.algorithms, kNcclAlgorithm) != plan.algorithms.end();
  if (nccl && !transport.gpu.on_gpu()) {
    throw Error(ExitCode::not_available,
                "nccl is not available: it reduces on GPUs, and the ranks' data are in host memory without "
                "--device cuda; polyring scale --algorithm nccl models it");
  }
  if (registration != 0 && !nccl)
    usage_error("-R registers NCCL's buffers, and nccl is not among the algorithms; add --algorithm nccl");
  for (const std::string& name : plan.algorithms) {
    if (has_gloo() || !after(kGlooPrefix, name)) continue;
    throw Error(
        ExitCode::not_available,
        fmt::format("{} is not available: this build has no Gloo; install libgloo-dev and build again",
                    name));
  }
}

void ContenderOptions::check_graphs() const {
  for (const std::string& name : plan.algorithms) {
    if (is_vendors_host_call(name))
      usage_error("{} cannot be launched as a CUDA graph (-G); name others with --algorithm", name);
  }
}

PayloadMemory::PayloadMemory(Transport& transport, ElementKind kind, Count count, bool library) {
  const Bytes size = bytes_of(count, kind);
  for (Memory* memory : {&input, &output})
    *memory = library ? transport.allocate(size) : transport.scratch(size);
}

/// Gloo's transport/tcp/pair.cc, handleEvents(): its own thread does not wait for a lock that the rank's
/// thread has, but looks again at once. On one core with the rank it spins so until the scheduler's next
/// tick, while the rank, which has the lock, cannot run.
std::optional<std::string> doubt_of(std::span<const std::string> contenders,
                                    std::span<const HostConditions> hosts) {
  const auto is_gloo = [](const std::string& name) { return after(kGlooPrefix, name).has_value(); };
  const auto is_crowded = [](const HostConditions& host) {
    return host.least_cpus_of_rank < 2 || host.cpus < 2 * host.ranks;
  };
  if (std::ranges::none_of(contenders, is_gloo) || std::ranges::none_of(hosts, is_crowded))
    return std::nullopt;
  return "Gloo has a thread of its own in each process; here it shared a core with the rank's, and may have "
         "kept "
         "it off until the scheduler's next tick (4 ms at 250 Hz), so that Gloo's times are doubtful; give "
         "each "
         "rank two cores, as with mpirun --map-by slot:PE=2";
}

bool is_vendors_host_call(std::string_view name) {
  return name == kMpiAlgorithm || after(kMpiPrefix, name) || after(kGlooPrefix, name);
}

bool is_nccls_call(std::string_view name) {
  return name == kNcclAlgorithm || name.starts_with(std::string(kNcclAlgorithm) + ":");
}

bool is_vendors_call(std::string_view name) { return is_nccls_call(name) || is_vendors_host_call(name); }

std::unique_ptr<CollectiveCall> on_gpus(std::unique_ptr<CollectiveCall> call, const std::string& name,
                                        Transport& transport, const CollectiveOf& what) {
  return takes_gpu_memory(name, what) ? make_unstaged(std::move(call))
                                      : make_staged(std::move(call), transport, what);
}

Contender make_planned(Plan plan, Communicator& communicator, const CollectiveOf& what) {
  std::string name = plan.algorithm;
  std::string by_host;
  if (communicator.transport().on_device()) {
    auto made = need_gpu_plugin().make_collective(communicator.transport(), plan, what, by_host);
    if (made) {
      const std::string implementation = fmt::format("{}{}{}", kOnStreams, made->way(), rounding(what));
      auto call = make_enqueued_call(name, implementation, std::move(made));
      return {std::move(name), std::move(plan), std::move(call)};
    }
  }
  const JoinedTransport& joined = communicator.joined();
  const std::string messages =
      joined.message.value > 0 ? fmt::format(" in messages of {}", to_text(joined.message)) : "";
  const std::string implementation =
      fmt::format("polyring over {}{}{}", joined.name, messages, rounding(what));
  auto call = std::make_unique<PlannedCall>(communicator.prepare(what, plan), implementation);
  Contender contender{std::move(name), std::move(plan), std::move(call)};
  contender.by_host = std::move(by_host);
  return contender;
}

ContenderMaker::ContenderMaker(const ContenderOptions& options, const World& world, Seconds timeout,
                               CollectiveOf what, const std::optional<JobHosts>& gpus)
    : options_(options),
      world_(world),
      mpi_world_(as_mpi_world(world)),
      timeout_(timeout),
      what_(what),
      planner_(options.plan_for.empty() ? JobPlanner(options.calibration, world, gpus)
                                        : JobPlanner::for_machine(options.plan_for, world)) {
  what_.partials = parse_partials(options.partials);
  for (const std::string& asked : options.plan.algorithms) add_names(asked);
  if (names_.empty())
    throw AgreedError(ExitCode::not_available, *left_out() + "; start the ranks with mpirun");
  const bool multi_ring = std::find(names_.begin(), names_.end(), kTunedAlgorithm) != names_.end();
  const bool free = multi_ring && options.plan.constraints(kTunedAlgorithm) == PlanConstraints{};
  const bool tunable =
      what.collective == Collective::allreduce && options_.calibration.empty() && options_.plan_for.empty();
  if (tunable && (free || !options_.tuned.empty()))
    tuned_ = TunedPlans(options_.tuned, world, options_.transport.gpu.data_device());
}

CollectiveOf ContenderMaker::what(Count count) const {
  CollectiveOf what = what_;
  what.count = count;
  return what;
}

void ContenderMaker::add_names(const std::string& asked) {
  if (what_.collective != Collective::allreduce && (after(kMpiPrefix, asked) || after(kGlooPrefix, asked))) {
    usage_error("'{}' is known as an allreduce only; for {} use mpi, or an algorithm of our own", asked,
                to_text(what_.collective));
  }
  std::vector<std::string> names{asked};
  if (mpi_world_ == nullptr && (asked == kMpiAlgorithm || after(kMpiPrefix, asked))) {
    left_out_.push_back(asked);
    return;
  }
  if (const auto of_mpi = after(kMpiPrefix, asked)) {
    if (!mpi().why_none().empty()) {
      throw AgreedError(ExitCode::not_available,
                        fmt::format("{} is not available: {}", asked, mpi().why_none()));
    }
    names = baseline_names(kMpiPrefix, *of_mpi, mpi().names());
  } else if (const auto of_gloo = after(kGlooPrefix, asked)) {
    names = baseline_names(kGlooPrefix, *of_gloo, gloo_algorithms());
  } else if (asked == kNcclAlgorithm) {
    names = {need_gpu_plugin().nccl_name(what_.collective)};
    nccl();  // what it refuses is said before anything is measured
  } else if (asked != kMpiAlgorithm) {
    const Problem problem{asked, {world_.size(), world_.ranks_per_node(), world_.nodes()}};
    const Plan plan = plain_plan(problem, options_.plan.constraints(asked));
    check_plan(plan, world_.size());
    // Otherwise multi-ring's patterns are yet to be chosen.
    if (!find_algorithm(asked).has_dims || !plan.patterns.empty()) check_collective(plan, what_.collective);
  }
  names_.insert(names_.end(), names.begin(), names.end());
}

void ContenderMaker::check(Count largest) const {
  for (const std::string& name : names_) {
    if (const auto of_gloo = after(kGlooPrefix, name)) check_gloo(*of_gloo, what_.kind, largest);
    if (name == kMpiAlgorithm) check_mpi_count(what_.collective, world_.size(), largest);
  }
}

std::vector<Contender> ContenderMaker::make(Communicator& communicator, Count count) {
  std::vector<Contender> contenders;
  for (const std::string& name : names_) {
    contenders.push_back(make_one(name, communicator, count));
    Contender& made = contenders.back();
    if (communicator.transport().on_device() && is_vendors_host_call(name))
      made.call = on_gpus(std::move(made.call), name, communicator.transport(), what(count));
    made.in_place = works_in_place(name);
  }
  return contenders;
}

Contender ContenderMaker::make_one(const std::string& name, Communicator& communicator, Count count) {
  const ElementKind kind = what_.kind;
  const ReduceOp op = what_.op;
  if (name == kMpiAlgorithm)
    return {name, std::nullopt, make_mpi_call(what_.collective, *mpi_world_, kind, op, count)};
  if (is_nccls_call(name)) {
    auto call = nccl().make(what(count));
    const std::string implementation = call->way();
    return {name, std::nullopt, make_enqueued_call(name, implementation, std::move(call))};
  }
  if (const auto of_mpi = after(kMpiPrefix, name)) {
    return {name, std::nullopt, mpi().make(*of_mpi, kind, op, count)};
  }
  if (const auto of_gloo = after(kGlooPrefix, name)) {
    return {name, std::nullopt, gloo().make(*of_gloo, kind, op, count)};
  }
  const PlanChoice& chosen = choose(name, communicator, count);
  if (chosen.source == PlanSource::tuned) tuned_payloads_.insert(bytes_of(count, kind));
  Contender made = make_planned(chosen.plan, communicator, what(count));
  if (!made.by_host.empty()) by_host_[name] = made.by_host;
  return made;
}

bool ContenderMaker::works_in_place(const std::string& name) const {
  if (what_.collective == Collective::alltoall) return false;
  // MPI's leaves its result in the first block.
  return what_.collective != Collective::reduce_scatter || name != kMpiAlgorithm;
}

std::vector<std::unique_ptr<Executor>> ContenderMaker::make_planned_over(Transport& other,
                                                                         const Communicator& communicator,
                                                                         Count count) {
  std::vector<std::unique_ptr<Executor>> made;
  for (const std::string& name : names_) {
    if (is_vendors_call(name)) continue;
    made.push_back(make_executor(choose(name, communicator, count).plan, what(count), other));
  }
  return made;
}

std::vector<std::string> ContenderMaker::same_as(const Communicator& communicator, Count count) {
  MemoryCount memory(communicator.transport());
  const auto planned = make_planned_over(memory, communicator, count);
  std::vector<double> differ;  // of each two
  for (const auto& one : planned)
    for (const auto& other : planned) differ.push_back(one->does_the_same_as(*other) ? 0 : 1);
  differ = world_.max(differ);
  std::vector<std::string> same;
  std::vector<std::string> seen;  // of those that are planned
  for (const std::string& name : names_) {
    std::string& first = same.emplace_back();
    if (is_vendors_call(name)) continue;
    for (std::size_t i = 0; i < seen.size() && first.empty(); ++i)
      if (seen[i] != name && differ[seen.size() * planned.size() + i] == 0) first = seen[i];
    seen.push_back(name);
  }
  return same;
}

Bytes ContenderMaker::vendors_memory(Bytes longest, Bytes together) const {
  // Open MPI's coll_base_allreduce.c and MPICH's allreduce_intra_*.c keep partial results in a buffer as long
  // as the payload for the time of the call; Gloo's older algorithms keep theirs for as long as they live.
  const auto is_gloo = [](const std::string& name) { return after(kGlooPrefix, name).has_value(); };
  const auto gloo = static_cast<std::uint64_t>(std::count_if(names_.begin(), names_.end(), is_gloo));
  const bool mpi = std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
    return is_vendors_host_call(name) && !is_gloo(name);
  });
  // Calls on the host's memory for data on a GPU keep both buffers there, for as long as they live.
  const auto is_staged = [this](const std::string& name) {
    return options_.transport.gpu.on_gpu() && is_vendors_host_call(name) && !takes_gpu_memory(name, what_);
  };
  const auto staged = std::ranges::count_if(names_, is_staged);
  const auto copies = 2 * static_cast<std::uint64_t>(staged) * together.value;
  return {gloo * together.value + (mpi ? longest.value : 0) + copies};
}

std::optional<Plan> ContenderMaker::plan(const std::string& name, const Communicator& communicator,
                                         Count count) {
  if (is_vendors_call(name)) return std::nullopt;
  return choose(name, communicator, count).plan;
}

const PlanChoice& ContenderMaker::choose(const std::string& algorithm, const Communicator& communicator,
                                         Count count) {
  const auto known = chosen_.find({algorithm, count});
  if (known != chosen_.end()) return known->second;
  const Problem problem = planner_.problem(algorithm, communicator, what(count));
  const TunedPlanner planner(tuned_.choices(), communicator.joined().name, planner_);
  return chosen_[{algorithm, count}] = planner.choose(problem, options_.plan.constraints(algorithm));
}

std::optional<std::string> ContenderMaker::left_out() const {
  if (left_out_.empty()) return std::nullopt;
  return fmt::format("{} skipped: there is no MPI between {}", fmt::join(left_out_, ", "), world_.kind());
}

std::vector<std::string> ContenderMaker::gpu_notes() const {
  std::vector<std::string> notes;
  if (const std::string& why = planner_.why_no_prices();
      !why.empty() && options_.transport.gpu.on_gpu() && !std::ranges::all_of(names_, is_vendors_call))
    notes.push_back(fmt::format("Plans follow rules, and not the links between the GPUs: {}.", why));
  for (const auto& [name, why_not] : by_host_)
    notes.push_back(fmt::format(
        "The host ordered the steps of {} where they could not be enqueued on streams: {}.", name, why_not));
  return notes;
}

std::optional<std::string> ContenderMaker::note() const {
  if (std::ranges::all_of(names_, is_vendors_call)) return std::nullopt;
  if (!options_.plan_for.empty()) {
    return fmt::format("Plans are those for {} of {}, as polyring plan shows them; they ran here.",
                       counted(world_.size(), "rank"), options_.plan_for);
  }
  if (!planner_.calibration().empty()) {
    return fmt::format("Plans are those with the least price on this machine as calibrated: {}.",
                       planner_.calibration());
  }
  if (tuned_payloads_.empty()) return std::nullopt;
  const std::size_t sizes = tuned_payloads_.size();
  return fmt::format("The plan of {} for {} size{} is what polyring tune chose: {}.", kTunedAlgorithm, sizes,
                     sizes == 1 ? "" : "s", tuned_.file());
}

MpiAlgorithms& ContenderMaker::mpi() {
  if (!mpi_) mpi_ = std::make_unique<MpiAlgorithms>(*mpi_world_);
  return *mpi_;
}

PayloadMemory ContenderMaker::registered_memory(Count count) {
  const Bytes size = bytes_of(count, what_.kind);
  const auto make = [&] {
    return nccl().allocate(size, options_.registration == 2 ? NcclMemory::symmetric : NcclMemory::local);
  };
  Memory input = make();
  return {std::move(input), make()};
}

NcclCollectives& ContenderMaker::nccl() {
  if (!nccl_) {
    GpuPlugin& plugin = need_gpu_plugin();
    WaitRules rules = world_.wait_rules();
    rules.timeout = timeout_;
    nccl_ = plugin.make_nccl(world_, choose_gpu(world_, plugin, options_.transport.gpu), rules);
  }
  return *nccl_;
}

Gloo& ContenderMaker::gloo() {
  if (!gloo_) gloo_ = std::make_unique<Gloo>(world_, options_.transport.interface, timeout_);
  return *gloo_;
}

}  // namespace polyring
