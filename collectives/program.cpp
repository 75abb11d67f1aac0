#include "collectives/program.hpp"

#include <algorithm>

#include "collectives/intervals.hpp"

namespace polyring {
namespace {

class Compiler {
 public:
  Compiler(const Schedule& schedule, Stream stream, Rank rank)
      : schedule_(schedule),
        lane_(schedule.lanes[static_cast<std::size_t>(stream.lane)]),
        stream_(stream),
        rank_(rank),
        whole_(stream_slice(schedule, stream)) {}

  Program run() {
    const int reducing_stages = static_cast<int>(lane_.dimensions.size());
    for (int stage = 0; stage < stage_count(lane_); ++stage) {
      if (stage == reducing_stages) add_division();
      for (int step = 0; step < step_count(lane_, stage); ++step) add_step(stage, step);
    }
    // Only a rank alone has anything left: its input is the result.
    Program::Step last;
    last.fill = in_output_.gaps({0, whole_.count});
    if (!last.fill.empty()) program_.steps.push_back(std::move(last));
    return std::move(program_);
  }

 private:
  Slice relative(Slice slice) const { return {slice.offset - whole_.offset, slice.count}; }

  /// Whether the slice still lives in the input. Where it lives partly there, that part is filled into the
  /// output.
  bool in_input(Slice slice, Program::Step& step) {
    const std::vector<Slice> gaps = in_output_.gaps(slice);
    if (gaps.size() == 1 && gaps.front() == slice) return true;
    step.fill.insert(step.fill.end(), gaps.begin(), gaps.end());
    for (const Slice gap : gaps) in_output_.add(gap);
    return false;
  }

  void add_step(int stage, int index) {
    sends_.clear();
    receives_.clear();
    append_sends(schedule_, stream_, stage, index, rank_, sends_);
    append_receives(schedule_, stream_, stage, index, rank_, receives_);
    if (sends_.empty() && receives_.empty()) return;

    Program::Step step;
    for (const Transfer& transfer : sends_) {
      const Slice slice = relative(transfer.slice);
      step.sends.push_back({transfer.destination, slice, in_input(slice, step)});
    }
    Count staging = 0;
    for (const Transfer& transfer : receives_) {
      const Slice slice = relative(transfer.slice);
      const bool reduce = transfer.combine == Combine::reduce;
      step.receives.push_back(
          {transfer.source, slice, transfer.combine, reduce && in_input(slice, step), staging});
      if (reduce) staging += slice.count;
      in_output_.add(slice);
    }
    program_.staging = std::max(program_.staging, staging);
    program_.steps.push_back(std::move(step));
  }

  void add_division() {
    const Slice held = shared_slice(schedule_, stream_, static_cast<int>(lane_.dimensions.size()), rank_);
    if (!held.empty() && !program_.steps.empty()) program_.steps.back().divide = relative(held);
  }

  const Schedule& schedule_;
  const Lane& lane_;
  Stream stream_;
  Rank rank_;
  Slice whole_;
  Program program_;
  Intervals in_output_;
  std::vector<Transfer> sends_;
  std::vector<Transfer> receives_;
};

}  // namespace

Program compile(const Schedule& schedule, Stream stream, Rank rank) {
  return Compiler(schedule, stream, rank).run();
}

}  // namespace polyring
