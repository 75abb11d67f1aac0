#include "collectives/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/names.hpp"

namespace polyring {
namespace {

constexpr std::array kAllCollectives{Collective::allreduce, Collective::reduce_scatter, Collective::allgather,
                                     Collective::alltoall};

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

/// Appends the transfers of one step of one rank.
class Expansion {
 public:
  Expansion(const Schedule& schedule, Stream stream, int stage, int step, Rank rank, End end,
            std::vector<Transfer>& transfers)
      : schedule_(schedule),
        lane_(schedule.lanes[index(stream.lane)]),
        at_(lane_.stages[index(stage)]),
        dimension_(lane_.dimension_of(stage)),
        rank_(rank),
        end_(end),
        transfer_{stream, stage, step, rank, rank, {}, combine_of(at_.kind)},
        transfers_(transfers) {}

  void run() {
    switch (at_.kind) {
      case StageKind::reduce:
      case StageKind::spread:
        return narrow_or_widen();
      case StageKind::alltoall:
        return all_to_all();
      case StageKind::in_switches:
        return;
    }
  }

 private:
  /// A spread is the pattern, or its first steps, run backwards: the last of them first, and what was sent is
  /// now received.
  void narrow_or_widen() {
    const Slice shared = shared_slice(schedule_, transfer_.stream, at_.dimension, rank_);
    if (shared.empty()) return;
    const bool reducing = at_.kind == StageKind::reduce;
    const int step = reducing ? transfer_.step : dimension_.spread_steps() - 1 - transfer_.step;
    for (const Move& move : moves(step, (end_ == End::source) == reducing)) {
      const Run run = slices_of(shared, move.blocks, dimension_.size());
      for (int i = 0; i < run.number; ++i) add(move.peer, run.slices[index(i)], 0);
    }
  }

  /// Blocks of the dimensions before this one lie outside of this one's, so that there are several runs of
  /// these.
  void all_to_all() {
    const Slice all = stream_slice(schedule_, transfer_.stream);
    int outer = 1;
    for (int i = 0; i < at_.dimension; ++i) outer *= lane_.dimensions[index(i)].size();
    const int size = dimension_.size();
    const Count length = all.count / (Count{outer} * size);
    if (length == 0) return;
    const int own = dimension_.position(rank_);
    for (const Move& move : moves(transfer_.step, end_ == End::source)) {
      const auto [from, to] = end_ == End::source ? std::pair(own, move.peer) : std::pair(move.peer, own);
      for (int i = 0; i < outer; ++i)
        add(move.peer, {all.offset + (Count{i} * size + to) * length, length}, (from - to) * length);
    }
  }

  const std::vector<Move>& moves(int step, bool sends) const {
    static thread_local std::vector<Move> moves;
    moves.clear();
    const int n = dimension_.size();
    const int member = dimension_.position(rank_);
    if (sends) {
      dimension_.pattern().sends(n, step, member, moves);
    } else {
      dimension_.pattern().receives(n, step, member, moves);
    }
    return moves;
  }

  void add(int peer, Slice slice, Count moved) {
    (end_ == End::source ? transfer_.destination : transfer_.source) = dimension_.rank_at(rank_, peer);
    transfer_.slice = slice;
    transfer_.moved = moved;
    transfers_.push_back(transfer_);
  }

  const Schedule& schedule_;
  const Lane& lane_;
  Stage at_;
  const Dimension& dimension_;
  Rank rank_;
  End end_;
  Transfer transfer_;
  std::vector<Transfer>& transfers_;
};

RankWork work_of_stream(const Schedule& schedule, Stream stream, Rank rank, ElementSizes sizes) {
  RankWork work;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  const Lane& lane = schedule.lanes[index(stream.lane)];
  for (int stage = 0; stage < stage_count(lane); ++stage) {
    const Stage at = lane.stages[index(stage)];
    if (at.kind == StageKind::in_switches) {
      const Count bytes = shared_slice(schedule, stream, at.dimension, rank).count * sizes.payload;
      work = {work.sent + bytes, work.received + bytes, work.steps + (bytes > 0 ? 1 : 0)};
      continue;
    }
    for (int step = 0; step < step_count(lane, stage); ++step) {
      sends.clear();
      receives.clear();
      append_sends(schedule, stream, stage, step, rank, sends);
      append_receives(schedule, stream, stage, step, rank, receives);
      const int size = sizes.in_message(combine_of(at.kind), stage, step);
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

const Dimension& Lane::dimension_of(int stage) const {
  return dimensions[index(stages[index(stage)].dimension)];
}

int step_count(const Lane& lane, int stage) {
  const Dimension& dimension = lane.dimension_of(stage);
  switch (lane.stages[index(stage)].kind) {
    case StageKind::reduce:
    case StageKind::alltoall:
      return dimension.steps();
    case StageKind::spread:
      return dimension.spread_steps();
    case StageKind::in_switches:
      return 1;
  }
  return 0;
}

std::string to_text(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return "allreduce";
    case Collective::reduce_scatter:
      return "reduce-scatter";
    case Collective::allgather:
      return "allgather";
    case Collective::alltoall:
      return "alltoall";
  }
  return "";
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Collective collective : kAllCollectives) names.emplace_back(to_text(collective));
  return names;
}

Collective parse_collective(std::string_view text) {
  for (const Collective collective : kAllCollectives) {
    if (text == to_text(collective)) return collective;
  }
  throw Error(ExitCode::usage, unknown_name("collective", text, collective_names()));
}

Slice stream_slice(const Schedule& schedule, Stream stream) {
  const Lane& lane = schedule.lanes[index(stream.lane)];
  const int blocks = schedule.blocks();
  const Slice in_block = part({0, lane.slice.count / blocks}, stream.chunk, lane.chunks);
  return {lane.slice.offset + blocks * in_block.offset, blocks * in_block.count};
}

std::vector<Stream> streams_of(const Schedule& schedule) {
  std::vector<Stream> streams;
  int most = 0;
  for (const Lane& lane : schedule.lanes) most = std::max(most, lane.chunks);
  for (int chunk = 0; chunk < most; ++chunk) {
    for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
      if (chunk >= schedule.lanes[index(lane)].chunks) continue;
      if (!stream_slice(schedule, {lane, chunk}).empty()) streams.push_back({lane, chunk});
    }
  }
  return streams;
}

std::vector<Rank> block_owners(const Lane& lane, int ranks) {
  std::vector<Rank> owners(index(ranks));
  for (int block = 0; block < ranks; ++block) {
    int rest = block;
    for (auto dimension = lane.dimensions.rbegin(); dimension != lane.dimensions.rend(); ++dimension) {
      owners[index(block)] += dimension->rank_at(0, rest % dimension->size());
      rest /= dimension->size();
    }
  }
  return owners;
}

Count payload_offset(const Schedule& schedule, Stream stream, std::span<const Rank> owners, Count element,
                     bool in_block) {
  const Slice all = stream_slice(schedule, stream);
  if (owners.empty()) return all.offset + element;
  const Count length = all.count / schedule.ranks;
  const Count of_blocks = in_block ? 0 : owners[index(element / length)] * (schedule.count / schedule.ranks);
  return of_blocks + all.offset / schedule.ranks + element % length;
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
  Expansion(schedule, stream, stage, step, rank, End::source, transfers).run();
}

void append_receives(const Schedule& schedule, Stream stream, int stage, int step, Rank rank,
                     std::vector<Transfer>& transfers) {
  Expansion(schedule, stream, stage, step, rank, End::destination, transfers).run();
}

Schedule in_groups(const Schedule& schedule, int stride, int ranks) {
  const std::int64_t block = std::int64_t{stride} * schedule.ranks;
  if (stride < 1 || ranks < 1 || ranks % block != 0) {
    usage_error("{} ranks are no whole number of groups of {} that are {} apart; give a multiple of {}",
                ranks, schedule.ranks, stride, block);
  }
  Schedule result = schedule;
  result.ranks = ranks;
  result.groups = ranks / schedule.ranks * schedule.groups;
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

Schedule with_switches(const Schedule& of_host, int ranks) {
  Schedule result = in_groups(of_host, 1, ranks);
  for (Lane& lane : result.lanes) {
    const auto spread = std::ranges::find(lane.stages, StageKind::spread, &Stage::kind);
    lane.stages.insert(spread, {static_cast<int>(lane.dimensions.size()), StageKind::in_switches});
    lane.dimensions.emplace_back(one_shot_pattern(), ranks / of_host.ranks, of_host.ranks);
  }
  assert_well_formed(result);
  return result;
}

RankWork work_of(const Schedule& schedule, Rank rank, ElementSizes sizes) {
  RankWork work;
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    const Lane& at = schedule.lanes[index(lane)];
    // part() makes the first chunks larger by an element; chunks with equally many elements are cut equally.
    const int larger = static_cast<int>(at.slice.count / schedule.blocks() % at.chunks);
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
    // Dimensions whose stage has been.
    int level = schedule.collective == Collective::allgather ? static_cast<int>(lane.dimensions.size()) : 0;
    for (const Stage& stage : lane.stages) {
      if (stage.kind == StageKind::spread) --level;
      assert(stage.dimension == level);
      if (stage.kind == StageKind::reduce || stage.kind == StageKind::alltoall) ++level;
    }
    assert(lane.slice.count % schedule.blocks() == 0);
  }
  assert(next == schedule.count);
#endif
}

}  // namespace polyring
