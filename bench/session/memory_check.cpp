#include "bench/session/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/boot_id.hpp"
#include "base/error.hpp"

namespace polyring {
namespace {

/// One sixteenth stays free.
constexpr std::uint64_t kKept = 16;

/// A limit, and who shares it.
struct Limit {
  std::string (*sharers)(const RankMemory&);
  std::optional<Bytes> MemoryRoom::*room;
  Bytes MemoryNeed::*need;
  std::string_view what;
};

std::string host_of(const RankMemory& rank) { return rank.host; }
std::string cgroup_of(const RankMemory& rank) {
  return fmt::format("{} {}", rank.machine, rank.room.cgroup_id);
}
std::string machine_of(const RankMemory& rank) { return rank.machine; }
std::string gpu_of(const RankMemory& rank) { return fmt::format("{} {}", rank.host, rank.room.gpu_id); }
std::string process_of(const RankMemory& rank) { return std::to_string(rank.process); }

constexpr std::array kLimits{
    Limit{machine_of, &MemoryRoom::host, &MemoryNeed::memory, "of its memory are available"},
    Limit{cgroup_of, &MemoryRoom::cgroup, &MemoryNeed::memory, "are left of its control group's limit"},
    Limit{host_of, &MemoryRoom::shared_files, &MemoryNeed::shared_files, "are free in its /dev/shm"},
    Limit{process_of, &MemoryRoom::address_space, &MemoryNeed::address_space,
          "of address space are left by ulimit -v"},
    Limit{gpu_of, &MemoryRoom::gpu, &MemoryNeed::gpu, "of its GPU's memory are free"}};

double scarcity(const Shortage& shortage) {
  return static_cast<double>(shortage.needed.value) / std::max(1.0, static_cast<double>(shortage.left.value));
}

/// Each group of ranks that share the limit.
void add_shortages(std::span<const RankMemory> ranks, const Limit& limit, std::vector<Shortage>& found) {
  std::map<std::string, Shortage> groups;
  for (const RankMemory& rank : ranks) {
    const std::optional<Bytes>& room = rank.room.*limit.room;
    if (!room) continue;
    const auto [at, fresh] = groups.try_emplace(limit.sharers(rank));
    Shortage& group = at->second;
    group.left = fresh ? *room : std::min(group.left, *room);
    group.host = fresh ? rank.host : group.host;
    group.needed = group.needed + rank.need.*limit.need;
    group.what = limit.what;
    ++group.ranks;
  }
  for (const auto& [name, group] : groups) {
    if (group.needed.value > group.left.value - group.left.value / kKept) found.push_back(group);
  }
}

/// What each rank tells the others.
struct Told {
  MemoryNeed need;
  MemoryRoom room;
  std::array<char, 64> machine;
};

Told told(const MemoryNeed& need, const MemoryRoom& room, const std::string& host) {
  Told own{need, room, {}};
  boot_id(host).copy(own.machine.data(), own.machine.size() - 1);
  return own;
}

/// Three digits are enough to see what is too much.
std::string amount(Bytes bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{:.0f} {}", value, kUnits[unit])
                   : fmt::format("{:.{}f} {}", value,
                                 value < 10    ? 2
                                 : value < 100 ? 1
                                               : 0,
                                 kUnits[unit]);
}

}  // namespace

Count largest_fitting(Count below, int element_size, const std::function<bool(Count)>& fits) {
  const auto whole = [&](Count count) {
    constexpr Count kStep = 1 << 20;
    const Count bytes = count * element_size;
    return (bytes > kStep ? bytes / kStep * kStep : bytes) / element_size;
  };
  Count good = 0;
  while (whole(below - 1) > good) {
    const Count middle = whole(good + (below - good) / 2);
    const Count tried = middle > good ? middle : whole(below - 1);
    (fits(tried) ? good : below) = tried;
  }
  return good;
}

std::optional<Shortage> find_shortage(std::span<const RankMemory> ranks) {
  std::vector<Shortage> found;
  for (const Limit& limit : kLimits) add_shortages(ranks, limit, found);
  if (found.empty()) return std::nullopt;
  return *std::max_element(found.begin(), found.end(),
                           [](const auto& a, const auto& b) { return scarcity(a) < scarcity(b); });
}

std::string to_text(const Shortage& shortage) {
  return fmt::format("{} on {} need{} {}, and {} {}",
                     shortage.ranks == 1 ? "one rank" : fmt::format("{} ranks", shortage.ranks),
                     shortage.host, shortage.ranks == 1 ? "s" : "", amount(shortage.needed),
                     amount(shortage.left), shortage.what);
}

std::optional<Shortage> find_shortage(const World& world, const MemoryNeed& own, const MemoryRoom& room) {
  Told mine = told(own, room, world.host());
  // Threads find each other's memory where it is: they map nothing.
  if (world.first_of_process(world.size() - 1) != world.size() - 1)
    mine.need.address_space = mine.need.memory;
  const auto all = world.allgather(std::as_bytes(std::span(&mine, 1)));
  std::vector<RankMemory> ranks;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    Told of_rank;
    std::memcpy(&of_rank, all[static_cast<std::size_t>(rank)].data(), sizeof of_rank);
    ranks.push_back(
        {world.host(rank), of_rank.machine.data(), of_rank.need, of_rank.room, world.first_of_process(rank)});
  }
  return find_shortage(ranks);
}

Fitting fit_counts(const World& world, std::span<const Count> counts, int element_size, bool lowerable,
                   const NeedOf& need, const MemoryRoom& room) {
  const auto shortage_at = [&](Count count) { return find_shortage(world, need(count), room); };
  const auto shortage = shortage_at(counts.back());
  if (!shortage) return {counts.size(), ""};
  const auto fits = [&](Count count) { return !shortage_at(count); };
  if (lowerable && counts.size() > 1 && fits(counts.front())) {
    std::size_t good = 0;
    std::size_t bad = counts.size() - 1;
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (fits(counts[middle]) ? good : bad) = middle;
    }
    const auto bytes = [&](Count count) { return Bytes{static_cast<std::uint64_t>(count * element_size)}; };
    return {good + 1,
            fmt::format("the largest size is {} instead of {}: for that, {}", to_text(bytes(counts[good])),
                        to_text(bytes(counts.back())), to_text(*shortage))};
  }
  const Count largest = largest_fitting(lowerable ? counts.front() : counts.back(), element_size, fits);
  usage_error("too little memory: {}; the largest size that fits is {}", to_text(*shortage),
              to_text(Bytes{static_cast<std::uint64_t>(largest * element_size)}));
}

}  // namespace polyring
