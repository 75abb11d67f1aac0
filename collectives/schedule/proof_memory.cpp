#include "collectives/schedule/proof_memory.hpp"

#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "collectives/schedule/program_text.hpp"

namespace polyring {
namespace {

/// In one exchange neither the rank whose memory it is writes its result over what others are still to read
/// (Transport::exchange() sees to it), nor does a reader write before it has read.
bool waits_by_itself(const Access& write, const Access& read) {
  return write.writes && read.reader >= 0 && write.exchange == read.exchange &&
         (write.by == read.by || write.by == read.reader);
}

}  // namespace

ProofMemory::ProofMemory(const Schedule& schedule, Stream stream, std::span<const Program> programs,
                         bool in_place)
    : schedule_(schedule),
      programs_(programs),
      in_place_(in_place),
      count_(stream_slice(schedule, stream).count),
      block_(count_ / schedule.blocks()) {
  if (schedule.collective != Collective::allreduce) {
    owners_ = block_owners(schedule.lanes[index(stream.lane)], schedule.ranks);
    own_block_.resize(owners_.size());
    for (std::size_t block = 0; block < owners_.size(); ++block)
      own_block_[index(owners_[block])] = static_cast<Count>(block) * block_;
  }
  find_bounds();
  ranks_.resize(index(schedule.ranks));
  for (Rank rank = 0; rank < schedule.ranks; ++rank) begin(rank);
}

void ProofMemory::find_bounds() {
  std::set<Count> bounds;
  for (Count block = 0; block <= schedule_.blocks(); ++block) bounds.insert(block * block_);
  bounds.insert(count_);
  const auto add = [&](Slice slice) {
    bounds.insert(slice.offset);
    bounds.insert(slice.end());
  };
  for (const Program& program : programs_) {
    for (const Program::Step& step : program.steps) {
      for (const auto& copy : step.copies) add(copy.slice);
      for (const Slice slice : step.widen) add(slice);
      for (const auto& send : step.sends) add(send.slice);
      for (const auto& receive : step.receives) add(receive.slice);
      for (const auto& fold : step.folds) add(fold.slice);
      if (!step.exchange) continue;
      add(step.exchange->own);
      for (const auto& partner : step.exchange->partners) {
        add(partner.gives);
        add(partner.takes);
      }
    }
  }
  if (*bounds.begin() < 0 || *bounds.rbegin() > count_) fail("a slice leaves its chunk");
  bounds_.assign(bounds.begin(), bounds.end());
}

std::size_t ProofMemory::segment_at(Count offset) const {
  return index(std::lower_bound(bounds_.begin(), bounds_.end(), offset) - bounds_.begin());
}

/// In place, what is in the input and in the output at once has one memory.
std::size_t ProofMemory::memory_of(Rank rank, Area area, std::size_t segment) const {
  const bool shared = in_place_ && area == Area::input &&
                      (schedule_.collective == Collective::allreduce || is_own(rank, segment));
  return static_cast<std::size_t>(shared ? Area::output : area);
}

bool ProofMemory::is_own(Rank rank, std::size_t segment) const {
  if (owners_.empty()) return true;
  const Count begin = own_block_[index(rank)];
  return bounds_[segment] >= begin && bounds_[segment] < begin + block_;
}

/// Whether there is such a place: a rank's input of an allgather is its own block, and so is its output of
/// a reduce-scatter.
void ProofMemory::check_place(Rank rank, Area area, Slice slice) const {
  if (slice.empty()) return;
  const Program& program = programs_[index(rank)];
  if ((area == Area::work && !program.has_work) || (area == Area::partial && !program.has_partials))
    fail("rank {} uses the {}, for which it has no memory", rank, to_text(area));
  if (owners_.empty()) return;
  const bool outside = area == Area::input || area == Area::output;
  if (outside && slice.offset / block_ != (slice.end() - 1) / block_)
    fail("rank {} uses elements [{}, {}) of the {} in one piece, and they lie in two blocks", rank,
         slice.offset, slice.end(), to_text(area));
  const bool block_only = (area == Area::input && schedule_.collective == Collective::allgather) ||
                          (area == Area::output && schedule_.collective == Collective::reduce_scatter);
  if (block_only && !is_own(rank, segment_at(slice.offset)))
    fail("rank {} uses elements [{}, {}) of the {}, which has its own block only", rank, slice.offset,
         slice.end(), to_text(area));
}

int ProofMemory::moment(Rank rank) {
  State& at = state(rank);
  ++at.clock[index(rank)];
  at.moments.push_back(at.clock);
  return at.clock[index(rank)];
}

void ProofMemory::learn(Rank rank, const Clock& from) {
  Clock& clock = state(rank).clock;
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], from[i]);
}

/// Whether one use was over when the other began.
bool ProofMemory::before(const Access& first, const Access& second) const {
  return state(second.by).moments[index(second.begin - 1)][index(first.by)] >= first.end;
}

bool ProofMemory::is_same(Rank rank, Area a, Area b, Slice slice) const {
  for (std::size_t i = segment_at(slice.offset); i < segment_at(slice.end()); ++i)
    if (memory_of(rank, a, i) != memory_of(rank, b, i)) return false;
  return true;
}

void ProofMemory::begin(Rank rank) {
  State& at = state(rank);
  at.clock.assign(index(schedule_.ranks), 0);
  for (int area = 0; area < kAreas; ++area) {
    at.values[index(area)].resize(segments());
    at.accesses[index(area)].resize(segments());
  }
  for (std::size_t segment = 0; segment < segments(); ++segment) {
    if (schedule_.collective == Collective::allgather && !is_own(rank, segment)) continue;
    at.values[memory_of(rank, Area::input, segment)][segment] = {
        std::uint64_t{1} << rank, bounds_[segment], bounds_[segment + 1] - bounds_[segment], false, false};
  }
}

/// A rank uses a slice of its own or another's memory.
void ProofMemory::use(Rank of, Area area, Slice slice, const Access& access) {
  check_place(of, area, slice);
  for (std::size_t i = segment_at(slice.offset); i < segment_at(slice.end()); ++i)
    state(of).accesses[memory_of(of, area, i)][i].push_back(access);
}

std::vector<Value> ProofMemory::values(Rank of, Area area, Slice slice) const {
  std::vector<Value> found;
  for (std::size_t i = segment_at(slice.offset); i < segment_at(slice.end()); ++i) {
    const Value& value = state(of).values[memory_of(of, area, i)][i];
    if (value.ranks == 0)
      fail("rank {} reads elements of its {} that nothing has been written to", of, to_text(area));
    found.push_back(value);
  }
  return found;
}

void ProofMemory::write(Rank of, Area area, Slice slice, const std::vector<Value>& from) {
  if (area == Area::input) fail("rank {}'s input is written to", of);
  const std::size_t first = segment_at(slice.offset);
  if (segment_at(slice.end()) - first != from.size())
    fail("rank {} writes elements [{}, {}) in other pieces than they come in", of, slice.offset, slice.end());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].length != bounds_[first + i + 1] - bounds_[first + i])
      fail("rank {} writes elements [{}, {}) in other pieces than they come in", of, slice.offset,
           slice.end());
    if (from[i].partial != (area == Area::partial))
      fail("rank {} writes elements of another kind to its {}", of, to_text(area));
    state(of).values[memory_of(of, area, first + i)][first + i] = from[i];
  }
}

void ProofMemory::check_accesses() const {
  for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
    const Access end{rank, static_cast<int>(state(rank).moments.size()), 0, true, 0};
    for (const auto& area : state(rank).accesses) {
      for (const std::vector<Access>& of_segment : area) check_segment(rank, of_segment, end);
    }
  }
}

void ProofMemory::check_segment(Rank rank, const std::vector<Access>& accesses, const Access& end) const {
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Access& one = accesses[i];
    if (one.by != rank && !before(one, end))
      fail("rank {} may still use memory of rank {} when that has ended", one.by, rank);
    for (std::size_t j = 0; j < i; ++j) {
      const Access& other = accesses[j];
      const bool same = one.by == other.by && one.operation == other.operation;
      if (same || (!one.writes && !other.writes) || waits_by_itself(one, other) ||
          waits_by_itself(other, one)) {
        continue;
      }
      // In one exchange its transport may move things in any order.
      const bool together = one.exchange != 0 && one.exchange == other.exchange;
      if (together || (!before(one, other) && !before(other, one)))
        fail("ranks {} and {} may use memory of rank {} at the same time, one of them writing", other.by,
             one.by, rank);
    }
  }
}

void ProofMemory::check_results() const {
  const std::uint64_t everybody =
      schedule_.ranks == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << schedule_.ranks) - 1;
  for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
    for (std::size_t i = 0; i < segments(); ++i) {
      if (schedule_.collective == Collective::reduce_scatter && !is_own(rank, i)) continue;
      const Value& value = state(rank).values[static_cast<std::size_t>(Area::output)][i];
      const bool complete = value.ranks == everybody && (value.last || schedule_.ranks == 1);
      const bool right = reduces(schedule_.collective)
                             ? complete
                             : value.ranks == std::uint64_t{1} << owners_[index(bounds_[i] / block_)];
      if (right && value.origin == origin_of(rank, bounds_[i])) continue;
      fail("rank {} ends without the right elements [{}, {}) in its output", rank, bounds_[i],
           bounds_[i + 1]);
    }
  }
}

/// Where an element of a rank's result was in the payloads that it comes from.
Count ProofMemory::origin_of(Rank rank, Count element) const {
  return schedule_.collective == Collective::alltoall ? own_block_[index(rank)] + element % block_ : element;
}

}  // namespace polyring
