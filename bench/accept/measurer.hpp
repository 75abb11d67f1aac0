// What the checks of `polyring accept` measure with. Rank 0 alone decides what comes next, and tells the
// others: so a check is a plain function, and tests give it samples of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/slice.hpp"
#include "reports/result.hpp"

namespace polyring {

/// Ascending ranks. Groups that are measured at the same time have no rank in common.
using RankGroup = std::vector<Rank>;

/// An allreduce that a group does, again and again.
struct GroupWork {
  std::string algorithm = "multi-ring";
  Bytes size{};  // of the payload; rounded down to whole elements, one at least
  ElementKind kind = ElementKind::float32;
  ReduceOp op = ReduceOp::sum;
  Seconds time{1};  // about so long, but `fewest` calls at least
  int fewest = 12;
  std::string interface {};  // over TCP on this network interface; empty: as the job's messages go
};

struct GroupResult {
  std::vector<double> us;   // of each call, the slowest rank's
  std::uint64_t wrong = 0;  // elements on all ranks; then there are no times
};

/// An allreduce that is done once, for its result alone.
struct ResultCase {
  Bytes size{};  // rounded down to whole elements, one at least
  ElementKind kind = ElementKind::float32;
  ReduceOp op = ReduceOp::sum;
};

/// Of each case, the job's ranks that have wrong elements.
using WrongRanks = std::vector<std::vector<Rank>>;

inline constexpr Bytes kTrainBucket{64 << 20};

/// Synthetic steps of data-parallel training by all ranks, see measure_steps(): gradients are float32, and
/// averaged in such buckets while the backward pass goes on.
struct TrainWork {
  std::string model = "resnet50";
  std::string algorithm = "multi-ring";
  Seconds compute{};  // of a step's forward and backward pass
  int steps = 1;      // besides one that is not measured
};

/// Of each step, the slowest rank's.
struct TrainTimes {
  std::vector<double> alone_ms;  // nothing is reduced
  std::vector<double> ms;
};

/// Of a host.
struct HostReply {
  std::string text;
  std::string error{};  // one sentence; empty: there is an answer
};

/// On rank 0. Every call may throw as World's calls do.
class Measurer {
 public:
  virtual ~Measurer() = default;

  /// Every group does the work at the same time as the others.
  virtual std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) = 0;

  /// What is wrong with the results of this algorithm, by group.
  virtual std::vector<WrongRanks> verify(const std::vector<RankGroup>& groups, const std::string& algorithm,
                                         const std::vector<ResultCase>& cases) = 0;

  /// How long each rank takes for the same piece of computing, of about `piece`, so many times. Ranks that
  /// would share cores do it one after the other, each in the time of two pieces and a half.
  virtual std::vector<std::vector<double>> compute_us(Seconds piece, int times) = 0;

  virtual TrainTimes train(const TrainWork& work) = 0;

  /// What the first rank of each host answers, by host. The question is one of a check's own (see Check).
  virtual std::vector<HostReply> ask(const std::string& check, const std::string& question) = 0;

  /// What else each machine did since the job began.
  virtual std::vector<HostConditions> conditions() = 0;
};

}  // namespace polyring
