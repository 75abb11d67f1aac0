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

/// What switches add up, and give to each of those who hold it.
struct SwitchSum {
  std::vector<Rank> members;
  Slice slice;
};

/// All transfers of one step of a stream, as their sources see them, and the same from their destinations.
struct StepTransfers {
  std::vector<Transfer> sent;
  std::vector<Transfer> received;
  std::vector<SwitchSum> sums;
  bool overlaps = false;  // somebody sends what it combines with others in the same step
  bool is_alltoall = false;
  bool begins = false;  // its stage
};

/// Who has contributed to what: a bit per rank, for each rank and each segment in [first, last). A segment is
/// a run of elements that no transfer ever splits.
class Contributions {
 public:
  Contributions(int ranks, std::size_t first, std::size_t last)
      : ranks_(ranks), words_((index(ranks) + 63) / 64), first_(first), last_(last) {
    bits_.assign(index(ranks) * (last - first) * words_, 0);
    moved_.assign(index(ranks) * (last - first), 0);
  }

  void add(Rank rank, std::size_t segment) {
    at(rank, segment)[index(rank) / 64] |= std::uint64_t{1} << (rank % 64);
  }

  std::size_t first() const { return first_; }
  std::size_t last() const { return last_; }
  std::size_t words() const { return words_; }
  std::uint64_t* at(Rank rank, std::size_t segment) { return bits_.data() + offset(rank, segment); }
  const std::uint64_t* at(Rank rank, std::size_t segment) const {
    return bits_.data() + offset(rank, segment);
  }

  /// How many elements further on than in the payloads it comes from.
  Count& moved(Rank rank, std::size_t segment) { return moved_[place(rank, segment)]; }
  Count moved(Rank rank, std::size_t segment) const { return moved_[place(rank, segment)]; }

  bool complete(Rank rank, std::size_t segment) const {
    const std::uint64_t* bits = at(rank, segment);
    for (Rank other = 0; other < ranks_; ++other) {
      if ((bits[index(other) / 64] >> (other % 64) & 1) == 0) return false;
    }
    return true;
  }
  bool only(Rank contributor, Rank rank, std::size_t segment) const {
    const std::uint64_t* bits = at(rank, segment);
    for (std::size_t word = 0; word < words_; ++word) {
      const bool here = word == index(contributor) / 64;
      if (bits[word] != (here ? std::uint64_t{1} << (contributor % 64) : 0)) return false;
    }
    return true;
  }

 private:
  std::size_t place(Rank rank, std::size_t segment) const {
    return index(rank) * (last_ - first_) + (segment - first_);
  }
  std::size_t offset(Rank rank, std::size_t segment) const { return place(rank, segment) * words_; }

  int ranks_;
  std::size_t words_;
  std::size_t first_;
  std::size_t last_;
  std::vector<std::uint64_t> bits_;
  std::vector<Count> moved_;
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
      : schedule_(schedule), stream_(stream), options_(options), all_(stream_slice(schedule, stream)) {
    if (schedule.collective == Collective::allreduce) return;
    owners_ = block_owners(schedule.lanes[index(stream.lane)], schedule.ranks);
    own_block_.resize(owners_.size());
    for (std::size_t block = 0; block < owners_.size(); ++block)
      own_block_[index(owners_[block])] = static_cast<int>(block);
  }

  std::optional<std::string> run() {
    expand();
    for (StepTransfers& step : steps_) {
      if (const auto fault = check_ends(step)) return fault;
      if (const auto fault = check_races(step)) return fault;
    }
    // In batches of segments, so that memory stays bounded; but all at once where elements change their
    // places.
    const std::size_t segments = bounds_.size() - 1;
    if (schedule_.collective == Collective::alltoall) return follow(0, segments);
    const std::size_t words_of_segment = index(schedule_.ranks) * ((index(schedule_.ranks) + 63) / 64 + 1);
    const std::size_t batch = std::max<std::size_t>(1, options_.most_words / words_of_segment);
    for (std::size_t first = 0; first < segments; first += batch) {
      if (const auto fault = follow(first, std::min(segments, first + batch))) return fault;
    }
    return std::nullopt;
  }

 private:
  void expand() {
    const Lane& lane = schedule_.lanes[index(stream_.lane)];
    for (int block = 0; block <= schedule_.blocks(); ++block)
      bounds_.push_back(all_.offset + all_.count / schedule_.blocks() * block);
    for (int stage = 0; stage < stage_count(lane); ++stage) {
      for (int step = 0; step < step_count(lane, stage); ++step) {
        StepTransfers transfers;
        transfers.is_alltoall = lane.stages[index(stage)].kind == StageKind::alltoall;
        transfers.begins = step == 0;
        for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
          append_sends(schedule_, stream_, stage, step, rank, transfers.sent);
          append_receives(schedule_, stream_, stage, step, rank, transfers.received);
        }
        if (lane.stages[index(stage)].kind == StageKind::in_switches) add_sums(stage, transfers);
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
          for (const Slice slice : {transfer.slice, transfer.received()}) {
            bounds_.push_back(slice.offset);
            bounds_.push_back(slice.end());
          }
        }
        steps_.push_back(std::move(transfers));
      }
    }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  }

  void add_sums(int stage, StepTransfers& transfers) {
    const Lane& lane = schedule_.lanes[index(stream_.lane)];
    const Dimension& dimension = lane.dimension_of(stage);
    for (Rank first = 0; first < schedule_.ranks; ++first) {
      if (dimension.position(first) != 0) continue;
      SwitchSum sum{{}, shared_slice(schedule_, stream_, lane.stages[index(stage)].dimension, first)};
      for (int position = 0; position < dimension.size(); ++position)
        sum.members.push_back(dimension.rank_at(first, position));
      bounds_.push_back(sum.slice.offset);
      bounds_.push_back(sum.slice.end());
      transfers.sums.push_back(std::move(sum));
    }
  }

  std::optional<std::string> check_ends(const StepTransfers& step) const {
    const auto [sent, received] =
        std::mismatch(step.sent.begin(), step.sent.end(), step.received.begin(), step.received.end());
    if (sent != step.sent.end() || received != step.received.end()) {
      return fmt::format("only one end knows of a transfer, or knows it in another order: {}",
                         describe(sent != step.sent.end() ? *sent : *received));
    }
    const auto inside = [&](Slice slice) { return slice.offset >= all_.offset && slice.end() <= all_.end(); };
    for (const Transfer& transfer : step.sent) {
      if (!inside(transfer.slice) || !inside(transfer.received()))
        return fmt::format("a transfer leaves its chunk: {}", describe(transfer));
    }
    return std::nullopt;
  }

  /// Within a step all transfers happen at once: no rank may send what it overwrites by a copy, but in an
  /// all-to-all, nor write an element by two copies, or by a copy and a combination.
  std::optional<std::string> check_races(StepTransfers& step) const {
    std::vector<std::vector<const Transfer*>> out(index(schedule_.ranks));
    std::vector<std::vector<const Transfer*>> in(index(schedule_.ranks));
    for (const Transfer& transfer : step.sent) {
      out[index(transfer.source)].push_back(&transfer);
      in[index(transfer.destination)].push_back(&transfer);
    }
    const auto by_source = [](const Transfer* a, const Transfer* b) {
      return a->slice.offset < b->slice.offset;
    };
    const auto by_destination = [](const Transfer* a, const Transfer* b) {
      return a->received().offset < b->received().offset;
    };
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      auto& sent = out[index(rank)];
      auto& received = in[index(rank)];
      std::sort(sent.begin(), sent.end(), by_source);
      std::sort(received.begin(), received.end(), by_destination);
      // Sends may overlap each other (a broadcast), so the earliest one that reaches this far is looked for.
      for (const Transfer* write : received) {
        if (step.is_alltoall) break;
        for (const Transfer* read : sent) {
          if (read->slice.offset >= write->received().end()) break;
          if (!read->slice.overlaps(write->received())) continue;
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
        if (write->received().offset < (copies ? written_to : copied_to)) {
          return fmt::format("rank {} is written twice in the same step: {}", rank, describe(*write));
        }
        written_to = std::max(written_to, write->received().end());
        if (copies) copied_to = std::max(copied_to, write->received().end());
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> follow(std::size_t first, std::size_t last) const {
    Contributions held(schedule_.ranks, first, last);
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      for (std::size_t segment = first; segment < last; ++segment) {
        if (schedule_.collective != Collective::allgather || owner_of(segment) == rank)
          held.add(rank, segment);
      }
    }
    // What transfers read, where others of their step, or of their all-to-all, write that. Elsewhere the
    // order is free.
    std::optional<Contributions> before;
    for (const StepTransfers& step : steps_) {
      if (!step.is_alltoall || step.begins)
        before = step.overlaps || step.is_alltoall ? std::optional(held) : std::nullopt;
      for (const Transfer& transfer : step.sent) {
        if (const auto fault = apply(transfer, before ? *before : held, held)) return fault;
      }
      for (const SwitchSum& sum : step.sums) {
        if (const auto fault = apply(sum, held)) return fault;
      }
    }
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      for (std::size_t segment = first; segment < last; ++segment) {
        if (const auto fault = check_result(rank, segment, held)) return fault;
      }
    }
    return std::nullopt;
  }

  /// Whose block the segment is of.
  Rank owner_of(std::size_t segment) const {
    return owners_[index((bounds_[segment] - all_.offset) / (all_.count / schedule_.ranks))];
  }

  std::optional<std::string> check_result(Rank rank, std::size_t segment, const Contributions& held) const {
    const auto lacks = [&](const std::string& what) {
      return fmt::format("rank {} ends without {} elements [{}, {})", rank, what, bounds_[segment],
                         bounds_[segment + 1]);
    };
    if (reduces(schedule_.collective)) {
      const bool wanted = schedule_.collective == Collective::allreduce || owner_of(segment) == rank;
      if (wanted && !held.complete(rank, segment)) return lacks("every contribution to");
      return std::nullopt;
    }
    const Rank owner = owner_of(segment);
    const Count from =
        schedule_.collective == Collective::alltoall
            ? (own_block_[index(owner)] - own_block_[index(rank)]) * (all_.count / schedule_.ranks)
            : 0;
    if (!held.only(owner, rank, segment) || held.moved(rank, segment) != from)
      return lacks(fmt::format("what rank {} has for", owner));
    return std::nullopt;
  }

  std::size_t segment_at(Count offset) const {
    return index(std::lower_bound(bounds_.begin(), bounds_.end(), offset) - bounds_.begin());
  }
  /// The first of the slice's segments that are being followed, and the one behind the last.
  std::pair<std::size_t, std::size_t> segments_of(Slice slice, const Contributions& held) const {
    return {std::max(segment_at(slice.offset), held.first()), std::min(segment_at(slice.end()), held.last())};
  }

  std::optional<std::string> apply(const SwitchSum& sum, Contributions& held) const {
    const auto [begin, end] = segments_of(sum.slice, held);
    std::vector<std::uint64_t> all(held.words());
    for (std::size_t segment = begin; segment < end; ++segment) {
      std::fill(all.begin(), all.end(), 0);
      for (const Rank member : sum.members) {
        const std::uint64_t* of_member = held.at(member, segment);
        for (std::size_t word = 0; word < held.words(); ++word) {
          if ((all[word] & of_member[word]) != 0) {
            return fmt::format("switches count a contribution twice: rank {}'s of elements [{}, {})", member,
                               sum.slice.offset, sum.slice.end());
          }
          all[word] |= of_member[word];
        }
      }
      for (const Rank member : sum.members) std::ranges::copy(all, held.at(member, segment));
    }
    return std::nullopt;
  }

  std::optional<std::string> apply(const Transfer& transfer, const Contributions& before,
                                   Contributions& held) const {
    const auto [begin, end] = segments_of(transfer.received(), held);
    for (std::size_t segment = begin; segment < end; ++segment) {
      const auto source = transfer.moved == 0 ? segment : segment_at(bounds_[segment] - transfer.moved);
      if (bounds_[source] + transfer.moved != bounds_[segment] ||
          bounds_[source + 1] + transfer.moved != bounds_[segment + 1]) {
        return fmt::format("only a part of what belongs together is moved: {}", describe(transfer));
      }
      const std::uint64_t* from = before.at(transfer.source, source);
      const Count moved = before.moved(transfer.source, source) + transfer.moved;
      std::uint64_t* to = held.at(transfer.destination, segment);
      Count& displaced = held.moved(transfer.destination, segment);
      if (transfer.combine == Combine::reduce && displaced != moved)
        return fmt::format("other elements are combined: {}", describe(transfer));
      displaced = moved;
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
  Slice all_;
  std::vector<Rank> owners_;    // of blocks
  std::vector<int> own_block_;  // by rank
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
  const int most = most_verifiable_ranks(schedule.collective);
  if (schedule.ranks > most) {
    usage_error("{} ranks are more than can be proved one by one; verify the same shape with at most {}",
                schedule.ranks, most);
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
