#include "collectives/schedule/program.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/error.hpp"
#include "collectives/schedule/intervals.hpp"

namespace polyring {
namespace {

class Compiler {
 public:
  Compiler(const Schedule& schedule, Stream stream, Rank rank, const std::function<bool(Rank)>& reaches,
           Partials partials)
      : schedule_(schedule),
        lane_(schedule.lanes[static_cast<std::size_t>(stream.lane)]),
        stream_(stream),
        rank_(rank),
        reaches_(reaches),
        partials_(partials),
        whole_(stream_slice(schedule, stream)),
        block_(whole_.count / schedule.blocks()),
        results_(schedule.collective == Collective::reduce_scatter ? Area::work : Area::output) {}

  Program run() {
    refuse_switches();
    for (int stage = 0; stage < stage_count(lane_); ++stage) {
      if (kind_of(stage) == StageKind::alltoall) {
        add_alltoall(stage);
        continue;
      }
      const bool by_exchange = group_reaches(stage);
      // Both ends of every transfer come to the same decision: it depends on the whole group only.
      if (by_exchange && spreads_next(stage) && step_count(lane_, stage) == 1 &&
          step_count(lane_, stage + 1) == 1) {
        expand(stage, 0);
        add_spread(stage + 1, 0);
        add_exchange();
        mark_last();
        ++stage;
        round_ += 2;
        continue;
      }
      for (int step = 0; step < step_count(lane_, stage); ++step) {
        expand(stage, step);
        if (by_exchange) {
          add_exchanges();
        } else {
          add_messages();
        }
        ++round_;
      }
      if (is_last_reduction(stage)) mark_last();
    }
    add_rest();
    program_.rounds = round_;
    assert(program_.steps.empty() || program_.steps.back().round < round_);
    for (Program::Step& step : program_.steps) step.sends_first = overwrites_sent(step);
    program_.has_partials = uses(Area::partial);
    program_.has_work = uses(Area::work);
    return std::move(program_);
  }

 private:
  void refuse_switches() const {
    if (std::ranges::find(lane_.stages, StageKind::in_switches, &Stage::kind) == lane_.stages.end()) return;
    usage_error("switches that reduce are simulated only; choose another algorithm to run");
  }

  Slice relative(Slice slice) const { return {slice.offset - whole_.offset, slice.count}; }

  /// What is in the input only and belongs into the output: a rank's own block of an allgather, and all of a
  /// rank's that is alone.
  void add_rest() {
    if (schedule_.collective == Collective::reduce_scatter && schedule_.ranks > 1) return;
    Program::Step last{};
    for (const Slice gap : in_results_.gaps({0, whole_.count}))
      last.copies.push_back({gap, Area::input, Area::output});
    if (!last.copies.empty()) append(std::move(last));
    if (schedule_.collective == Collective::allgather || schedule_.ranks == 1) ++round_;
  }

  void append(Program::Step step) {
    step.round = round_;
    program_.steps.push_back(std::move(step));
  }

  StageKind kind_of(int stage) const { return lane_.stages[static_cast<std::size_t>(stage)].kind; }

  bool is_last_reduction(int stage) const {
    return kind_of(stage) == StageKind::reduce &&
           (stage + 1 == stage_count(lane_) || kind_of(stage + 1) != StageKind::reduce);
  }

  /// Whether what the stage's groups reduce is spread in them at once.
  bool spreads_next(int stage) const {
    return is_last_reduction(stage) && stage + 1 < stage_count(lane_) &&
           kind_of(stage + 1) == StageKind::spread;
  }

  bool group_reaches(int stage) const {
    const Dimension& dimension = lane_.dimension_of(stage);
    if (!dimension.pattern().contiguous(dimension.size())) return false;
    for (int position = 0; position < dimension.size(); ++position) {
      const Rank member = dimension.rank_at(rank_, position);
      if (member != rank_ && !reaches_(member)) return false;
    }
    return true;
  }

  void expand(int stage, int step) {
    reducing_ = kind_of(stage) == StageKind::reduce;
    only_inputs_ = stage == 0 && step == 0;
    sends_.clear();
    receives_.clear();
    spread_sends_.clear();
    spread_receives_.clear();
    append_sends(schedule_, stream_, stage, step, rank_, reducing_ ? sends_ : spread_sends_);
    append_receives(schedule_, stream_, stage, step, rank_, reducing_ ? receives_ : spread_receives_);
  }

  /// Where a payload has blocks: the same transfers, a block at a time.
  void cut_into_blocks() {
    if (schedule_.blocks() == 1) return;
    for (std::vector<Transfer>* transfers : {&sends_, &receives_, &spread_sends_, &spread_receives_}) {
      std::vector<Transfer> pieces;
      for (Transfer piece : *transfers) {
        const Slice all = std::exchange(piece.slice, {piece.slice.offset, block_});
        for (; piece.slice.offset < all.end(); piece.slice.offset += block_) pieces.push_back(piece);
      }
      *transfers = std::move(pieces);
    }
  }

  void add_spread(int stage, int step) {
    append_sends(schedule_, stream_, stage, step, rank_, spread_sends_);
    append_receives(schedule_, stream_, stage, step, rank_, spread_receives_);
  }

  bool nothing_to_do() const {
    return sends_.empty() && receives_.empty() && spread_sends_.empty() && spread_receives_.empty();
  }

  /// Where the slice lives, in the input or among the results. Where it lives partly in the input, that part
  /// is copied to the results.
  Area area_of(Slice slice, Program::Step& step) {
    const std::vector<Slice> gaps = in_results_.gaps(slice);
    if (gaps.size() == 1 && gaps.front() == slice) return Area::input;
    for (const Slice gap : gaps) {
      step.copies.push_back({gap, Area::input, results_});
      in_results_.add(gap);
    }
    return results_;
  }

  bool reduces_partials() const { return partials_ == Partials::apart && !only_inputs_; }

  /// Where this rank's operand of a reduction lives. What is no partial result yet and is combined with one
  /// becomes one.
  Area operand_at(Slice slice, Program::Step& step) {
    if (!reduces_partials()) return area_of(slice, step);
    const std::vector<Slice> gaps = in_partials_.gaps(slice);
    step.widen.insert(step.widen.end(), gaps.begin(), gaps.end());
    for (const Slice gap : gaps) in_partials_.add(gap);
    return Area::partial;
  }

  /// Where a result goes before it is known whether it is the last.
  Area result_at(Slice slice) {
    if (partials_ == Partials::in_output) {
      in_results_.add(slice);
      return results_;
    }
    in_partials_.add(slice);
    return Area::partial;
  }

  bool uses(Area area) const {
    return std::ranges::any_of(program_.steps, [&](const Program::Step& step) {
      const auto is_there = [&](const auto& made) { return made.result == area; };
      const auto goes_there = [&](const auto& moved) { return moved.to == area; };
      return (step.exchange && is_there(*step.exchange)) || std::ranges::any_of(step.folds, is_there) ||
             (area == Area::partial && !step.widen.empty()) || std::ranges::any_of(step.copies, goes_there) ||
             std::ranges::any_of(step.receives, goes_there);
    });
  }

  /// All that the rank has goes from one area to another, by messages, and within the rank what stays there.
  /// The last stage ends in the output; no stage reads and writes the same area.
  void add_alltoall(int stage) {
    const auto area_before = [&](int stages_left) {
      return stages_left == stage_count(lane_) ? Area::input
             : stages_left % 2 == 0            ? Area::output
                                               : Area::work;
    };
    const Area from = area_before(stage_count(lane_) - stage);
    const Area to = area_before(stage_count(lane_) - stage - 1);
    Intervals come;
    Program::Step step{};
    for (int number = 0; number < step_count(lane_, stage); ++number) {
      step = {};
      expand(stage, number);
      cut_into_blocks();
      for (const Transfer& transfer : spread_sends_)
        step.sends.push_back({transfer.destination, relative(transfer.slice), from});
      for (const Transfer& transfer : spread_receives_) {
        const Slice slice = relative(transfer.received());
        step.receives.push_back({transfer.source, slice, Combine::copy, to, 0, false});
        come.add(slice);
      }
      if (!nothing_to_do()) append(std::move(step));
      ++round_;
    }
    step = {};
    for (Count block = 0; block < schedule_.ranks; ++block) {
      for (const Slice gap : come.gaps({block * block_, block_})) step.copies.push_back({gap, from, to});
    }
    if (!step.copies.empty()) append(std::move(step));
    ++round_;
    if (stage + 1 == stage_count(lane_)) in_results_.add({0, whole_.count});
  }

  void add_messages() {
    if (nothing_to_do()) return;
    cut_into_blocks();
    Program::Step step{};
    for (const Transfer& transfer : sends_) {
      const Slice slice = relative(transfer.slice);
      step.sends.push_back({transfer.destination, slice, operand_at(slice, step)});
    }
    for (const Transfer& transfer : spread_sends_) {
      const Slice slice = relative(transfer.slice);
      step.sends.push_back({transfer.destination, slice, area_of(slice, step)});
    }
    Count staging = 0;
    for (const Transfer& transfer : receives_) {
      const Slice slice = relative(transfer.slice);
      step.receives.push_back(
          {transfer.source, slice, Combine::reduce, Area::output, staging, reduces_partials()});
      staging += slice.count;
      add_to_fold(step, slice);
    }
    for (const Transfer& transfer : spread_receives_) {
      step.receives.push_back(
          {transfer.source, relative(transfer.slice), Combine::copy, Area::output, 0, false});
      in_results_.add(relative(transfer.slice));
    }
    for (Program::Fold& fold : step.folds) fold.result = result_at(fold.slice);
    program_.staging = std::max(program_.staging, staging);
    append(std::move(step));
  }

  /// Whether a fold writes over what the step sends.
  static bool overwrites_sent(const Program::Step& step) {
    return std::ranges::any_of(step.folds, [&](const Program::Fold& fold) {
      return std::ranges::any_of(step.sends, [&](const Program::Send& send) {
        return send.slice.overlaps(fold.slice) && may_be_one(send.from, fold.result);
      });
    });
  }

  /// Whether two areas may lie in the same memory: in place, the input and the output do.
  static bool may_be_one(Area a, Area b) {
    const auto is_users = [](Area area) { return area == Area::input || area == Area::output; };
    return a == b || (is_users(a) && is_users(b));
  }

  /// The step's last receive is one more operand of its slice.
  void add_to_fold(Program::Step& step, Slice slice) {
    auto fold = std::find_if(step.folds.begin(), step.folds.end(),
                             [&](const Program::Fold& other) { return other.slice == slice; });
    if (fold == step.folds.end()) {
      step.folds.push_back({slice, {Program::Fold::kOwn}, operand_at(slice, step), Area::output, false});
      fold = step.folds.end() - 1;
    }
    const auto rank_of = [&](std::size_t operand) {
      return operand == Program::Fold::kOwn ? rank_ : step.receives[operand].peer;
    };
    const std::size_t newest = step.receives.size() - 1;
    fold->operands.insert(
        std::find_if(fold->operands.begin(), fold->operands.end(),
                     [&](std::size_t operand) { return rank_of(operand) > rank_of(newest); }),
        newest);
  }

  Program::Partner& partner(Program::Exchange& exchange, Rank peer) {
    const auto at =
        std::lower_bound(exchange.partners.begin(), exchange.partners.end(), peer,
                         [](const Program::Partner& other, Rank rank) { return other.peer < rank; });
    if (at != exchange.partners.end() && at->peer == peer) return *at;
    return *exchange.partners.insert(at, {peer, {}, Area::output, {}, false, false});
  }

  /// One for each block of the step's transfers, which have equally many: what a rank reads or writes in an
  /// exchange is in one piece.
  void add_exchanges() {
    if (schedule_.blocks() == 1) return add_exchange();
    const std::array lists{&sends_, &receives_, &spread_sends_, &spread_receives_};
    std::array<std::vector<Transfer>, lists.size()> all;
    Count count = 0;  // of a transfer
    for (std::size_t i = 0; i < lists.size(); ++i) {
      all[i] = *lists[i];
      if (!all[i].empty()) count = all[i].front().slice.count;
    }
    for (Count at = 0; at < count; at += block_) {
      for (std::size_t i = 0; i < lists.size(); ++i) {
        *lists[i] = all[i];
        for (Transfer& transfer : *lists[i]) transfer.slice = {transfer.slice.offset + at, block_};
      }
      add_exchange();
    }
  }

  void add_exchange() {
    if (nothing_to_do()) return;
    Program::Step step{};
    Program::Exchange& exchange = step.exchange.emplace();
    for (const Transfer& transfer : sends_) {
      Program::Partner& to = partner(exchange, transfer.destination);
      to.gives = relative(transfer.slice);
      to.gives_from = operand_at(to.gives, step);
    }
    for (const Transfer& transfer : receives_) {
      partner(exchange, transfer.source).read = true;
      exchange.own = relative(transfer.slice);
      exchange.keeps = true;
    }
    for (const Transfer& transfer : spread_sends_) {
      partner(exchange, transfer.destination).write = true;
      assert(receives_.empty() || exchange.own == relative(transfer.slice));
      exchange.own = relative(transfer.slice);
    }
    exchange.own_at = reducing_ ? (reduces_partials() ? Area::partial : results_)
                                : Area::output;  // as all of the group hold it
    if (!exchange.own.empty())
      exchange.own_at = reducing_ ? operand_at(exchange.own, step) : area_of(exchange.own, step);
    if (exchange.keeps) exchange.result = result_at(exchange.own);
    for (const Transfer& transfer : spread_receives_) {
      partner(exchange, transfer.source).takes = relative(transfer.slice);
      in_results_.add(relative(transfer.slice));
    }
    append(std::move(step));
  }

  /// Where the slice that this rank holds in the end becomes complete, which is in the output.
  void mark_last() {
    const Slice held =
        relative(shared_slice(schedule_, stream_, static_cast<int>(lane_.dimensions.size()), rank_));
    for (auto step = program_.steps.rbegin(); step != program_.steps.rend(); ++step) {
      if (step->exchange && step->exchange->keeps && step->exchange->own == held) {
        step->exchange->last = true;
        step->exchange->result = Area::output;
        in_results_.add(held);
        return;
      }
      for (Program::Fold& fold : step->folds) {
        if (fold.slice != held) continue;
        fold.last = true;
        fold.result = Area::output;
        in_results_.add(held);
        return;
      }
    }
    assert(held.empty() || schedule_.ranks == 1);
  }

  const Schedule& schedule_;
  const Lane& lane_;
  Stream stream_;
  Rank rank_;
  const std::function<bool(Rank)>& reaches_;
  Partials partials_;
  Slice whole_;
  Count block_;   // elements
  Area results_;  // where reductions have theirs that are not the last, if of the payload's kind
  Program program_;
  int round_ = 0;  // of the lane
  Intervals in_results_;
  Intervals in_partials_;

  // The step being expanded.
  bool reducing_ = false;
  bool only_inputs_ = false;  // are sent and combined: the first step of all
  std::vector<Transfer> sends_;
  std::vector<Transfer> receives_;
  std::vector<Transfer> spread_sends_;
  std::vector<Transfer> spread_receives_;
};

}  // namespace

void check_window(int window) {
  if (window < 1) usage_error("a window of {} chunks is impossible; give 1 or more", window);
}

Program compile(const Schedule& schedule, Stream stream, Rank rank, const std::function<bool(Rank)>& reaches,
                Partials partials) {
  return Compiler(schedule, stream, rank, reaches, partials).run();
}

std::vector<Program> compile_all(const Schedule& schedule, Stream stream,
                                 const std::function<bool(Rank, Rank)>& reach, Partials partials) {
  std::vector<Program> programs;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    const auto reaches = [&](Rank peer) { return reach && reach(rank, peer); };
    programs.push_back(compile(schedule, stream, rank, reaches, partials));
  }
  return programs;
}

}  // namespace polyring
