#include "collectives/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace polyring {
namespace {

/// The run of blocks as slices: two where it wraps around.
struct Run {
  std::array<Slice, 2> slices;
  int number = 0;
};

Run slices_of(Slice shared, Blocks blocks, int n) {
  Run run;
  const int until_end = std::min(blocks.number, n - blocks.first);
  for (const Slice slice :
       {part(shared, blocks.first, n, until_end), part(shared, 0, n, blocks.number - until_end)}) {
    if (!slice.empty()) run.slices[index(run.number++)] = slice;
  }
  return run;
}

enum class End { source, destination };

/// Appends the transfers that have `rank` at the given end. A spread is the reduce pattern, or its first
/// steps, run backwards: the last of them first, and what was sent is now received.
void append_transfers(const Schedule& schedule, Stream stream, int stage, int step, Rank rank, End end,
                      std::vector<Transfer>& transfers) {
  const Lane& lane = schedule.lanes[index(stream.lane)];
  const Stage at = stage_at(lane, stage);
  const Dimension& dimension = lane.dimensions[index(at.dimension)];
  const Slice shared = shared_slice(schedule, stream, at.dimension, rank);
  if (shared.empty()) return;

  const bool reducing = at.combine == Combine::reduce;
  const int n = dimension.size();
  const int pattern_step = reducing ? step : dimension.spread_steps() - 1 - step;
  static thread_local std::vector<Move> moves;
  moves.clear();
  if ((end == End::source) == reducing) {
    dimension.pattern().sends(n, pattern_step, dimension.position(rank), moves);
  } else {
    dimension.pattern().receives(n, pattern_step, dimension.position(rank), moves);
  }
  for (const Move& move : moves) {
    const Rank peer = dimension.rank_at(rank, move.peer);
    const Run run = slices_of(shared, move.blocks, n);
    for (int i = 0; i < run.number; ++i) {
      const auto [source, destination] = end == End::source ? std::pair(rank, peer) : std::pair(peer, rank);
      transfers.push_back({stream, stage, step, source, destination, run.slices[index(i)], at.combine});
    }
  }
}

RankWork work_of_stream(const Schedule& schedule, Stream stream, Rank rank, ElementSizes sizes) {
  RankWork work;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  const Lane& lane = schedule.lanes[index(stream.lane)];
  for (int stage = 0; stage < stage_count(lane); ++stage) {
    for (int step = 0; step < step_count(lane, stage); ++step) {
      sends.clear();
      receives.clear();
      append_sends(schedule, stream, stage, step, rank, sends);
      append_receives(schedule, stream, stage, step, rank, receives);
      const int size = sizes.in_message(stage_at(lane, stage).combine, stage, step);
      for (const Transfer& transfer : sends) work.sent += transfer.slice.count * size;
      for (const Transfer& transfer : receives) work.received += transfer.slice.count * size;
      work.steps += sends.empty() && receives.empty() ? 0 : 1;
    }
  }
  return work;
}

}  // namespace

Dimension::Dimension(const Pattern& pattern, int size, int stride, std::vector<int> order)
    : pattern_(&pattern), size_(size), stride_(stride), order_(std::move(order)) {
  assert(size > 0 && stride > 0);
  if (order_.empty()) return;
  assert(order_.size() == index(size));
  positions_.resize(order_.size());
  for (int position = 0; position < size; ++position) positions_[index(order_[index(position)])] = position;
}

int Dimension::position(Rank rank) const {
  const int coordinate = rank / stride_ % size_;
  return positions_.empty() ? coordinate : positions_[index(coordinate)];
}

Rank Dimension::rank_at(Rank member_of_group, int position) const {
  const int coordinate = member_of_group / stride_ % size_;
  const int wanted = order_.empty() ? position : order_[index(position)];
  return member_of_group + (wanted - coordinate) * stride_;
}

Stage stage_at(const Lane& lane, int stage) {
  const int dimensions = static_cast<int>(lane.dimensions.size());
  return stage < dimensions ? Stage{stage, Combine::reduce}
                            : Stage{2 * dimensions - 1 - stage, Combine::copy};
}

Slice stream_slice(const Schedule& schedule, Stream stream) {
  const Lane& lane = schedule.lanes[index(stream.lane)];
  return part(lane.slice, stream.chunk, lane.chunks);
}

Slice shared_slice(const Schedule& schedule, Stream stream, int dimension, Rank rank) {
  const Lane& lane = schedule.lanes[index(stream.lane)];
  Slice slice = stream_slice(schedule, stream);
  for (int outer = 0; outer < dimension; ++outer) {
    const Dimension& passed = lane.dimensions[index(outer)];
    const Blocks held = passed.pattern().holds(passed.size(), passed.position(rank));
    slice = part(slice, held.first, passed.size(), held.number);
  }
  return slice;
}

void append_sends(const Schedule& schedule, Stream stream, int stage, int step, Rank rank,
                  std::vector<Transfer>& transfers) {
  append_transfers(schedule, stream, stage, step, rank, End::source, transfers);
}

void append_receives(const Schedule& schedule, Stream stream, int stage, int step, Rank rank,
                     std::vector<Transfer>& transfers) {
  append_transfers(schedule, stream, stage, step, rank, End::destination, transfers);
}

Schedule in_groups(const Schedule& schedule, int stride, int ranks) {
  const std::int64_t block = std::int64_t{stride} * schedule.ranks;
  if (stride < 1 || ranks < 1 || ranks % block != 0) {
    usage_error("{} ranks are no whole number of groups of {} that are {} apart; give a multiple of {}",
                ranks, schedule.ranks, stride, block);
  }
  Schedule result = schedule;
  result.ranks = ranks;
  for (Lane& lane : result.lanes) {
    for (Dimension& dimension : lane.dimensions) {
      std::vector<int> order;
      for (int position = 0; position < dimension.size(); ++position)
        order.push_back(dimension.rank_at(0, position) / dimension.stride());
      dimension = Dimension(dimension.pattern(), dimension.size(), dimension.stride() * stride, order);
    }
  }
  return result;
}

RankWork work_of(const Schedule& schedule, Rank rank, ElementSizes sizes) {
  RankWork work;
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    const Lane& at = schedule.lanes[index(lane)];
    // part() makes the first chunks larger by an element; chunks with equally many elements are cut equally.
    const int larger = static_cast<int>(at.slice.count % at.chunks);
    for (const auto& [chunk, times] : {std::pair(0, larger), std::pair(at.chunks - 1, at.chunks - larger)}) {
      if (times == 0) continue;
      const RankWork once = work_of_stream(schedule, {lane, chunk}, rank, sizes);
      work.sent += times * once.sent;
      work.received += times * once.received;
      work.steps = std::max(work.steps, once.steps);
    }
  }
  return work;
}

void assert_well_formed([[maybe_unused]] const Schedule& schedule) {
#ifndef NDEBUG
  Count next = 0;
  for (const Lane& lane : schedule.lanes) {
    assert(lane.chunks > 0 && lane.slice.offset == next);
    next = lane.slice.end();
    int ranks = 1;
    for (const Dimension& dimension : lane.dimensions) {
      assert(dimension.stride() == ranks);
      ranks *= dimension.size();
    }
    assert(ranks == schedule.ranks);
  }
  assert(next == schedule.count);
#endif
}

}  // namespace polyring
