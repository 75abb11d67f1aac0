#include "collectives/schedule/static_order.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/index.hpp"

namespace polyring {
namespace {

/// The rounds of a lane's steps.
class Pace {
 public:
  Pace(int rounds, int chunks, OrderOptions options)
      : rounds_(rounds),
        window_(options.window),
        apart_(options.alternate && options.window % 2 == 0 && chunks > 1 ? 2 : 1) {}

  /// Even and odd chunks have each a half of the window, and the even or the odd rounds. Chunk c + window
  /// begins when chunk c has ended.
  int round(int chunk, int round) const {
    const Count begin = Count{chunk / apart_} * rounds_ / (window_ / apart_);
    return apart_ * (static_cast<int>(begin) + round) + chunk % apart_;
  }

 private:
  int rounds_;
  int window_;
  int apart_;  // from a step to the next
};

class Maker {
 public:
  Maker(const Schedule& schedule, Rank rank, const std::function<bool(Rank)>& reaches, Partials partials,
        OrderOptions options)
      : schedule_(schedule), rank_(rank), reaches_(reaches), partials_(partials), options_(options) {
    check_window(options.window);
  }

  StaticOrder run() {
    order_.collective = schedule_.collective;
    add_slots();
    for (const Stream stream : streams_of(schedule_)) add(stream);
    std::ranges::sort(order_.entries, {}, [](const StaticOrder::Entry& entry) {
      return std::tuple(entry.round, entry.work, entry.step);
    });
    order_.link();
    return std::move(order_);
  }

 private:
  void add_slots() {
    for (const Lane& lane : schedule_.lanes) {
      first_slots_.push_back(order_.slots.size());
      order_.slots.resize(order_.slots.size() + index(std::min(lane.chunks, options_.window)));
    }
  }

  void add(Stream stream) {
    const Slice slice = stream_slice(schedule_, stream);
    const std::size_t slot = first_slots_[index(stream.lane)] + index(stream.chunk % options_.window);
    const std::size_t work = order_.works.size();
    order_.works.push_back({stream, slice, program_of(stream, slice.count), slot});
    const Program& program = order_.programs[order_.works.back().program];
    StaticOrder::Slot& memory = order_.slots[slot];
    memory.staging = std::max(memory.staging, program.staging);
    if (program.has_partials) memory.partials = std::max(memory.partials, slice.count);
    if (program.has_work) memory.work = std::max(memory.work, slice.count);
    const Pace pace(program.rounds, schedule_.lanes[index(stream.lane)].chunks, options_);
    for (std::size_t step = 0; step < program.steps.size(); ++step) {
      const int round = pace.round(stream.chunk, program.steps[step].round);
      order_.entries.push_back({round, work, step});
    }
  }

  std::size_t program_of(Stream stream, Count count) {
    const auto [at, is_new] = programs_.try_emplace({stream.lane, count}, order_.programs.size());
    if (is_new) order_.programs.push_back(compile(schedule_, stream, rank_, reaches_, partials_));
    return at->second;
  }

  const Schedule& schedule_;
  Rank rank_;
  const std::function<bool(Rank)>& reaches_;
  Partials partials_;
  OrderOptions options_;
  StaticOrder order_;
  std::vector<std::size_t> first_slots_;                   // by lane
  std::map<std::pair<int, Count>, std::size_t> programs_;  // by lane and number of elements
};

}  // namespace

std::span<const StaticOrder::Entry> StaticOrder::round_from(std::size_t first) const {
  std::size_t end = first;
  while (end < entries.size() && entries[end].round == entries[first].round) ++end;
  return std::span(entries).subspan(first, end - first);
}

void StaticOrder::link() {
  std::vector<std::size_t> last(slots.size(), Entry::kNone);
  for (std::size_t i = 0; i < entries.size(); ++i)
    entries[i].after = std::exchange(last[works[entries[i].work].slot], i);
}

StaticOrder order_of(const Schedule& schedule, Rank rank, const std::function<bool(Rank)>& reaches,
                     Partials partials, OrderOptions options) {
  return Maker(schedule, rank, reaches, partials, options).run();
}

std::vector<StaticOrder> order_all(const Schedule& schedule, const std::function<bool(Rank, Rank)>& reach,
                                   Partials partials, OrderOptions options) {
  std::vector<StaticOrder> orders;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    const auto reaches = [&](Rank peer) { return reach && reach(rank, peer); };
    orders.push_back(order_of(schedule, rank, reaches, partials, options));
  }
  return orders;
}

}  // namespace polyring
