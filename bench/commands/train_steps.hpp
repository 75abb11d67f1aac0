// What polyring train measures on one number of ranks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/cli/options.hpp"
#include "bench/commands/measuring.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/measure/training.hpp"
#include "bench/predict/compute.hpp"
#include "collectives/runtime/communicator.hpp"
#include "models/buckets.hpp"
#include "models/model.hpp"
#include "reports/result.hpp"

namespace polyring {

struct TrainOptions {
  ContenderOptions contenders;
  PayloadOptions payload;
  ComputeOptions compute;
  std::string bucket = "fused:64MiB";
  bool no_overlap = false;
  std::string ranks;  // empty: all
  int iterations = 10;
  MeasuringOptions measuring;
  std::string output;

  /// For before MPI is started.
  void check() const;
};

/// What is trained, on however many ranks.
struct Training {
  explicit Training(const TrainOptions& options);

  Bytes gradients() const { return bytes_of(model.total_elements(), kind); }

  ElementKind kind;
  ReduceOp op;
  Model model;
  Compute compute;
  BucketPolicy policy;
  std::vector<Bucket> buckets;
};

/// The steps of one number of ranks.
class StepsRun {
 public:
  /// Collective over run.world. Throws as ContenderMaker and Communicator do, and a usage Error where there
  /// are too many elements or there is too little memory.
  StepsRun(const TrainOptions& options, const Training& training, const MeasuringRun& run);

  int ranks() const { return run_.world.size(); }
  std::string ranks_text() const;
  const MeasuringRun& run() const { return run_; }
  /// What nobody exceeds between two turns, while messages arrive in time.
  Seconds longest_turn() const;
  std::size_t algorithms() const { return maker_.names().size(); }
  std::optional<std::string> left_out() const { return maker_.left_out(); }
  /// What a result must say of the plans; nothing where there is nothing to say. On rank 0.
  std::optional<std::string> note() const { return maker_.note(); }
  /// Of the ranks; nothing where their data are in the hosts' memory.
  const std::optional<JobHosts>& gpus() const { return gpus_; }
  /// What it must say of GPUs, once all is measured; empty where none compute. On rank 0.
  const std::vector<std::string>& gpu_notes() const { return gpu_notes_; }

  /// Rows as wide as those to come. Collective over these ranks.
  std::vector<TrainRow> expected();

  /// Rows on rank 0, nothing on the others, and how often each algorithm was timed. Collective.
  using SoFar = std::function<void(std::vector<TrainRow> rows, std::uint64_t turns)>;

  /// Collective over these ranks. A sentence for each algorithm whose result was wrong; then nothing is
  /// timed.
  std::vector<std::string> measure(const std::function<void()>& turn, const SoFar& so_far);

 private:
  struct OfSize {
    Plan plan;
    std::uint64_t buckets = 0;
  };
  /// By a bucket's elements; none for a vendor's call.
  using PlansBySize = std::map<Count, OfSize>;

  bool on_gpu() const { return options_.contenders.transport.gpu.on_gpu(); }
  /// All buckets' allreduces are there at once. Collective.
  void check_memory();
  /// A sentence for each algorithm that is wrong, over all buckets and ranks.
  std::vector<std::string> verify(std::vector<Trainer>& trainers, Transport& transport,
                                  std::byte* gradients) const;
  std::vector<TrainRow> rows(const std::vector<TrainingSteps>& measured,
                             const std::vector<PlansBySize>& plans) const;
  void add_gpu_notes(const GpuCompute& gpu, const std::vector<TrainRow>& rows);
  void set_plans(TrainRow& row, const PlansBySize& plans) const;
  /// A row without what is measured.
  TrainRow described(const std::string& name, const PlansBySize& plans) const;

  const TrainOptions& options_;
  const Training& training_;
  MeasuringRun run_;
  std::optional<JobHosts> gpus_;
  ContenderMaker maker_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::string> gpu_notes_;
};

}  // namespace polyring
