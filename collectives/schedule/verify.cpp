#include "collectives/schedule/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"

namespace polyring {
namespace {

/// All transfers of one step of a stream, as their sources see them, and the same from their destinations.
struct StepTransfers {
  std::vector<Transfer> sent;
  std::vector<Transfer> received;
  bool overlaps = false;  // somebody sends what it combines with others in the same step
};

/// Who has contributed to what: a bit per rank, for each rank and each segment in [first, last). A segment is
/// a run of elements that no transfer ever splits.
class Contributions {
 public:
  Contributions(int ranks, std::size_t first, std::size_t last)
      : ranks_(ranks), words_((index(ranks) + 63) / 64), first_(first), last_(last) {
    bits_.assign(index(ranks) * (last - first) * words_, 0);
    for (Rank rank = 0; rank < ranks; ++rank) {
      for (std::size_t segment = first; segment < last; ++segment) {
        at(rank, segment)[index(rank) / 64] |= std::uint64_t{1} << (rank % 64);
      }
    }
  }

  std::size_t first() const { return first_; }
  std::size_t last() const { return last_; }
  std::size_t words() const { return words_; }
  std::uint64_t* at(Rank rank, std::size_t segment) { return bits_.data() + offset(rank, segment); }
  const std::uint64_t* at(Rank rank, std::size_t segment) const {
    return bits_.data() + offset(rank, segment);
  }

  bool complete(Rank rank, std::size_t segment) {
    const std::uint64_t* bits = at(rank, segment);
    for (Rank other = 0; other < ranks_; ++other) {
      if ((bits[index(other) / 64] >> (other % 64) & 1) == 0) return false;
    }
    return true;
  }

 private:
  std::size_t offset(Rank rank, std::size_t segment) const {
    return (index(rank) * (last_ - first_) + (segment - first_)) * words_;
  }

  int ranks_;
  std::size_t words_;
  std::size_t first_;
  std::size_t last_;
  std::vector<std::uint64_t> bits_;
};

bool by_pair(const Transfer& a, const Transfer& b) {
  return std::pair(a.source, a.destination) < std::pair(b.source, b.destination);
}

std::string describe(const Transfer& t) {
  return fmt::format("lane {} chunk {} stage {} step {}: {} -> {} of elements [{}, {})", t.stream.lane,
                     t.stream.chunk, t.stage, t.step, t.source, t.destination, t.slice.offset, t.slice.end());
}

class Verifier {
 public:
  Verifier(const Schedule& schedule, Stream stream, const ProofOptions& options)
      : schedule_(schedule), stream_(stream), options_(options) {}

  std::optional<std::string> run() {
    expand();
    for (StepTransfers& step : steps_) {
      if (const auto fault = check_ends(step)) return fault;
      if (const auto fault = check_races(step)) return fault;
    }
    // In batches of segments, so that memory stays bounded.
    const std::size_t segments = bounds_.size() - 1;
    const std::size_t words_of_segment = index(schedule_.ranks) * ((index(schedule_.ranks) + 63) / 64);
    const std::size_t batch = std::max<std::size_t>(1, options_.most_words / words_of_segment);
    for (std::size_t first = 0; first < segments; first += batch) {
      if (const auto fault = follow(first, std::min(segments, first + batch))) return fault;
    }
    return std::nullopt;
  }

 private:
  void expand() {
    const Lane& lane = schedule_.lanes[index(stream_.lane)];
    const Slice all = stream_slice(schedule_, stream_);
    bounds_ = {all.offset, all.end()};
    for (int stage = 0; stage < stage_count(lane); ++stage) {
      for (int step = 0; step < step_count(lane, stage); ++step) {
        StepTransfers transfers;
        for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
          append_sends(schedule_, stream_, stage, step, rank, transfers.sent);
          append_receives(schedule_, stream_, stage, step, rank, transfers.received);
        }
        if (options_.tamper) {
          for (Transfer& transfer : transfers.sent) options_.tamper(transfer);
          for (Transfer& transfer : transfers.received) options_.tamper(transfer);
          const auto dropped = [](const Transfer& transfer) { return transfer.slice.empty(); };
          std::erase_if(transfers.sent, dropped);
          std::erase_if(transfers.received, dropped);
        }
        // Between two ranks the order stays: messages are matched by it.
        std::stable_sort(transfers.sent.begin(), transfers.sent.end(), by_pair);
        std::stable_sort(transfers.received.begin(), transfers.received.end(), by_pair);
        for (const Transfer& transfer : transfers.sent) {
          bounds_.push_back(transfer.slice.offset);
          bounds_.push_back(transfer.slice.end());
        }
        steps_.push_back(std::move(transfers));
      }
    }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }

  static std::optional<std::string> check_ends(const StepTransfers& step) {
    const auto [sent, received] =
        std::mismatch(step.sent.begin(), step.sent.end(), step.received.begin(), step.received.end());
    if (sent == step.sent.end() && received == step.received.end()) return std::nullopt;
    return fmt::format("only one end knows of a transfer, or knows it in another order: {}",
                       describe(sent != step.sent.end() ? *sent : *received));
  }

  /// Within a step all transfers happen at once: no rank may send what it overwrites by a copy, nor write an
  /// element by two copies, or by a copy and a combination.
  std::optional<std::string> check_races(StepTransfers& step) const {
    std::vector<std::vector<const Transfer*>> out(index(schedule_.ranks));
    std::vector<std::vector<const Transfer*>> in(index(schedule_.ranks));
    for (const Transfer& transfer : step.sent) {
      out[index(transfer.source)].push_back(&transfer);
      in[index(transfer.destination)].push_back(&transfer);
    }
    const auto by_offset = [](const Transfer* a, const Transfer* b) {
      return a->slice.offset < b->slice.offset;
    };
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      auto& sent = out[index(rank)];
      auto& received = in[index(rank)];
      std::sort(sent.begin(), sent.end(), by_offset);
      std::sort(received.begin(), received.end(), by_offset);
      // Sends may overlap each other (a broadcast), so the earliest one that reaches this far is looked for.
      for (const Transfer* write : received) {
        for (const Transfer* read : sent) {
          if (read->slice.offset >= write->slice.end()) break;
          if (!read->slice.overlaps(write->slice)) continue;
          step.overlaps = true;
          if (write->combine == Combine::copy) {
            return fmt::format("rank {} sends what it overwrites in the same step: {}", rank,
                               describe(*write));
          }
        }
      }
      Count copied_to = 0;  // where the slices before end, of copies and of all
      Count written_to = 0;
      for (const Transfer* write : received) {
        const bool copies = write->combine == Combine::copy;
        if (write->slice.offset < (copies ? written_to : copied_to)) {
          return fmt::format("rank {} is written twice in the same step: {}", rank, describe(*write));
        }
        written_to = std::max(written_to, write->slice.end());
        if (copies) copied_to = std::max(copied_to, write->slice.end());
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> follow(std::size_t first, std::size_t last) const {
    Contributions held(schedule_.ranks, first, last);
    for (const StepTransfers& step : steps_) {
      // Where no transfer of the step reads what another of it writes, the order is free.
      const std::optional<Contributions> before = step.overlaps ? std::optional(held) : std::nullopt;
      for (const Transfer& transfer : step.sent) {
        if (const auto fault = apply(transfer, before ? *before : held, held)) return fault;
      }
    }
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      for (std::size_t segment = first; segment < last; ++segment) {
        if (!held.complete(rank, segment)) {
          return fmt::format("rank {} ends without every contribution to elements [{}, {})", rank,
                             bounds_[segment], bounds_[segment + 1]);
        }
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> apply(const Transfer& transfer, const Contributions& before,
                                   Contributions& held) const {
    const auto segment_at = [&](Count offset) {
      return index(std::lower_bound(bounds_.begin(), bounds_.end(), offset) - bounds_.begin());
    };
    const std::size_t begin = std::max(segment_at(transfer.slice.offset), held.first());
    const std::size_t end = std::min(segment_at(transfer.slice.end()), held.last());
    for (std::size_t segment = begin; segment < end; ++segment) {
      const std::uint64_t* from = before.at(transfer.source, segment);
      std::uint64_t* to = held.at(transfer.destination, segment);
      for (std::size_t word = 0; word < held.words(); ++word) {
        if (transfer.combine == Combine::copy) {
          to[word] = from[word];
        } else if ((to[word] & from[word]) != 0) {
          return fmt::format("a contribution is counted twice: {}", describe(transfer));
        } else {
          to[word] |= from[word];
        }
      }
    }
    return std::nullopt;
  }

  const Schedule& schedule_;
  Stream stream_;
  const ProofOptions& options_;
  std::vector<StepTransfers> steps_;
  std::vector<Count> bounds_;
};

/// The streams' slices must tile the payload; each is then proved on its own.
std::optional<std::string> check_tiling(const Schedule& schedule) {
  Count next = 0;
  for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    if (schedule.lanes[lane].slice.offset != next)
      return fmt::format("lane {} leaves a gap or overlaps", lane);
    next = schedule.lanes[lane].slice.end();
  }
  if (next != schedule.count) return fmt::format("the lanes cover {} of {} elements", next, schedule.count);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> verify(const Schedule& schedule, const ProofOptions& options) {
  if (schedule.ranks > kMostVerifiableRanks) {
    usage_error("{} ranks are more than can be proved one by one; verify the same shape with at most {}",
                schedule.ranks, kMostVerifiableRanks);
  }
  if (const auto fault = check_tiling(schedule)) return fault;
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    for (int chunk = 0; chunk < schedule.lanes[index(lane)].chunks; ++chunk) {
      const Stream stream{lane, chunk};
      if (stream_slice(schedule, stream).empty()) continue;
      if (auto fault = Verifier(schedule, stream, options).run()) return fault;
    }
  }
  return std::nullopt;
}

}  // namespace polyring
