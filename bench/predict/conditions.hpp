// The conditions under which a modelled step runs: stragglers, data that have to be read, and what messages
// and reductions cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/cli/command_line.hpp"
#include "models/input_pipeline.hpp"
#include "models/jitter.hpp"
#include "reports/result.hpp"
#include "simulation/costs.hpp"

namespace polyring {

struct Conditions {
  std::optional<InputPipeline> input;  // nothing: samples are there when they are needed
  std::optional<Jitter> jitter;        // nothing: all ranks compute equally long
  Costs costs;                         // of algorithms that are planned; nccl and mpi have their own
};

struct ConditionOptions {
  std::string sample;      // empty: of the model's data set
  std::string filesystem;  // empty: any rate
  std::string nvme;        //
  std::string jitter;      // empty: none
  std::int64_t seed = 1;   // 0 or above
  std::string overhead;    // empty: none
  std::string reduction;   // empty: any rate

  void add_to(Subcommand command);
  bool ask_for_costs() const { return !overhead.empty() || !reduction.empty(); }
  /// Throws a usage Error for text that cannot be read, and where data are to be read and nobody says how
  /// large a sample is.
  Conditions resolve(const std::string& model) const;
};

/// For a result: what the numbers rest on, and what is to be said below the table.
std::vector<Input> inputs_of(const Conditions& conditions);
std::vector<std::string> notes_of(const Conditions& conditions);

/// A step without any conditions, and what it was made of.
struct CalmStep {
  StepCompute compute;
  std::vector<Bucket> buckets;
  bool overlap = false;
  Step step;
  Interplay interplay{};
};

/// What a step takes: the median, where there is jitter.
struct StepTime {
  Seconds total;
  Seconds exposed;  // communication
  std::optional<Seconds> low;
  std::optional<Seconds> high;
  std::optional<FedStep> fed;
};

/// The step among the stragglers of `ranks` ranks that wait for each other; the step itself without jitter.
StepTime with_stragglers(const Conditions& conditions, const CalmStep& calm, int ranks);

/// Lets the step wait for its `samples`, which `hosts` read, where it has to. `limit`: what limits it
/// otherwise. Nothing happens where samples are always there.
void add_feed(const Conditions& conditions, StepTime& time, Limit limit, double samples, int hosts);

/// Into the row, all but images per second and what follows from them.
void set_step(ScaleRow& row, const StepTime& time);

}  // namespace polyring
