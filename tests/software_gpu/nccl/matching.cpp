#include "tests/software_gpu/nccl/matching.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace polyring::software_nccl {
namespace {

[[noreturn]] void differ(int rank, const Operation& operation, int other, const Operation& others,
                         const char* what) {
  throw Fault{ncclInvalidUsage, fmt::format("rank {}'s {}, and rank {}'s {}, have {}", other, to_text(others),
                                            rank, to_text(operation), what)};
}

}  // namespace

void Matching::submit(int rank, std::vector<Operation> operations, const Bytes& inputs, Time now) {
  Participant& participant = at(rank);
  if (participant.group) throw Fault{ncclInternalError, fmt::format("rank {} began two groups", rank)};
  Group& group = participant.group.emplace();
  group.operations = std::move(operations);
  group.outputs.resize(group.operations.size());
  group.done.resize(group.operations.size());
  group.arrived = now;
  auto next = inputs.begin();
  for (const Operation& each : group.operations) {
    const auto end = next + static_cast<std::ptrdiff_t>(each.input_bytes);
    group.inputs.emplace_back(next, end);
    next = end;
  }
  for (std::size_t index = 0; index < group.operations.size(); ++index) {
    participant.last_number = group.operations[index].number;
    is_collective(group.operations[index].what) ? submit_collective({rank, index})
                                                : submit_message({rank, index});
  }
}

void Matching::finish(Place place, Bytes output) {
  Group& group = *at(place.rank).group;
  group.outputs[place.operation] = std::move(output);
  group.done[place.operation] = true;
}

void Matching::submit_collective(Place place) {
  const std::uint64_t number = at(place.rank).collectives++;
  std::vector<Place>& places = collectives_[number];
  places.push_back(place);
  const Operation& mine = operation(place);
  const Operation& first = operation(places.front());
  const auto require = [&](bool same, const char* what) {
    if (!same) differ(place.rank, mine, places.front().rank, first, what);
  };
  require(mine.what == first.what, "the same place among the collectives and are not the same");
  require(mine.type == first.type, "unequal types");
  require(mine.count == first.count, "unequal counts");
  require(mine.reduction == first.reduction, "unequal reductions");
  require(mine.place == first.place && mine.collectives == first.collectives,
          "unequal places in their groups, or groups with unequal numbers of collectives");
  if (places.size() < ranks_.size()) return;
  std::sort(places.begin(), places.end(), [](Place a, Place b) { return a.rank < b.rank; });
  complete_collective(places);
  collectives_.erase(number);
}

void Matching::complete_collective(const std::vector<Place>& places) {
  const Operation& model = operation(places.front());
  const std::size_t part = model.count * size_of(model.type);
  if (model.what == What::all_gather) {
    Bytes all;
    for (const Place place : places) all.insert(all.end(), input(place).begin(), input(place).end());
    for (const Place place : places) finish(place, all);
    return;
  }
  const std::size_t results = model.what == What::reduce_scatter ? places.size() : 1;
  for (std::size_t result = 0; result < results; ++result) {
    std::vector<const std::byte*> inputs;
    for (const Place place : places) inputs.push_back(input(place).data() + result * part);
    Bytes output(part);
    reduce(model, output.data(), inputs);
    if (model.what == What::reduce_scatter) {
      finish(places[result], std::move(output));
    } else {
      for (const Place place : places) finish(place, output);
    }
  }
}

void Matching::submit_message(Place place) {
  const Operation& mine = operation(place);
  const bool sends = mine.what == What::send;
  Channel& channel = channels_[sends ? std::pair(place.rank, mine.peer) : std::pair(mine.peer, place.rank)];
  (sends ? channel.sends : channel.receives).push_back(place);
  if (channel.sends.empty() || channel.receives.empty()) return;
  const Place from = channel.sends.front();
  const Place to = channel.receives.front();
  channel.sends.pop_front();
  channel.receives.pop_front();
  if (operation(from).count != operation(to).count) {
    differ(to.rank, operation(to), from.rank, operation(from), "unequal counts");
  }
  if (operation(from).type != operation(to).type) {
    differ(to.rank, operation(to), from.rank, operation(from), "unequal types");
  }
  Bytes moved = std::move(input(from));
  finish(to, std::move(moved));
  finish(from, {});
}

std::vector<std::pair<int, Bytes>> Matching::take_complete() {
  std::vector<std::pair<int, Bytes>> complete;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    std::optional<Group>& group = ranks_[rank].group;
    if (!group || std::find(group->done.begin(), group->done.end(), false) != group->done.end()) continue;
    Bytes all;
    for (const Bytes& output : group->outputs) all.insert(all.end(), output.begin(), output.end());
    complete.emplace_back(static_cast<int>(rank), std::move(all));
    group.reset();
  }
  return complete;
}

void Matching::leave(int rank) { at(rank).left = true; }

std::string Matching::waited_for(Place place) const {
  const Operation& waits = operation(place);
  if (waits.what == What::send) return fmt::format("rank {}'s ncclRecv", waits.peer);
  if (waits.what == What::receive) return fmt::format("rank {}'s ncclSend", waits.peer);
  std::vector<bool> come(ranks_.size());
  for (const auto& [number, places] : collectives_) {
    const bool mine = std::any_of(places.begin(), places.end(), [&](Place other) {
      return other.rank == place.rank && other.operation == place.operation;
    });
    if (!mine) continue;
    for (const Place other : places) come[static_cast<std::size_t>(other.rank)] = true;
  }
  std::vector<std::size_t> absent;
  for (std::size_t rank = 0; rank < come.size(); ++rank) {
    if (!come[rank]) absent.push_back(rank);
  }
  return fmt::format("rank {}", fmt::join(absent, " and rank "));
}

std::string Matching::state_of(int rank) const {
  const Participant& participant = at(rank);
  if (participant.left) return fmt::format("rank {} has finalized", rank);
  if (!participant.group) return fmt::format("rank {} has done {} operations", rank, participant.last_number);
  const Group& group = *participant.group;
  const auto open =
      static_cast<std::size_t>(std::find(group.done.begin(), group.done.end(), false) - group.done.begin());
  return fmt::format("rank {} waits in {} for {}", rank, to_text(group.operations[open]),
                     waited_for({rank, open}));
}

void Matching::check_progress(Time now, std::chrono::duration<double> limit) const {
  const bool any = std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !!rank.group; });
  if (!any) return;
  const bool all =
      std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.group || rank.left; });
  const bool late = std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& rank) {
    return rank.group && now - rank.group->arrived > limit;
  });
  if (!all && !late) return;
  std::vector<std::string> states;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) states.push_back(state_of(static_cast<int>(rank)));
  throw Fault{ncclInternalError,
              fmt::format("{}: {}", all ? "deadlock" : fmt::format("nothing happens for {} s", limit.count()),
                          fmt::join(states, "; "))};
}

}  // namespace polyring::software_nccl
