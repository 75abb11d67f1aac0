// Contenders: the ways of doing a collective that one comparison times, made from their names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/cli/options.hpp"
#include "bench/contenders/collective_call.hpp"
#include "bench/contenders/gloo.hpp"
#include "bench/contenders/mpi.hpp"
#include "bench/contenders/transport_option.hpp"
#include "bench/plans/job_planner.hpp"
#include "bench/plans/tuned_plans.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/schedule/program.hpp"
#include "reports/result.hpp"

namespace polyring {

/// The name under which MPI's own call takes part.
inline constexpr std::string_view kMpiAlgorithm = "mpi";
/// The same of NCCL's: "nccl", or "nccl:ring" where its environment leaves one algorithm.
inline constexpr std::string_view kNcclAlgorithm = "nccl";

struct ContenderOptions {
  PlanOptions plan;
  TransportOptions transport;
  std::string tuned;                 // empty: the default file
  std::string partials = "float32";  // or "same"
  std::string calibration;           // empty: none
  std::string plan_for;              // a machine; empty: this one
  int registration = 0;              // of NCCL's buffers: nccl-tests' -R

  void add_to(Subcommand command, Collective collective = Collective::allreduce);
  /// -R.
  void add_registration_to(Subcommand command);
  /// For before MPI is started, when one rank can speak for all: throws Error(ExitCode::not_available) for
  /// what this build has not.
  void check_build() const;
  /// The same for calls that are to be a CUDA graph: throws a usage Error for those that the host carries
  /// out.
  void check_graphs() const;
};

/// One rank's, of the same size everywhere.
struct Buffers {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

/// Owns them.
struct PayloadMemory {
  /// For payloads of up to `count` elements. `library`: within reach of the other ranks of the host; else
  /// from anywhere.
  PayloadMemory(Transport& transport, ElementKind kind, Count count, bool library);
  PayloadMemory(Memory for_input, Memory for_output)
      : input(std::move(for_input)), output(std::move(for_output)) {}
  Buffers buffers() const { return {input.get(), output.get()}; }

  Memory input;
  Memory output;
};

struct Contender {
  std::string algorithm;
  std::optional<Plan> plan;  // nothing for a vendor's call
  std::unique_ptr<CollectiveCall> call;
  Buffers buffers{};  // given by whoever measures
  bool verified = true;
  bool in_place = true;   // whether it can be done so
  std::string by_host{};  // why the host orders its steps on GPUs, half a sentence; empty: it does not
};

/// Makes contenders, and keeps what they share: the MPI library's settings, Gloo's connections, NCCL's.
class ContenderMaker {
 public:
  /// Throws a usage Error for a name that is neither in the catalogue nor a baseline's, and for a plan that
  /// does not fit the number of ranks. Throws Error(ExitCode::not_available) where MPI's algorithms are asked
  /// for and this library does not let them be chosen, or where nothing but MPI's is asked for and the ranks
  /// are not MPI's. Collective: it reads tuned plans. The contenders do `what`, of any count. `gpus`: as
  /// JobPlanner has it.
  ContenderMaker(const ContenderOptions& options, const World& world, Seconds timeout, CollectiveOf what,
                 const std::optional<JobHosts>& gpus = std::nullopt);

  /// What the contenders for `count` elements do.
  CollectiveOf what(Count count) const;

  /// The names asked for; `all` of a library's algorithms stand for themselves.
  const std::vector<std::string>& names() const { return names_; }

  /// What was asked for and is left out here, and why: a sentence, or nothing.
  std::optional<std::string> left_out() const;

  /// Whether this one of names() can be done in place: the shorter buffer is the rank's block of the longer.
  bool works_in_place(const std::string& name) const;

  /// What a result must say about the plans that a file had a part in; nothing when none had. On rank 0.
  std::optional<std::string> note() const;

  /// The same of plans on GPUs: where they have no prices, and whose steps the host orders.
  std::vector<std::string> gpu_notes() const;

  /// Throws a usage Error when one of them cannot reduce so many elements.
  void check(Count largest) const;

  /// Collective. The plan by which make() makes this one of names(); nothing for a vendor's call.
  std::optional<Plan> plan(const std::string& name, const Communicator& communicator, Count count);

  /// Collective. Only those of make() that have a plan, and over another transport, such as a MemoryCount.
  std::vector<std::unique_ptr<Executor>> make_planned_over(Transport& other, const Communicator& communicator,
                                                           Count count);
  /// Collective. For each of names(), the first of them that does the same on all ranks, though by another
  /// name; empty where there is none.
  std::vector<std::string> same_as(const Communicator& communicator, Count count);
  /// What vendors' calls are known to take of the host's memory by themselves, while one of them runs with
  /// the longest of the payloads; `together` are the payloads of all calls that exist at one time.
  Bytes vendors_memory(Bytes longest, Bytes together) const;

  /// Whether NCCL has buffers of its own (-R).
  bool registers() const { return options_.registration != 0; }
  /// Collective, before make(). These, for payloads of up to `count` elements.
  PayloadMemory registered_memory(Count count);

  /// Collective. The contenders for `count` elements, in the order of names(). They must not outlive this
  /// object.
  std::vector<Contender> make(Communicator& communicator, Count count);

 private:
  MpiAlgorithms& mpi();
  Gloo& gloo();
  NcclCollectives& nccl();
  void add_names(const std::string& asked);
  /// Chosen once for each of the counts of one run: choosing may take its time.
  const PlanChoice& choose(const std::string& algorithm, const Communicator& communicator, Count count);
  Contender make_one(const std::string& name, Communicator& communicator, Count count);

  ContenderOptions options_;
  const World& world_;
  const MpiWorld* mpi_world_;  // null where the ranks are not MPI's
  Seconds timeout_;
  CollectiveOf what_;
  std::vector<std::string> names_;
  std::vector<std::string> left_out_;
  TunedPlans tuned_;
  std::set<Bytes> tuned_payloads_;  // whose plan came from there
  JobPlanner planner_;
  std::map<std::pair<std::string, Count>, PlanChoice> chosen_;
  std::map<std::string, std::string> by_host_;  // why the host ordered steps of this one on GPUs
  std::unique_ptr<MpiAlgorithms> mpi_;
  std::unique_ptr<Gloo> gloo_;
  std::unique_ptr<NcclCollectives> nccl_;
};

/// Why the times of these contenders are doubtful where they ran, beside what doubts() says; nothing where
/// they are not.
std::optional<std::string> doubt_of(std::span<const std::string> contenders,
                                    std::span<const HostConditions> hosts);

/// Whether it names NCCL's call.
bool is_nccls_call(std::string_view name);
/// Whether it names a vendor's call, which has no plan.
bool is_vendors_call(std::string_view name);
/// The same of one that the host carries out, and no GPU.
bool is_vendors_host_call(std::string_view name);

/// A vendor's call of this name, which the host carries out, where data are on GPUs: on their memory where it
/// takes that, else on copies in the host's. The transport lives longer.
std::unique_ptr<CollectiveCall> on_gpus(std::unique_ptr<CollectiveCall> call, const std::string& name,
                                        Transport& transport, const CollectiveOf& what);

/// Measures the plan by the calls that a program would use: operations of the communicator, which lives
/// longer. On GPUs it is enqueued on streams where that can be, so that all ranks make the same at a time.
/// Without buffers yet.
Contender make_planned(Plan plan, Communicator& communicator, const CollectiveOf& what);

}  // namespace polyring
