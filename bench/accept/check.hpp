// A check of `polyring accept`: one file under checks/, and one row in checks.cpp.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/accept/judge.hpp"
#include "bench/accept/measurer.hpp"
#include "collectives/schedule/data_device.hpp"
#include "reports/result.hpp"
#include "topology/cluster.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// Where a job runs.
struct Site {
  std::vector<std::string> hosts;  // by number
  std::vector<RankGroup> ranks;    // of each host
  std::vector<int> leaf;  // switch that each host hangs on, in any order; 0 of all where nothing is known
  std::vector<std::string> leaf_names{};  // by number, as far as they are known
  Inventory inventory;                    // as probed
  Cluster cluster;                        // as the job's ranks see it, see host_memory_cluster()
  Source source = Source::measured;
  std::vector<std::string> notes{};  // whole sentences

  int ranks_in_all() const;
  /// 0, 1, 2, …
  std::vector<int> all_hosts() const;
  /// Hosts that are emulated share the cores of one machine: what uses cores is measured by turns.
  bool hosts_share_cores() const { return source == Source::emulated; }
  /// These hosts of the cluster, those of a leaf side by side, else in this order. The fabric is that between
  /// them: where they are not all hosts, one leaf, or a leaf for each.
  Cluster part(std::span<const int> hosts) const;
};

/// What is judged: the key by which a specification or a baseline names a threshold.
struct Judged {
  std::string check;
  Quantity quantity;
  std::uint64_t size_bytes = 0;
  std::string subject;
};

/// Thresholds that somebody gave: of a specification, or of a baseline.
class GivenThresholds {
 public:
  virtual ~GivenThresholds() = default;
  virtual std::optional<Threshold> of(const Judged& judged) const = 0;
  /// The payload that all thresholds of a check are of; nothing where they are of several, or of any.
  virtual std::optional<Bytes> size_of(std::string_view check) const = 0;
};

/// What the topology and others' measurements say of an allreduce of this size on these hosts: the low end,
/// as busbw in GB/s, and where it comes from.
using ExpectedLeast =
    std::function<std::optional<Threshold>(const Cluster&, const std::string& algorithm, Bytes size)>;

struct CheckOptions {
  std::string algorithm = "multi-ring";
  std::vector<std::string> algorithms{"multi-ring"};  // of all.allreduce
  Seconds turn{1};                                    // that one measurement takes, about
  Bytes most_payload{64 << 20};
  int attempts = 5;          // to measure what does not pass
  int all_pairs_up_to = 64;  // hosts; of more, so many rounds:
  int pair_rounds = 12;
  std::string data;   // a folder; empty: none
  std::string model;  // that is trained, from `data` where that is given; empty: the check chooses
  std::string like;   // a machine; empty: none
  DataDevice device = DataDevice::cpu;  // of checks that are Check::on_device
  bool software_gpus = false;           // these are tests', whose rates say nothing
};

/// What a check has.
struct Checking {
  Measurer& measurer;
  const Site& site;
  const GivenThresholds& given;
  const ExpectedLeast& expected;
  const CheckOptions& options;
  /// What is being done, for people who wait.
  std::function<void(const std::string&)> progress;
  /// Whether the budget has time to measure something again that takes so many turns.
  std::function<bool(int)> has_time = [](int) { return true; };
  /// What Measurer::ask() got before the first check, see Check::asks_first.
  std::vector<HostReply> before{};
  /// False where rates say nothing: then nobody says what they must be.
  bool judges_rates = true;

  /// Whether what has this verdict after so many attempts is to be measured again, in so many turns, so that
  /// the verdict is of all samples: what was slow for a while must not fail, nor what is noisy stay
  /// undecided.
  bool must_repeat(Verdict verdict, int attempts, int turns) const {
    const bool may_change = verdict == Verdict::fail || verdict == Verdict::inconclusive;
    return may_change && attempts < options.attempts && has_time(turns);
  }

  /// What somebody gave, else `otherwise`; nothing where rates are not judged.
  Threshold threshold(const Judged& judged, const Threshold& otherwise) const {
    return judges_rates ? given.of(judged).value_or(otherwise) : Threshold{};
  }
};

struct Check {
  std::string_view name;  // "pairs.allreduce"
  std::string_view what;  // it finds: half a sentence
  /// How many turns it takes there, about; 0: next to no time.
  int (*turns)(const Site&, const CheckOptions&);
  std::vector<Quantity> quantities;  // that it judges by thresholds which may be given
  /// On rank 0.
  std::vector<CheckRow> (*run)(const Checking&);
  /// On the first rank of each host: what Measurer::ask() wants to know. Null: nothing.
  std::string (*answer)(const std::string& question) = nullptr;
  /// All hosts answer "" before the first check, so that this one sees what has changed.
  bool asks_first = false;
  /// Its data are on GPUs where the job's are.
  bool on_device = false;
};

/// Of a Check whose members before this one are those of most.
inline constexpr bool kOnDevice = true;

/// In the order in which they run; those that tell most for their time come first.
std::span<const Check* const> checks();
/// Null where there is none of that name.
const Check* find_check(std::string_view name);

}  // namespace polyring
