#include "collectives/schedule/program.hpp"

#include <algorithm>
#include <cassert>

#include "collectives/schedule/intervals.hpp"

namespace polyring {
namespace {

class Compiler {
 public:
  Compiler(const Schedule& schedule, Stream stream, Rank rank, const std::function<bool(Rank)>& meets,
           Partials partials)
      : schedule_(schedule),
        lane_(schedule.lanes[static_cast<std::size_t>(stream.lane)]),
        stream_(stream),
        rank_(rank),
        meets_(meets),
        partials_(partials),
        whole_(stream_slice(schedule, stream)) {}

  Program run() {
    const int dimensions = static_cast<int>(lane_.dimensions.size());
    for (int stage = 0; stage < stage_count(lane_); ++stage) {
      const bool by_meeting = group_meets(stage);
      // Both ends of every transfer come to the same decision: it depends on the whole group only.
      if (by_meeting && stage == dimensions - 1 && step_count(lane_, stage) == 1 &&
          step_count(lane_, stage + 1) == 1) {
        expand(stage, 0);
        add_spread(stage + 1, 0);
        add_meeting();
        mark_last();
        ++stage;
        continue;
      }
      for (int step = 0; step < step_count(lane_, stage); ++step) {
        expand(stage, step);
        if (by_meeting) {
          add_meeting();
        } else {
          add_messages();
        }
      }
      if (stage == dimensions - 1) mark_last();
    }
    program_.has_partials = any_partial_result();
    // Only a rank alone has anything left: its input is the result.
    Program::Step last{};
    last.fill = in_output_.gaps({0, whole_.count});
    if (!last.fill.empty()) program_.steps.push_back(std::move(last));
    return std::move(program_);
  }

 private:
  Slice relative(Slice slice) const { return {slice.offset - whole_.offset, slice.count}; }

  bool group_meets(int stage) const {
    const Dimension& dimension = lane_.dimensions[static_cast<std::size_t>(stage_at(lane_, stage).dimension)];
    if (!dimension.pattern().contiguous(dimension.size())) return false;
    for (int position = 0; position < dimension.size(); ++position) {
      const Rank member = dimension.rank_at(rank_, position);
      if (member != rank_ && !meets_(member)) return false;
    }
    return true;
  }

  void expand(int stage, int step) {
    reducing_ = stage_at(lane_, stage).combine == Combine::reduce;
    only_inputs_ = stage == 0 && step == 0;
    sends_.clear();
    receives_.clear();
    spread_sends_.clear();
    spread_receives_.clear();
    append_sends(schedule_, stream_, stage, step, rank_, reducing_ ? sends_ : spread_sends_);
    append_receives(schedule_, stream_, stage, step, rank_, reducing_ ? receives_ : spread_receives_);
  }

  void add_spread(int stage, int step) {
    append_sends(schedule_, stream_, stage, step, rank_, spread_sends_);
    append_receives(schedule_, stream_, stage, step, rank_, spread_receives_);
  }

  bool nothing_to_do() const {
    return sends_.empty() && receives_.empty() && spread_sends_.empty() && spread_receives_.empty();
  }

  /// Where the slice lives, the input or the output. Where it lives partly in the input, that part is filled
  /// into the output.
  Area area_of(Slice slice, Program::Step& step) {
    const std::vector<Slice> gaps = in_output_.gaps(slice);
    if (gaps.size() == 1 && gaps.front() == slice) return Area::input;
    step.fill.insert(step.fill.end(), gaps.begin(), gaps.end());
    for (const Slice gap : gaps) in_output_.add(gap);
    return Area::output;
  }

  bool reduces_partials() const { return partials_ == Partials::apart && !only_inputs_; }

  /// Where this rank's operand of a reduction lives. What is no partial result yet and meets some becomes
  /// one.
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
      in_output_.add(slice);
      return Area::output;
    }
    in_partials_.add(slice);
    return Area::partial;
  }

  bool any_partial_result() const {
    return std::any_of(program_.steps.begin(), program_.steps.end(), [](const Program::Step& step) {
      const auto is_partial = [](const auto& made) { return made.result == Area::partial; };
      return (step.meet && is_partial(*step.meet)) ||
             std::any_of(step.folds.begin(), step.folds.end(), is_partial) || !step.widen.empty();
    });
  }

  void add_messages() {
    if (nothing_to_do()) return;
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
      step.receives.push_back({transfer.source, slice, Combine::reduce, staging, reduces_partials()});
      staging += slice.count;
      add_to_fold(step, slice);
    }
    for (const Transfer& transfer : spread_receives_) {
      step.receives.push_back({transfer.source, relative(transfer.slice), Combine::copy, 0, false});
      in_output_.add(relative(transfer.slice));
    }
    for (Program::Fold& fold : step.folds) {
      fold.result = result_at(fold.slice);
      step.sends_first =
          step.sends_first || std::any_of(step.sends.begin(), step.sends.end(),
                                          [&](const auto& send) { return send.slice.overlaps(fold.slice); });
    }
    program_.staging = std::max(program_.staging, staging);
    program_.steps.push_back(std::move(step));
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

  Program::Partner& partner(Program::Meet& meet, Rank peer) {
    const auto at =
        std::lower_bound(meet.partners.begin(), meet.partners.end(), peer,
                         [](const Program::Partner& other, Rank rank) { return other.peer < rank; });
    if (at != meet.partners.end() && at->peer == peer) return *at;
    return *meet.partners.insert(at, {peer, {}, Area::output, {}, false, false});
  }

  void add_meeting() {
    if (nothing_to_do()) return;
    Program::Step step{};
    Program::Meet& meet = step.meet.emplace();
    for (const Transfer& transfer : sends_) {
      Program::Partner& to = partner(meet, transfer.destination);
      to.gives = relative(transfer.slice);
      to.gives_from = operand_at(to.gives, step);
    }
    for (const Transfer& transfer : receives_) {
      partner(meet, transfer.source).read = true;
      meet.own = relative(transfer.slice);
      meet.keeps = true;
    }
    for (const Transfer& transfer : spread_sends_) {
      partner(meet, transfer.destination).write = true;
      assert(receives_.empty() || meet.own == relative(transfer.slice));
      meet.own = relative(transfer.slice);
    }
    meet.own_at =
        reducing_ && reduces_partials() ? Area::partial : Area::output;  // as all of the group hold it
    if (!meet.own.empty()) meet.own_at = reducing_ ? operand_at(meet.own, step) : area_of(meet.own, step);
    if (meet.keeps) meet.result = result_at(meet.own);
    for (const Transfer& transfer : spread_receives_) {
      partner(meet, transfer.source).takes = relative(transfer.slice);
      in_output_.add(relative(transfer.slice));
    }
    program_.steps.push_back(std::move(step));
  }

  /// Where the slice that this rank holds in the end becomes complete, which is in the output.
  void mark_last() {
    const Slice held =
        relative(shared_slice(schedule_, stream_, static_cast<int>(lane_.dimensions.size()), rank_));
    for (auto step = program_.steps.rbegin(); step != program_.steps.rend(); ++step) {
      if (step->meet && step->meet->keeps && step->meet->own == held) {
        step->meet->last = true;
        step->meet->result = Area::output;
        in_output_.add(held);
        return;
      }
      for (Program::Fold& fold : step->folds) {
        if (fold.slice != held) continue;
        fold.last = true;
        fold.result = Area::output;
        in_output_.add(held);
        return;
      }
    }
    assert(held.empty() || schedule_.ranks == 1);
  }

  const Schedule& schedule_;
  const Lane& lane_;
  Stream stream_;
  Rank rank_;
  const std::function<bool(Rank)>& meets_;
  Partials partials_;
  Slice whole_;
  Program program_;
  Intervals in_output_;
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

Program compile(const Schedule& schedule, Stream stream, Rank rank, const std::function<bool(Rank)>& meets,
                Partials partials) {
  return Compiler(schedule, stream, rank, meets, partials).run();
}

}  // namespace polyring
