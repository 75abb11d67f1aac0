// Groups of ranks that are measured until a verdict is clear, and what they are compared with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/accept/check.hpp"

namespace polyring {

inline const Quantity kBusbw{"busbw", "GB/s"};

/// Hosts whose ranks do an allreduce together, and how that is named in sentences.
struct HostGroupUnderTest {
  std::vector<int> hosts;
  std::string subject;  // "node0 and node1"
  int sharers = 1;      // groups that use the uplinks of this one's leaves at the same time, itself included
};

/// The leaf of each host where so many neighbours share one; 0: all share one.
std::vector<int> leaves_in_turn(std::size_t hosts, int per_leaf);

/// What was measured of one, over all attempts.
struct Measured {
  std::vector<double> busbw_GBps;
  std::uint64_t wrong = 0;
  int attempts = 0;
  double seconds = 0;
};

/// nccl-tests' busbw of an allreduce that took `us`, in GB/s.
double busbw_GBps(Bytes size, int ranks, double us);

/// The payload that the check's thresholds are given for, if it fits; otherwise that with which an allreduce
/// on these hosts takes about a 16th of a turn by its bound, a power of two from 64 KiB up to the options'
/// most; 8 MiB at most where there is no bound.
Bytes payload_for(const Checking& checking, std::string_view check, const std::vector<int>& hosts);

/// "all hosts", "node0 and node1", "node0".
std::string subject_of(const Site& site, const std::vector<int>& hosts);
/// The hosts' ranks, ascending.
RankGroup ranks_of(const Site& site, const std::vector<int>& hosts);

/// A row about these hosts, without a verdict.
CheckRow row_of(const Checking& checking, std::string_view check, const std::vector<int>& hosts);

/// Measures all of these at the same time, and adds what came out to `measured`.
void measure_at_once(const Checking& checking, const std::vector<HostGroupUnderTest>& groups,
                     const GroupWork& work, const std::vector<Measured*>& measured);

/// The median of what others have, for each of many in turn: they are sorted once.
class OfOthers {
 public:
  enum class Part { all, larger_half };

  /// What all of them have, in any order.
  explicit OfOthers(std::vector<double> values);

  /// The median of all but `own`, or of the larger half of these, rounded up. `own` is one of them; nothing:
  /// all are others. Nothing where there are no others.
  std::optional<double> median(std::optional<double> own, Part part = Part::all) const;

 private:
  std::vector<double> sorted_;
};

/// What a group must reach where nobody said so: the low end of what is expected of it, or kOfPeers of the
/// median of others, whichever is more. Nothing where there is neither.
Threshold least_of(const Checking& checking, const HostGroupUnderTest& group, const GroupWork& work,
                   std::optional<double> of_others, const std::string& others);
inline constexpr double kOfPeers = 0.75;

/// A wrong result fails, whatever the time.
void fail_if_wrong(CheckRow& row, std::uint64_t wrong);
/// The verdict of what was measured, see fail_if_wrong().
void judge_measured(CheckRow& row, const Measured& measured, Bytes size, const Threshold& threshold);

}  // namespace polyring
