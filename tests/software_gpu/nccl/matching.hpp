// Which operations of the ranks belong together: the rules of NCCL, checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/nccl/operation.hpp"

namespace polyring::software_nccl {

using Bytes = std::vector<std::byte>;
using Time = std::chrono::steady_clock::time_point;

/// One communicator's groups. Each rank has at most one that is not complete: its stream waits for it. The
/// n-th collective of all ranks is one and the same; sends and receives of a pair match in order.
class Matching {
 public:
  explicit Matching(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  /// The rank's stream has reached a group. `inputs` lie one behind the other. Throws Fault where the ranks
  /// disagree.
  void submit(int rank, std::vector<Operation> operations, const Bytes& inputs, Time now);

  /// Ranks whose groups are complete, and the outputs of each, one behind the other. Each is told once.
  std::vector<std::pair<int, Bytes>> take_complete();

  /// The rank will have no more operations.
  void leave(int rank);

  /// Throws Fault if all ranks wait or have left, or if one has waited for longer than `limit`.
  void check_progress(Time now, std::chrono::duration<double> limit) const;

 private:
  struct Group {
    std::vector<Operation> operations;
    std::vector<Bytes> inputs;
    std::vector<Bytes> outputs;
    std::vector<bool> done;
    Time arrived;
  };
  struct Participant {
    std::optional<Group> group;
    std::uint64_t collectives = 0;  // that it has begun
    std::uint64_t last_number = 0;
    bool left = false;
  };
  struct Place {  // of an operation that waits
    int rank = 0;
    std::size_t operation = 0;
  };
  struct Channel {  // from a rank to a rank
    std::deque<Place> sends;
    std::deque<Place> receives;
  };

  Participant& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Participant& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  const Operation& operation(Place place) const { return at(place.rank).group->operations[place.operation]; }
  Bytes& input(Place place) { return at(place.rank).group->inputs[place.operation]; }
  void finish(Place place, Bytes output);
  void submit_collective(Place place);
  void complete_collective(const std::vector<Place>& places);
  void submit_message(Place place);
  std::string state_of(int rank) const;
  std::string waited_for(Place place) const;

  std::vector<Participant> ranks_;
  std::map<std::uint64_t, std::vector<Place>> collectives_;  // by number, that have begun
  std::map<std::pair<int, int>, Channel> channels_;
};

}  // namespace polyring::software_nccl
