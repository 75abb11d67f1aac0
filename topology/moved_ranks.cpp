// Whether the ranks of a host may change places: where its resources go then.
#include <algorithm>

#include "base/index.hpp"
#include "topology/route.hpp"

namespace polyring {
namespace {

constexpr int kNowhere = -1;

/// A one-to-one map of a host's resources, as far as it is known.
class Moves {
 public:
  explicit Moves(int resources) : to_(index(resources), kNowhere), from_(to_) {}

  /// False where one of them goes or comes elsewhere.
  bool add(int from, int to) {
    int& goes = to_[index(from)];
    int& comes = from_[index(to)];
    if (goes == kNowhere && comes == kNowhere) {
      goes = to;
      comes = from;
    }
    return goes == to && comes == from;
  }

  /// What no route crosses stays.
  std::vector<int> all() && {
    for (int i = 0; i < static_cast<int>(to_.size()); ++i) {
      if (to_[index(i)] == kNowhere) to_[index(i)] = i;
    }
    return std::move(to_);
  }

 private:
  std::vector<int> to_;
  std::vector<int> from_;
};

}  // namespace

std::optional<std::vector<int>> Router::moved(int group, std::span<const int> to) const {
  const HostRoutes& host = hosts_[index(group)];
  const ResourceId first = first_of_group_[index(group)];
  Moves moves(host.resources);
  const auto same = [&](const DevicePath& a, const DevicePath& b) {
    const auto moves_there = [&](const Crossing& from, const Crossing& there) {
      return from.share == there.share &&
             bandwidth(first + from.resource).value == bandwidth(first + there.resource).value &&
             moves.add(from.resource, there.resource);
    };
    return a.latency.value == b.latency.value && a.unknown.empty() == b.unknown.empty() &&
           std::ranges::equal(a.crossings, b.crossings, moves_there);
  };
  const int ranks = host.ranks;
  for (int from = 0; from < ranks; ++from) {
    for (int other = 0; other < ranks; ++other) {
      if (!same(host.between[index(from * ranks + other)],
                host.between[index(to[index(from)] * ranks + to[index(other)])]))
        return std::nullopt;
    }
  }
  for (const std::vector<DevicePath>* ways : {&host.leave, &host.enter, &host.up, &host.down}) {
    for (int rank = 0; !ways->empty() && rank < ranks; ++rank) {
      if (!same((*ways)[index(rank)], (*ways)[index(to[index(rank)])])) return std::nullopt;
    }
  }
  return std::move(moves).all();
}

}  // namespace polyring
